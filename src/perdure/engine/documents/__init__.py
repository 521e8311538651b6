"""Context documents: their JSON form, what a compaction does to them, and how they are seen over the log."""
