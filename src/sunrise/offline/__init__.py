"""Experience as Minari datasets, read into a replay buffer; `agents/collecting.py` writes them."""
