"""One file a command: its flags beside its function. `cli.py` has the list of them."""
