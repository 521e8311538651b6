"""Loaded by schemathesis: how to send what it does not know."""

import schemathesis

# A text that is lines of JSON goes over the wire as it is.
schemathesis.serializer.alias("application/x-ndjson", "text/plain")
