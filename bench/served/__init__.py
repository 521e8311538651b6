"""What `bench/serve.py` starts beside the server: a client that sends, and an application that does nothing."""
