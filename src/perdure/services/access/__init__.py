"""API keys, the access log, tracing. Never touches content."""
