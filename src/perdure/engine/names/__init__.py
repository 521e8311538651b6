"""Names of people, organisations and places: found, spelled, compared."""
