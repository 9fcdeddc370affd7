"""Readers of the wire formats that model files use: UBJSON, Protocol Buffers and FlatBuffers."""
