"""Memories, entities, todos, instructions; extraction, curation, undo. Writes records, always through the ledger."""
