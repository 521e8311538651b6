"""The HTTP API: each route parses, makes one call, renders. `interfaces.server` puts it together with the other skins."""
