"""Decisions without I/O: the same inputs give the same answer. Services read, ask here, then write."""
