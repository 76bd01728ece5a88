"""Trees of arrays: their leaves by name."""

from typing import Any


def named_leaves(tree: Any) -> dict[str, Any]:
    """The leaves of a tree by their path, such as `members.actor.layers.0.weight`."""
    import jax

    paths = jax.tree_util.tree_flatten_with_path(tree)[0]
    return {jax.tree_util.keystr(path, simple=True, separator="."): leaf for path, leaf in paths}
