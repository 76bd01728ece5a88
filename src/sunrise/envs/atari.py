"""Atari games as the authors prepare them, which is not how Gymnasium's `AtariPreprocessing` does.

Each frame is resized first and the maximum of two is taken after; there are 0 to 29 no-ops, not 1 to 30; the stack
starts as zeros; and after a lost life the game goes on.
"""

from typing import Any

import gymnasium as gym
import numpy as np
from jaxtyping import UInt8

from sunrise.config.tasks import ATARI_FRAMES
from sunrise.errors import MissingExtraError, SunriseError, near

MAX_FRAMES = 108_000
"""Half an hour of play at 60 frames a second."""

Stack = UInt8[np.ndarray, "4 84 84"]
Frame = UInt8[np.ndarray, "84 84"]


def make_atari(
    env_id: str,
    *,
    training: bool = True,
    sticky_actions: float = 0.0,
    full_action_space: bool = False,
    max_frames: int = MAX_FRAMES,
    render_mode: str | None = None,
) -> "AtariGame":
    """The game `ALE/<Game>-v5`, prepared.

    `sticky_actions` is the probability that the emulator repeats the last action, which the paper leaves at 0. With
    `max_frames` a game is truncated. `training=False` gives whole games and their true scores.
    """
    require_packages()
    known = [name for name in gym.registry if name.startswith("ALE/")]
    if env_id not in known:
        raise SunriseError(f"there is no Atari game {env_id!r}.{near(env_id, known)} Ids are ALE/<Game>-v5.")
    env: gym.Env[Any, Any] = gym.make(
        env_id,
        disable_env_checker=True,
        obs_type="grayscale",
        frameskip=1,
        repeat_action_probability=sticky_actions,
        full_action_space=full_action_space,
        max_num_frames_per_episode=max_frames,
        render_mode=render_mode,
    )
    return AtariGame(env, training=training)


def require_packages() -> None:
    """Register the games, or name the extra that brings what is missing."""
    try:
        import ale_py
        import cv2  # noqa: F401
    except ImportError:
        raise MissingExtraError("an Atari game", "atari") from None
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)  # no banner on stderr


def refuse_skipping(env: gym.Env[Any, Any]) -> None:
    """Refuse an environment that skips frames already: with our four on top, an action would last sixteen."""
    layer: gym.Env[Any, Any] = env
    skips = [(env.spec.kwargs if env.spec is not None else {}).get("frameskip", 1)]
    while True:
        skips += [getattr(layer, name, 1) for name in ("frame_skip", "_frameskip", "_skip")]
        if not isinstance(layer, gym.Wrapper):
            break
        layer = layer.env
    if any(skip != 1 for skip in skips):
        raise SunriseError(
            f"{env} already skips frames: give the id of the game, or make it with frameskip=1 and no wrapper."
        )


class AtariGame(gym.Wrapper[Stack, Any, Any, Any], gym.utils.RecordConstructorArgs):
    """One game of grayscale frames, seen by an agent four frames at a time.

    In training an episode is one life, and rewards are clipped to ±1: a lost life terminates the episode, and the
    next `reset` plays on with one no-op, **also when it is given a seed**. A new game starts only when the old one
    is over, or with `reset(options={"full": True})`; its seed decides the number of no-ops and seeds the emulator, so
    all frames follow from the seed of the last new game and the actions since.

    `info` has `lives`, `raw_reward` (before clipping), `frame_number` (of this game), `game_over` and `plays_on` (the
    episode ended with a life, the game goes on).
    """

    frame_skip = action_repeat = ATARI_FRAMES
    stack = 4
    shape = (84, 84)
    noops = 30
    """A new game starts with fewer no-ops than this."""

    def __init__(self, env: gym.Env[Any, Any], *, training: bool = True) -> None:
        gym.utils.RecordConstructorArgs.__init__(self, training=training)
        gym.Wrapper.__init__(self, env)
        require_packages()
        refuse_skipping(env)
        space = env.observation_space
        if not isinstance(space, gym.spaces.Box) or len(space.shape) != 2 or space.dtype != np.uint8:
            raise SunriseError(
                f'{env} shows {space}, but must show grayscale frames: make it with obs_type="grayscale".'
            )
        self.training = training
        self.observation_space = gym.spaces.Box(0, 255, (self.stack, *self.shape), np.uint8)
        self.generator = np.random.default_rng()
        self.lives = 0
        self.plays_on = False
        """Whether the last episode ended with a life while the game goes on."""
        self.frames: Stack = np.zeros((self.stack, *self.shape), np.uint8)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Stack, dict[str, Any]]:
        """Start the next life, or a new game where the old one is over."""
        if seed is not None:
            self.generator = np.random.default_rng(seed)
        plays_on = self.plays_on and not (options or {}).get("full", False)
        screen, info = (self._play_on() if plays_on else None) or self._new_game(seed)
        self.plays_on, self.lives = False, info["lives"]
        self._see(self._resized(screen))
        return self.frames, self._told(info, 0.0, False)

    def step(self, action: Any) -> tuple[Stack, float, bool, bool, dict[str, Any]]:
        """Repeat an action four times and see the maximum of the last two frames."""
        last_two = np.zeros((2, *self.shape), np.uint8)
        points = 0.0
        for repeat in range(self.frame_skip):
            screen, reward, over, truncated, info = self.env.step(action)
            points += float(reward)
            if repeat >= self.frame_skip - 2:
                last_two[repeat - self.frame_skip] = self._resized(screen)
            if over or truncated:
                break
        self._see(last_two.max(0))
        game_over = bool(over or truncated)
        lost_life = 0 < info["lives"] < self.lives  # Q*bert plays on for a while with no life left
        self.plays_on = self.training and lost_life and not game_over
        self.lives = info["lives"]
        reward = float(np.clip(points, -1, 1)) if self.training else points
        return self.frames, reward, bool(over) or self.plays_on, bool(truncated), self._told(info, points, game_over)

    def _play_on(self) -> tuple[Any, dict[str, Any]] | None:
        """One no-op after a lost life; None if it was the game's last frame."""
        screen, _, over, truncated, info = self.env.step(0)
        return None if over or truncated else (screen, info)

    def _new_game(self, seed: int | None) -> tuple[Any, dict[str, Any]]:
        """A game from its beginning, after a random number of no-ops; a seed makes ALE load the game anew with it."""
        self.frames = np.zeros_like(self.frames)
        screen, info = self.env.reset(seed=seed)
        for _ in range(self.generator.integers(self.noops)):
            screen, _, over, truncated, info = self.env.step(0)
            if over or truncated:
                screen, info = self.env.reset()
        return screen, info

    def _resized(self, screen: np.ndarray) -> Frame:
        import cv2

        small: Frame = cv2.resize(screen, self.shape[::-1], interpolation=cv2.INTER_LINEAR).astype(np.uint8, copy=False)
        return small

    def _see(self, frame: Frame) -> None:
        """Put a frame on the stack, in a new array: whoever holds the old one may read it later."""
        self.frames = np.concatenate([self.frames[1:], frame[None]])

    def _told(self, info: dict[str, Any], points: float, game_over: bool) -> dict[str, Any]:
        return {
            "lives": info["lives"],
            "raw_reward": points,
            "frame_number": info["episode_frame_number"],
            "game_over": game_over,
            "plays_on": self.plays_on,
        }
