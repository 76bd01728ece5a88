"""Replay buffers: on the host, in NumPy."""
