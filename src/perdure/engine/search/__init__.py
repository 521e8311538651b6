"""The search index in memory: terms, columns, scores, ranking."""
