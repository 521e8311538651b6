"""The demonstration: an invented life, and a day in the terminal."""
