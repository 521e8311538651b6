"""Pages about what is said: the sessions, and a chat."""
