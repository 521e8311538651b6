"""Embedders: the built-in table, a local ONNX model, and servers over HTTP. None is imported before it is used."""
