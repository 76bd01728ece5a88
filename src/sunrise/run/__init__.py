"""A run: its loop, the state of its parts, and what it tells of itself."""
