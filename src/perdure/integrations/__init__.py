"""Adapters for agent frameworks, one module for each: thin, and the only place that imports a framework."""
