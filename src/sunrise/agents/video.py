"""A film of the agent: one or more noiseless episodes of a run's last good checkpoint, as an MP4."""

import os
import subprocess
from pathlib import Path
from typing import Any, BinaryIO

import gymnasium as gym
import numpy as np

from sunrise.agents import load_run
from sunrise.config.algorithms import Algorithm
from sunrise.config.groups import env_options
from sunrise.config.tasks import RendererChoice
from sunrise.envs.make import AnyEnv, make_env
from sunrise.envs.renderers import PACKAGES, resolve
from sunrise.errors import MissingExtraError, SunriseError
from sunrise.files.folder import Folder
from sunrise.randomness import episode_seed
from sunrise.store.tensors import handle_of

FPS = 30
"""Pictures a second where an environment does not say."""


def record_run(
    run: Path,
    out: Path | None = None,
    episodes: int = 1,
    seed: int | None = None,
    renderer: RendererChoice | None = None,
    trust_env: bool = False,
    algorithm: Algorithm | None = None,
) -> tuple[Path, float]:
    """Write the film; returns where it is and the mean return. The episodes are those of an evaluation."""
    ffmpeg = find_ffmpeg()
    if episodes < 1:
        raise SunriseError(f"episodes is {episodes}, but must be at least 1.")
    model = load_run(run, renderer, trust_env, algorithm)
    own, out = out is not None, out or run / "videos" / f"step-{model.num_timesteps:09d}.mp4"
    seed = model.config.run.seed if seed is None else seed
    own_options = env_options(model.config.env, model.config.run.env_id)
    env = make_seen(model.config.run.env_id, {"wrappers": model.config.run.wrapper, **own_options})
    videos = Folder(out.parent) if own else Folder(run).sub("videos")
    returns: list[float] = []

    def film(file: BinaryIO) -> None:
        first = picture(env, seed=episode_seed(seed, "evaluation", 0, 0))
        command = encode(ffmpeg, file, first, env.metadata.get("render_fps") or FPS)
        with subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[file.fileno()]) as process:
            assert process.stdin is not None
            for episode in range(episodes):
                obs, _ = env.reset(seed=episode_seed(seed, "evaluation", 0, episode))
                process.stdin.write(picture(env).tobytes())
                total, over = 0.0, False
                while not over:
                    action, _ = model.predict(obs, deterministic=True)
                    obs, reward, terminated, truncated, _ = env.step(action)
                    total, over = total + float(reward), terminated or truncated
                    process.stdin.write(picture(env).tobytes())
                returns.append(total)
        if process.returncode:
            raise SunriseError(f"ffmpeg could not write {out} (exit {process.returncode}).")

    try:
        videos.make()
        videos.write_by(out.name, film)
    except gym.error.DependencyNotInstalled:  # what draws is asked for when it first draws
        raise MissingExtraError(f"a film of {model.config.run.env_id}", "video") from None
    finally:
        env.close()
    return out, float(np.mean(returns))


def make_seen(env_id: str, options: dict[str, Any]) -> AnyEnv:
    """The environment with pictures; without a display, Gymnasium's MuJoCo draws by EGL or OSMesa."""
    try:
        env = make_env(env_id, training=False, render_mode="rgb_array", **options)
    except (TypeError, gym.error.Error, SunriseError) as error:
        raise SunriseError(f"the environment {env_id!r} cannot be filmed: {error}") from None
    from gymnasium.envs.mujoco import MujocoEnv  # after MuJoCo was imported as `sunrise.envs` does it

    if isinstance(env.unwrapped, MujocoEnv) and not os.environ.get("DISPLAY"):
        if (backend := resolve("auto")) == "warp":
            raise SunriseError(f"a film of {env_id} needs OpenGL: `apt install {PACKAGES['egl']}`.")
        os.environ.setdefault("MUJOCO_GL", backend)
    return env


def find_ffmpeg() -> str:
    """The encoder, which comes with a package of its own."""
    try:
        from imageio_ffmpeg import get_ffmpeg_exe  # type: ignore[import-untyped]
    except ImportError:
        raise MissingExtraError("a film", "video") from None
    return str(get_ffmpeg_exe())


def encode(ffmpeg: str, out: BinaryIO, first: np.ndarray, fps: int) -> list[str]:
    """The command that makes a film of raw pictures on its standard input."""
    height, width, _ = first.shape
    given = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", str(fps), "-i", "-"]
    wanted = ["-c:v", "libx264", "-pix_fmt", "yuv420p", "-f", "mp4", handle_of(out)]
    return [ffmpeg, "-loglevel", "error", "-y", *given, *wanted]


def picture(env: AnyEnv, seed: int | None = None) -> np.ndarray:
    """What a viewer sees now, or with a seed at the start of its episode; sides are even, as the format asks."""
    try:
        if seed is not None:
            env.reset(seed=seed)
        drawn = np.asarray(env.render(), np.uint8)
    except gym.error.Error as error:
        raise SunriseError(f"this environment cannot be filmed: {error}") from None
    return drawn[: drawn.shape[0] // 2 * 2, : drawn.shape[1] // 2 * 2]
