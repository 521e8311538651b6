"""Recall, context and prompts: what an agent is given. Reads everything that is known."""
