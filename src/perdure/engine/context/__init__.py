"""Blocks, cards and prompts, packed into a budget of tokens."""
