"""Series and state: merge, query, fetch what is missing. Writes their tables and index entries."""
