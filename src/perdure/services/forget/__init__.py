"""Forgetting for good. Touches every table and file of a user."""
