"""One agent of ours (`ensemble_size=1`) against Stable-Baselines3's own `train()`: same weights, same batches.

`make test-compat` runs it; without Stable-Baselines3 it is skipped.
"""

from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import jax
import numpy as np
import pytest

pytest.importorskip("stable_baselines3", reason="Stable-Baselines3 is not installed: make test-compat")

import stable_baselines3 as sb3
import torch
from stable_baselines3.common.buffers import ReplayBufferSamples
from stable_baselines3.common.envs import FakeImageEnv
from stable_baselines3.common.logger import configure as configure_logger
from stable_baselines3.common.utils import polyak_update
from stable_baselines3.common.vec_env import DummyVecEnv

from sunrise import DQN, SAC, TD3
from sunrise.agents import Agent
from sunrise.ensemble.members import member_keys
from sunrise.randomness import root_key
from sunrise.types import Batch, Sample
from tests.compat.models import LENGTH, Walk

ROWS, UPDATES, LAYERS = 16, 5, [8, 6]
OURS: dict[str, Any] = {"ensemble_size": 1, "eval_freq": 0, "policy_kwargs": {"net_arch": LAYERS}, "seed": 3}
RUN: dict[str, Any] = {"progress_bar": False, "log_interval": None}


class Space(gym.Env[np.ndarray, Any]):
    """Only its spaces are looked at."""

    def __init__(self, finite: bool) -> None:
        self.observation_space = gym.spaces.Box(-9, 9, (3,), np.float32)
        self.action_space: gym.Space[Any] = gym.spaces.Discrete(4) if finite else gym.spaces.Box(-1, 1, (2,))


def theirs_of(cls: Any, finite: bool, **settings: Any) -> Any:
    """A model of theirs; it writes into the dict that it is given."""
    shapes = {"net_arch": LAYERS}
    env = DummyVecEnv([lambda: Space(finite)])
    return cls("MlpPolicy", settings.pop("env", env), device="cpu", policy_kwargs=shapes, seed=3, **settings)


def batches(finite: bool) -> Iterator[tuple[Sample, ReplayBufferSamples]]:
    """The same transitions for us and for them."""
    rng = np.random.default_rng(5)
    for _ in range(UPDATES):
        obs, following = rng.standard_normal((2, ROWS, 3), np.float32)
        reward, done = 3 * rng.standard_normal(ROWS, np.float32), rng.random(ROWS) < 0.3
        action = rng.integers(4, size=ROWS) if finite else np.tanh(rng.standard_normal((ROWS, 2), np.float32))
        discount = np.where(done, 0, 0.9).astype(np.float32)
        ours = Batch(obs, action.astype(np.int32) if finite else action, reward, discount, following)
        column = [torch.as_tensor(array).reshape(ROWS, -1) for array in (action, following, done, reward)]
        theirs = ReplayBufferSamples(torch.as_tensor(obs), column[0], column[1], column[2].float(), column[3])
        yield Sample(ours, np.ones((ROWS, 1), bool), np.ones(ROWS, np.float32)), theirs


def array(tensor: torch.Tensor) -> np.ndarray:
    return np.array(tensor.detach().numpy())


def layers(network: Any, prefix: str) -> dict[str, np.ndarray]:
    """Linear layers of theirs by our names: the weights are the other way round."""
    found = {}
    linear = [part for part in network.modules() if isinstance(part, torch.nn.Linear)]
    for depth, part in enumerate(linear):
        found[f"{prefix}.layers.{depth}.weight"] = array(part.weight).T
        found[f"{prefix}.layers.{depth}.bias"] = array(part.bias)
    return found


def side_by_side(found: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Critics on a new first axis."""
    return {name: np.stack([one[name] for one in found]) for name in found[0]}


def of_dqn(model: Any) -> dict[str, np.ndarray]:
    renamed = {}
    for network, ours in ((model.q_net, "online"), (model.q_net_target, "target")):
        for name, value in layers(network, ours).items():
            _, _, depth, kind = name.split(".")
            place = "trunk.layer" if depth == "0" else f"advantage.{int(depth) - 1}"
            renamed[f"{ours}.{place}.{kind}"] = value
    return renamed


def of_td3(model: Any) -> dict[str, np.ndarray]:
    return {
        **side_by_side([layers(q, "critics") for q in model.critic.q_networks]),
        **side_by_side([layers(q, "slow.target_critics") for q in model.critic_target.q_networks]),
        **layers(model.actor, "slow.actor"),
        **layers(model.actor_target, "slow.target_actor"),
    }


def of_sac(model: Any) -> dict[str, np.ndarray]:
    actor = layers(model.actor.latent_pi, "actor")
    heads = model.actor.mu, model.actor.log_std
    actor[f"actor.layers.{len(LAYERS)}.weight"] = np.concatenate([array(head.weight).T for head in heads], axis=1)
    actor[f"actor.layers.{len(LAYERS)}.bias"] = np.concatenate([array(head.bias) for head in heads])
    return {
        **actor,
        **side_by_side([layers(q, "critics") for q in model.critic.q_networks]),
        **side_by_side([layers(q, "targets") for q in model.critic_target.q_networks]),
        "log_alpha": array(model.log_ent_coef)[0],
    }


def taken_over(model: Agent, theirs: dict[str, np.ndarray]) -> None:
    """Give our agent their weights."""
    names = model.get_parameters()["policy"]
    given = {f"members.{name}": value[None] for name, value in theirs.items()}
    assert given.keys() <= names.keys(), (sorted(given), sorted(names))
    model.set_parameters({"policy": given}, exact_match=False)


def compare(ours: Agent, theirs: Any, named: Any, finite: bool, before: Any = None) -> None:
    """Updates of both on the same batches, and every weight after each."""
    theirs.set_logger(configure_logger(None, []))
    taken_over(ours, named(theirs))
    first = named(theirs)
    key = root_key(1, "update")
    for count, (sample, rows) in enumerate(batches(finite)):
        theirs.replay_buffer.sample = lambda *_, rows=rows, **__: rows
        if before is not None:
            before(member_keys(key, count, 1)[0])
        assert bool(ours.live.update(sample, key).finite)
        theirs.train(gradient_steps=1, batch_size=ROWS)
        own = ours.get_parameters()["policy"]
        for name, value in named(theirs).items():
            np.testing.assert_allclose(own[f"members.{name}"][0], value, rtol=1e-5, atol=1e-5, err_msg=name)
    for name, value in named(theirs).items():
        if name.startswith(("online", "critics", "actor", "slow.actor", "log_alpha")):
            assert np.abs(value - first[name]).max() > 1e-4, f"{name} was not learned"


@pytest.mark.parametrize("bound", [10.0, 0.5])
def test_an_update_of_dqn_is_that_of_stable_baselines3(bound: float) -> None:
    rate: dict[str, Any] = {"learning_rate": 3e-3, "gamma": 0.9, "max_grad_norm": bound}
    theirs = theirs_of(sb3.DQN, True, **rate)
    with torch.no_grad():
        for parameter in theirs.q_net_target.parameters():
            parameter.add_(0.1)  # so that a target taken from the wrong network shows
    compare(DQN("MlpPolicy", Space(finite=True), **OURS, **rate), theirs, of_dqn, finite=True)


def test_an_update_of_td3_is_that_of_stable_baselines3(monkeypatch: pytest.MonkeyPatch) -> None:
    rate: dict[str, Any] = {"learning_rate": 3e-3, "gamma": 0.9, "tau": 0.05}
    noise: dict[str, Any] = {"target_policy_noise": 0.3, "target_noise_clip": 0.4, "policy_delay": 2}

    def same_noise(key: Any) -> None:
        drawn = np.array(jax.random.normal(key, (ROWS, 2)))
        monkeypatch.setattr(torch.Tensor, "normal_", lambda _, mean, std: mean + std * torch.as_tensor(drawn))

    theirs = theirs_of(sb3.TD3, False, **rate, **noise)
    compare(TD3("MlpPolicy", Space(finite=False), **OURS, **rate, **noise), theirs, of_td3, False, same_noise)


def test_an_update_of_sac_is_that_of_stable_baselines3(monkeypatch: pytest.MonkeyPatch) -> None:
    rate: dict[str, Any] = {"learning_rate": 3e-3, "gamma": 0.9, "tau": 0.05, "ent_coef": "auto_0.3"}

    def same_noise(key: Any) -> None:
        draws = [torch.as_tensor(np.array(jax.random.normal(k, (ROWS, 2)))) for k in jax.random.split(key, 3)[:2]]
        monkeypatch.setattr(torch.distributions.normal, "_standard_normal", lambda *_, **__: draws.pop(0))

    theirs = theirs_of(sb3.SAC, False, **rate)
    compare(SAC("MlpPolicy", Space(finite=False), **OURS, **rate), theirs, of_sac, False, same_noise)


class Counted(sb3.DQN):  # type: ignore[misc]
    """Stable-Baselines3's DQN, whose one weight says how many updates it has had."""

    def train(self, gradient_steps: int, batch_size: int = 100) -> None:
        network, target = (next(iter(each.parameters())) for each in (self.q_net, self.q_net_target))
        for _ in range(gradient_steps):
            self.seen.append(int(target.flatten()[0]))
            self._n_updates += 1
            with torch.no_grad():
                network.fill_(self._n_updates)


def versions_of_theirs(parts: list[tuple[int, bool]], envs: int, settings: dict[str, Any]) -> list[int]:
    """For each update: after how many updates the target network was taken from the network."""
    model = theirs_of(Counted, True, env=DummyVecEnv([lambda: Walk(finite=True)] * envs), **settings)
    with torch.no_grad():
        polyak_update(model.q_net.parameters(), model.q_net_target.parameters(), 1.0)
        for network in (model.q_net, model.q_net_target):
            next(iter(network.parameters())).fill_(0)
    model.seen = []
    for timesteps, anew in parts:
        model.learn(timesteps, reset_num_timesteps=anew, log_interval=None)
    seen: list[int] = model.seen
    return seen


def versions_of_ours(parts: list[tuple[int, bool]], envs: int, settings: dict[str, Any], folder: Any) -> list[int]:
    """The same of ours, which is saved and loaded between the parts."""
    versions: dict[bytes, int] = {}
    seen: list[int] = []

    def watched(model: DQN) -> DQN:
        update = model.live.update

        def spy(*arguments: Any) -> Any:
            members = model.ensemble.members
            network, target = (
                b"".join(np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(each))
                for each in (members.online, members.target)
            )
            versions.setdefault(network, len(seen))
            seen.append(versions[target])
            return update(*arguments)

        model.live.update = spy  # type: ignore[method-assign, assignment]
        return model

    def env() -> DummyVecEnv:
        return DummyVecEnv([lambda: Walk(finite=True)] * envs)

    model = watched(DQN("MlpPolicy", env(), **OURS, batch_size=4, **settings))
    for number, (timesteps, anew) in enumerate(parts):
        if number:
            model.save(folder / "model")
            model = watched(DQN.load(folder / "model", env=env()))
        model.learn(timesteps, reset_num_timesteps=anew, **RUN)
    assert len(versions) == len(seen)  # every update changed the network
    return seen


@pytest.mark.filterwarnings("ignore:The number of environments used is greater")
@pytest.mark.parametrize(
    ("envs", "settings"),
    [
        (1, {"train_freq": 4, "target_update_interval": 10}),
        (1, {"train_freq": 4, "gradient_steps": 3, "target_update_interval": 9, "learning_starts": 11}),
        (1, {"train_freq": (2, "episode"), "target_update_interval": 15}),
        (1, {"train_freq": (1, "episode"), "gradient_steps": -1, "target_update_interval": 7}),
        (4, {"train_freq": 2, "target_update_interval": 10}),
        (4, {"train_freq": 2, "gradient_steps": -1, "target_update_interval": 13}),
        (4, {"train_freq": 1, "target_update_interval": 3}),
    ],
    ids=str,
)
def test_dqn_moves_its_target_when_stable_baselines3_does(envs: int, settings: dict[str, Any], tmp_path: Any) -> None:
    settings = {"learning_starts": 0, "learning_rate": 1e-2, **settings}
    parts = [(16 * LENGTH, True), (8 * LENGTH, False), (8 * LENGTH, True)]
    wanted = versions_of_theirs(parts, envs, settings)
    assert len(set(wanted)) > 3
    assert versions_of_ours(parts, envs, settings, tmp_path) == wanted


def test_dqn_learns_from_pictures() -> None:
    env = FakeImageEnv(screen_height=10, screen_width=10, n_channels=1, discrete=True)
    small: dict[str, Any] = OURS | {"policy_kwargs": {"net_arch": [4]}, "batch_size": 4, "buffer_size": 50}
    model = DQN("CnnPolicy", env, learning_starts=4, train_freq=1, target_update_interval=7, **small)
    first = np.array(model.ensemble.members.online.trunk.layers[0].weight)
    model.learn(9, **RUN)
    network, target = (np.asarray(each.trunk.layers[0].weight) for each in model.ensemble.members[:2])
    assert 0 < np.abs(target - first).max() < np.abs(network - first).max()  # moved at step 7, before two updates
    assert 0 <= model.predict(env.observation_space.sample(), deterministic=True)[0] < env.action_space.n


def test_the_network_of_dqn_begins_as_that_of_stable_baselines3() -> None:
    env = DummyVecEnv([lambda: Space(finite=True)])
    theirs = of_dqn(sb3.DQN("MlpPolicy", env, device="cpu", seed=1))
    ours = DQN("MlpPolicy", Space(finite=True), ensemble_size=1, eval_freq=0).get_parameters()["policy"]
    for name, wanted in theirs.items():
        found = ours[f"members.{name}"][0]
        assert found.shape == wanted.shape
        bound = theirs[name.replace("bias", "weight")].shape[0] ** -0.5
        for value in (found, wanted):
            assert 0.5 * bound < np.abs(value).max() <= bound * 1.00001
            if value.size > 1000:
                assert value.std() == pytest.approx(bound / 3**0.5, rel=0.03)
