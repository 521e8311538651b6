"""One use case per module: read, ask `engine` for a decision, write. No adapter is named here."""
