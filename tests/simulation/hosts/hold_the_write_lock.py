"""Keeps every other writer of a SQLite file waiting until told to let go: path."""

import sys

import apsw

connection = apsw.Connection(sys.argv[1])
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.readline()
connection.execute("ROLLBACK")
