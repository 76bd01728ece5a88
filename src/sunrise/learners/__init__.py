"""The algorithms, each written for ONE agent: a function from sizes, settings and numbers to a `Learner`.

What the functions of a learner take and give is said once, in `sunrise.types.Learner`. Axes: K critics of the agent, B
rows of a batch, E environments, C actions of a finite set, A action, M views of a picture, Z features.
"""
