"""Data of other memory engines and folders of notes, as text."""
