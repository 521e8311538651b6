"""The search index: its job, its cache, what is read through it. Writes the index and echoes only."""
