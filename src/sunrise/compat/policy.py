"""`model.policy`: the name a model was made with, with what Stable-Baselines3's policies do that makes sense here."""

from pathlib import Path
from typing import Any, Self, overload

import numpy as np

from sunrise.compat import arrays
from sunrise.errors import SunriseError

NETWORKS = {"actor", "actor_target", "critic", "critic_target", "q_net", "q_net_target", "optimizer"}
"""PyTorch's modules of Stable-Baselines3, which a model or its policy is asked for."""
INSTEAD = (
    "it is not a PyTorch module: `predict` acts, `get_parameters()` has every array by name, and "
    "`model.ensemble.members` are the networks of all members, which are Equinox's."
)


class NotHereError(SunriseError, AttributeError):
    """An attribute of Stable-Baselines3's that is not here, and what is; `hasattr` is False."""


def no_attribute(owner: str, name: str) -> AttributeError:
    """The error for an attribute that a model has not, with a sentence for what Stable-Baselines3's have."""
    if name in NETWORKS:
        return NotHereError(f"{owner} has no attribute {name!r}: {INSTEAD}")
    return AttributeError(f"{owner!r} object has no attribute {name!r}")


class Policy(str):
    """A name such as "MlpPolicy" that also acts, is saved and gives its arrays: all of it is the model's."""

    model: Any

    @classmethod
    def of(cls, model: Any) -> Self:
        """The policy of a model."""
        policy = cls(model.policy_name)
        policy.model = model
        return policy

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = False
    ) -> tuple[np.ndarray, Any]:
        """As the model's."""
        action: tuple[np.ndarray, Any] = self.model.predict(observation, state, episode_start, deterministic)
        return action

    def save(self, path: str | Path) -> None:
        """Write the model, which `sunrise.agents.policies` reads as a policy and the model's class as a model."""
        self.model.save(path)

    def state_dict(self) -> dict[str, np.ndarray]:
        """Copies of every array by name; NumPy's, with the member on the first axis."""
        return arrays.read(self.model)[arrays.POLICY]

    def load_state_dict(self, state_dict: Any, strict: bool = True) -> None:
        """Take arrays by name; without `strict` some of them are enough."""
        arrays.write(self.model, {arrays.POLICY: state_dict}, strict)

    def __call__(self, *_: Any, **__: Any) -> Any:
        """Refused: there it is the forward pass of a module."""
        raise SunriseError(f"model.policy cannot be called: {INSTEAD}")

    def __getattr__(self, name: str) -> Any:
        raise NotHereError(f"model.policy has no attribute {name!r}: {INSTEAD}")


class PolicyOfModel:
    """The attribute `policy` of models: read, never set."""

    @overload
    def __get__(self, model: None, owner: type) -> Self: ...
    @overload
    def __get__(self, model: object, owner: type) -> Policy: ...
    def __get__(self, model: Any, owner: type) -> Self | Policy:
        return self if model is None else Policy.of(model)

    def __set__(self, model: Any, value: object) -> None:
        raise SunriseError(
            "model.policy cannot be replaced: everything is compiled here already; other networks are policy_kwargs, "
            "settings (network, layer_norm, ...) or a learner of your own."
        )
