"""Summaries without a model, and the lines they keep word for word."""
