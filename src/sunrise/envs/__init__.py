"""Environments."""

from sunrise.envs.display import import_mujoco

import_mujoco()  # before any module here does
