"""Where a message goes, where turns start, which jobs follow, what a transcript says."""
