"""Pages about the store as a whole: the first page of a user, and moving or forgetting data."""
