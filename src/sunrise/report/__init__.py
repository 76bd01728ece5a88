"""From the folders of runs to tables, curves and a page. It reads what runs wrote, and needs nothing that computes."""
