"""Commands of the store as a whole, its settings, and its servers."""
