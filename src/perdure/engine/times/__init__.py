"""Times as people write them, read out of a text or a question."""
