"""What all faces share: the tools that a model may be given, and every answer as JSON."""
