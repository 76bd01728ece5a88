"""Who is told what happens in a run: see `sunrise.run.events`. To add one, add it to the list in `Agent.learn`; a
tracker, to the list in `chosen.py`.
"""
