"""How long to train."""

from typing import NamedTuple

from sunrise.errors import SunriseError


class Length(NamedTuple):
    """How long to train, where it was asked for: in timesteps or in simulator steps."""

    total_timesteps: int | None = None
    total_env_steps: int | None = None

    def in_timesteps(self, action_repeat: int) -> int | None:
        """None where nothing was asked for."""
        if self.total_env_steps is None:
            return self.total_timesteps
        if self.total_timesteps is not None:
            raise SunriseError("total_timesteps and total_env_steps are both given: give one of them.")
        if self.total_env_steps < action_repeat:
            raise SunriseError(
                f"total_env_steps is {self.total_env_steps}, but must be at least {action_repeat}: "
                "so many simulator steps are one timestep."
            )
        return self.total_env_steps // action_repeat
