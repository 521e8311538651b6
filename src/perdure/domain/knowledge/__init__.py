"""Memories, entities, todos, instructions, and the journal of their changes."""
