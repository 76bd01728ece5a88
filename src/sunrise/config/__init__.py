"""Settings: what there is to set, what it is by default, and for which task. Nothing here imports JAX or Gymnasium."""
