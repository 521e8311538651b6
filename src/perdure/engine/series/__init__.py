"""Series: merging entries, covered windows, gaps."""
