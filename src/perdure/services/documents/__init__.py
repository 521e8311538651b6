"""Context documents on a store. Writes the log, folds, and the records of documents among the state values."""
