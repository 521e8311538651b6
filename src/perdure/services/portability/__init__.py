"""Export and import of a user's data, as lines or as notes. Reads and refills every table of a user."""
