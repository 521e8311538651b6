"""One place composes an engine: the store, the models and the services that settings and hosts name."""
