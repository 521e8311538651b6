"""Messages, sessions, digests, and the state of an agent."""
