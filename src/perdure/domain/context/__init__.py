"""Recall, context and prompt: what an agent is given."""
