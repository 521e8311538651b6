"""What commands show, as lines for a terminal."""
