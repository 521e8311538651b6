"""One module per promise, `pNN_name.py`, each with one `PROMISE`."""
