"""Replay buffers: on the host, in NumPy. What all of them take and give is said once, in `sunrise.types.Replay`.

Axes: N members, B rows of a minibatch, E environments, slots of stored transitions.
"""
