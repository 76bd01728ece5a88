"""Atari is prepared as in the authors' code, and every frame can be had again."""

import sys
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import AtariPreprocessing

from sunrise.config.tasks import GAMES_100K
from sunrise.envs.atari import AtariGame, make_atari, refuse_skipping
from sunrise.errors import SunriseError

ale_py = pytest.importorskip("ale_py")
cv2 = pytest.importorskip("cv2")


class Script(gym.Env[np.ndarray, Any]):
    """A game whose frame number t is a picture of t's, with lives, points and an end that the test decides."""

    def __init__(self, lives: dict[int, int] | None = None, points: float = 0, over: int = 10**9, cut: int = 10**9):
        self.observation_space = gym.spaces.Box(0, 255, (210, 160), np.uint8)
        self.action_space = gym.spaces.Discrete(2)
        self.script, self.points, self.over, self.cut = lives or {}, points, over, cut
        self.actions: list[int] = []
        self.games = 0

    def picture(self) -> np.ndarray:
        return np.full((210, 160), self.t % 256, np.uint8)

    def told(self) -> dict[str, Any]:
        return {"lives": self.lives, "episode_frame_number": self.t}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        self.t, self.lives = 0, 3
        self.games += 1
        return self.picture(), self.told()

    def step(self, action: int) -> Any:
        self.t += 1
        self.actions.append(action)
        self.lives = self.script.get(self.t, self.lives)
        return self.picture(), self.points, self.t >= self.over, self.t >= self.cut, self.told()


def start(game: AtariGame, noops: int) -> np.ndarray:
    """Reset with a seed that gives this number of no-ops."""
    seed = next(s for s in range(1000) if np.random.default_rng(s).integers(30) == noops)
    return game.reset(seed=seed)[0]


class Naive:
    """The authors' loop, straight on the emulator."""

    def __init__(self, game: str, sticky: float) -> None:
        self.ale = ale_py.ALEInterface()
        self.game, self.sticky = game, sticky

    def screen(self) -> np.ndarray:
        return np.asarray(cv2.resize(self.ale.getScreenGrayscale(), (84, 84), interpolation=cv2.INTER_LINEAR))

    def new_game(self, seed: int) -> np.ndarray:
        self.ale.setInt("random_seed", np.random.SeedSequence(seed).generate_state(2)[1].astype(np.int32))
        self.ale.setFloat("repeat_action_probability", self.sticky)
        self.ale.loadROM(ale_py.roms.get_rom_path(self.game))
        self.ale.reset_game()
        for _ in range(np.random.default_rng(seed).integers(30)):
            self.ale.act(0)
        self.stack = [np.zeros((84, 84), np.uint8)] * 3 + [self.screen()]
        self.lives = self.ale.lives()
        return np.array(self.stack)

    def next_life(self) -> np.ndarray:
        self.ale.act(0)
        self.stack = [*self.stack[1:], self.screen()]
        return np.array(self.stack)

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool]:
        points, third, fourth = 0, np.zeros((84, 84), np.uint8), np.zeros((84, 84), np.uint8)
        for repeat in (1, 2, 3, 4):
            points += self.ale.act(self.ale.getMinimalActionSet()[action])
            third = self.screen() if repeat == 3 else third
            fourth = self.screen() if repeat == 4 else fourth
            if self.ale.game_over():
                break
        self.stack = [*self.stack[1:], np.maximum(third, fourth)]
        lost, self.lives = 0 < self.ale.lives() < self.lives, self.ale.lives()
        return np.array(self.stack), float(np.sign(points)), lost or self.ale.game_over(), self.ale.game_over()


@pytest.mark.parametrize("sticky", [0.0, 0.25])
def test_frames_rewards_and_ends_are_those_of_a_naive_loop_on_the_emulator(sticky: float) -> None:
    env, naive = make_atari("ALE/Breakout-v5", sticky_actions=sticky), Naive("breakout", sticky)
    obs, _ = env.reset(seed=5)
    np.testing.assert_array_equal(obs, naive.new_game(5))
    rng, lives, rewards = np.random.default_rng(0), 0, 0.0
    for t in range(1000):
        action = int(rng.integers(env.action_space.n))  # type: ignore[attr-defined]
        obs, reward, terminated, truncated, info = env.step(action)
        expected, points, ended, over = naive.step(action)
        assert (reward, terminated, truncated, info["game_over"]) == (points, ended, False, over)
        rewards += reward
        np.testing.assert_array_equal(obs, expected)
        if over:
            break
        if ended:
            lives += 1
            obs, _ = env.reset(seed=t)
            np.testing.assert_array_equal(obs, naive.next_life())
    assert (lives, info["game_over"]) == (4, True)
    assert rewards > 0
    env.close()


def test_a_journal_of_seeds_and_actions_since_the_last_new_game_gives_the_same_frames() -> None:
    env = make_atari("ALE/Breakout-v5", sticky_actions=0.25)
    rng = np.random.default_rng(1)
    journal: list[tuple[int, list[int]]] = []
    seen: list[np.ndarray] = []
    over = True
    for episode in range(8):  # one whole game and a part of the next
        if over:
            journal, seen = [], []
        journal.append((100 + episode, []))
        seen.append(env.reset(seed=100 + episode)[0])
        ended = False
        while not ended:
            journal[-1][1].append(int(rng.integers(4)))
            obs, _, ended, _, info = env.step(journal[-1][1][-1])
            seen.append(obs)
        over = info["game_over"]
    assert 1 < len(journal) < 8
    again = make_atari("ALE/Breakout-v5", sticky_actions=0.25)
    replayed = []
    for seed, actions in journal:
        replayed.append(again.reset(seed=seed)[0])
        replayed += [again.step(action)[0] for action in actions]
    np.testing.assert_array_equal(np.array(seen), np.array(replayed))
    again.reset(seed=journal[0][0], options={"full": True})
    np.testing.assert_array_equal(again.step(journal[0][1][0])[0], seen[1])


def test_a_new_game_starts_with_a_stack_of_zeros_under_its_first_frame() -> None:
    game = AtariGame(Script())
    obs = start(game, 7)
    assert game.observation_space.contains(obs)
    assert obs[:, 0, 0].tolist() == [0, 0, 0, 7]


def test_a_new_game_has_0_to_29_no_ops_that_follow_from_the_seed() -> None:
    game = AtariGame(Script())
    counts = [game.reset(seed=seed)[1]["frame_number"] for seed in range(300)]
    assert (min(counts), max(counts)) == (0, 29)
    assert counts == [game.reset(seed=seed)[1]["frame_number"] for seed in range(300)]
    assert len({game.reset()[1]["frame_number"] for _ in range(50)}) > 5
    assert set(game.env.actions) == {0}  # type: ignore[attr-defined]


def test_an_action_lasts_four_frames_and_the_last_two_are_seen() -> None:
    game = AtariGame(Script(points=0.25))
    start(game, 0)
    obs, reward, *_ = game.step(1)
    assert obs[:, 0, 0].tolist() == [0, 0, 0, 4]
    assert game.step(1)[0][:, 0, 0].tolist() == [0, 0, 4, 8]
    assert game.env.actions == [1] * 8  # type: ignore[attr-defined]
    assert (reward, game.frame_skip) == (1.0, 4)


def test_the_maximum_is_taken_after_resizing() -> None:
    class Flicker(Script):
        def picture(self) -> np.ndarray:
            picture = np.zeros((210, 160), np.uint8)
            picture[self.t % 2 :: 2] = 255  # on raw frames, the maximum would be white all over
            return picture

    game = AtariGame(Flicker())
    start(game, 0)
    obs = game.step(0)[0][-1]
    odd, even = (np.zeros((210, 160), np.uint8) for _ in range(2))
    odd[1::2], even[0::2] = 255, 255
    resized = [cv2.resize(frame, (84, 84), interpolation=cv2.INTER_LINEAR) for frame in (odd, even)]
    np.testing.assert_array_equal(obs, np.maximum(*resized))
    assert obs.min() < 255


def test_a_lost_life_ends_the_episode_and_the_game_plays_on_with_one_no_op() -> None:
    game = AtariGame(Script(lives={6: 2}))
    start(game, 0)
    assert not game.step(1)[2]
    obs, _, terminated, truncated, info = game.step(1)
    assert (terminated, truncated, info["game_over"], info["lives"]) == (True, False, False, 2)
    obs, info = game.reset(seed=3)
    assert obs[:, 0, 0].tolist() == [0, 4, 8, 9]
    assert info["frame_number"] == 9
    assert not game.step(1)[2]
    assert game.reset(seed=3)[0][:3].max() == 0  # a reset in the middle of an episode is a new game
    assert game.env.games == 2  # type: ignore[attr-defined]


def test_a_full_reset_starts_a_new_game_also_after_a_lost_life() -> None:
    game = AtariGame(Script(lives={1: 2}))
    start(game, 0)
    assert game.step(1)[2]
    assert game.reset(options={"full": True})[0][:3].max() == 0


def test_a_game_that_ends_with_the_no_op_after_a_lost_life_is_begun_anew() -> None:
    game = AtariGame(Script(lives={1: 2}, over=5))
    start(game, 0)
    assert game.step(1)[2]
    assert game.reset(seed=0)[1]["game_over"] is False
    assert game.env.games > 1  # type: ignore[attr-defined]


def test_the_last_life_ends_the_episode_only_when_the_game_is_over() -> None:
    game = AtariGame(Script(lives={2: 0}, over=9))
    start(game, 0)
    assert not game.step(1)[2]
    assert not game.step(1)[2]
    obs, _, terminated, _, info = game.step(1)
    assert (terminated, info["game_over"]) == (True, True)
    assert obs[-1].max() == 0  # over in the first of four frames: there are no last two


def test_the_frame_limit_truncates() -> None:
    game = AtariGame(Script(cut=4, lives={4: 2}))
    start(game, 0)
    _, _, terminated, truncated, info = game.step(1)
    assert (terminated, truncated, info["game_over"]) == (False, True, True)
    game.reset()
    assert game.env.games > 1  # type: ignore[attr-defined]


@pytest.mark.parametrize(("points", "clipped"), [(3.0, 1.0), (-2.0, -1.0), (0.0, 0.0)])
def test_rewards_are_clipped_in_training_and_true_in_evaluation(points: float, clipped: float) -> None:
    for training, reward in ((True, clipped), (False, 4 * points)):
        game = AtariGame(Script(points=points, lives={1: 2}), training=training)
        start(game, 0)
        _, given, terminated, _, info = game.step(1)
        assert (given, info["raw_reward"], terminated) == (reward, 4 * points, training)


def test_an_observation_is_not_written_to_later() -> None:
    game = AtariGame(Script())
    obs = start(game, 3)
    copy = obs.copy()
    game.step(1)
    np.testing.assert_array_equal(obs, copy)


def test_an_environment_that_skips_frames_is_refused() -> None:
    skips = gym.make("ALE/Pong-v5", obs_type="grayscale", disable_env_checker=True)
    plain = gym.make("ALE/Pong-v5", frameskip=1, obs_type="grayscale", disable_env_checker=True)
    coloured = gym.make("ALE/Pong-v5", frameskip=1, disable_env_checker=True)
    refuse_skipping(plain)
    for env in (skips, AtariPreprocessing(plain), AtariGame(plain)):
        with pytest.raises(SunriseError, match="already skips frames"):
            refuse_skipping(env)
        with pytest.raises(SunriseError, match="already skips frames"):
            AtariGame(env)
    with pytest.raises(SunriseError, match="grayscale"):
        AtariGame(coloured)


def test_a_spec_makes_the_same_game_again() -> None:
    env = make_atari("ALE/Pong-v5", training=False, full_action_space=True)
    assert env.spec is not None
    assert env.action_space == gym.spaces.Discrete(18)
    again = gym.make(env.spec)
    assert again.get_wrapper_attr("training") is False
    assert again.action_space == env.action_space


def test_an_unknown_game_is_refused_with_its_neighbours() -> None:
    with pytest.raises(SunriseError, match="Did you mean ALE/Breakout-v5"):
        make_atari("ALE/Brekout-v5")


@pytest.mark.parametrize("package", ["ale_py", "cv2"])
def test_a_missing_package_names_the_extra(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(SunriseError, match=r"the extra `atari`.*pip install .*ale-py.*opencv-python-headless"):
        make_atari("ALE/Pong-v5")


def test_all_26_games_of_the_paper_can_be_played() -> None:
    assert len(set(GAMES_100K)) == 26
    for game in GAMES_100K:
        env = make_atari(f"ALE/{game}-v5")
        obs, info = env.reset()
        assert env.unwrapped.get_action_meanings()[0] == "NOOP"  # type: ignore[attr-defined]
        for _ in range(3):
            obs, reward, _, _, info = env.step(env.action_space.n - 1)  # type: ignore[attr-defined]
            assert env.observation_space.contains(obs)
            assert abs(reward) <= 1
        assert set(info) == {"lives", "raw_reward", "frame_number", "game_over", "plays_on"}
        assert obs[-1].any(), game
        env.close()
