"""What both SQL stores share: named queries, and the mapping of rows to values."""
