"""What the services need from the outside, as narrow Protocols. The docstrings are law for every adapter."""
