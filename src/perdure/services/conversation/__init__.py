"""Messages, sessions, folds, digests, transcripts. Writes the log and the summaries over it."""
