"""Instants and half-open spans."""
