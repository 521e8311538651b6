"""Chat models behind a server."""
