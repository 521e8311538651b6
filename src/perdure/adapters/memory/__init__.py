"""The oracle: plain dicts behind the store's contract, obviously right, and gone with the process."""
