"""The skins: each parses, calls one service, renders. No rule lives here."""
