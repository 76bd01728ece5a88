"""The safe way to files: nothing followed out of a folder, every read bounded."""
