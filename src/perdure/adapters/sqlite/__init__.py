"""The embedded store: one SQLite file in WAL mode, through apsw, so that the SQLite version is ours to choose."""
