"""What text may enter the store, and which secrets may not."""
