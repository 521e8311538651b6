"""How a text is taken apart: sentences, cues, literals, tokens."""
