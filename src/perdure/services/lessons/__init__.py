"""Lessons and agents, and the files that mirror them. Writes records and those files."""
