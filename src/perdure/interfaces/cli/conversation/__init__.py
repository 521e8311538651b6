"""Commands about what was said: messages, sessions, transcripts, and a chat."""
