"""Frozen values and the laws they obey. Nothing here reads a clock, a file or the environment."""
