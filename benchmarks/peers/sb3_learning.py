"""A peer: a Stable-Baselines3 agent trained and evaluated as ours are. Its settings come as one JSON argument."""

import csv
import json
import os
import platform
import sys
import time
from importlib import metadata

import gymnasium as gym
import numpy as np
import torch
from stable_baselines3 import DQN, SAC
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.evaluation import evaluate_policy

FIELDS = ("timesteps", "mean_return", "std_return", "min_return", "max_return", "episodes")
PACKAGES = ("stable-baselines3", "torch", "numpy", "gymnasium", "mujoco")


class Evaluate(BaseCallback):
    """A row of eval.csv every so many timesteps, and the time that has passed in metrics.jsonl."""

    def __init__(self, env, every, episodes, seed, folder):
        super().__init__()
        self.env, self.every, self.episodes, self.seed, self.folder = env, every, episodes, seed, folder
        self.began = time.monotonic()

    def _on_step(self):
        if self.num_timesteps % self.every == 0:
            self.env.reset(seed=self.seed)
            returns, _ = evaluate_policy(
                self.model, self.env, self.episodes, deterministic=True, return_episode_rewards=True, warn=False
            )
            row = (self.num_timesteps, np.mean(returns), np.std(returns), min(returns), max(returns), len(returns))
            write_row(self.folder, row)
            passed = {"timesteps": self.num_timesteps, "time/elapsed_s": time.monotonic() - self.began}
            with open(os.path.join(self.folder, "metrics.jsonl"), "a") as file:
                file.write(json.dumps(passed) + "\n")
        return True


def write_row(folder, row):
    with open(os.path.join(folder, "eval.csv"), "a", newline="") as file:
        csv.writer(file, lineterminator="\n").writerow(row)


def machine():
    """The machine, under the names that our own runs have for it."""
    with open("/proc/cpuinfo") as file:
        cpu = next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    cores = len(os.sched_getaffinity(0))
    return {"cpu": cpu, "cores": cores, "system": platform.platform(), "python": platform.python_version()}


def make(about):
    shared = {"seed": about["seed"], "device": "cpu"}
    env = gym.make(about["env_id"])
    if about["algo"] == "sb3-sac":
        return SAC("MlpPolicy", env, learning_starts=1000, batch_size=256, **shared)
    names = ("learning_rate", "batch_size", "buffer_size", "learning_starts", "target_update_interval")
    return DQN(
        "MlpPolicy",
        env,
        train_freq=1,
        gradient_steps=1,
        exploration_initial_eps=0.1,
        exploration_final_eps=0.1,
        max_grad_norm=10,
        policy_kwargs={"net_arch": [64, 64], "optimizer_kwargs": {"eps": 1e-8}},
        **{name: about[name] for name in names},
        **shared,
    )


if __name__ == "__main__":
    about = json.loads(sys.argv[1])
    torch.set_num_threads(1)
    folder = about["run_dir"]
    os.makedirs(folder, exist_ok=True)
    made_by = {"versions": {name: metadata.version(name) for name in PACKAGES}, "machine": machine()}
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump({"algo": about["algo"], "settings": about, **made_by, "command": ["python", *sys.argv]}, file)
    write_row(folder, FIELDS)
    evaluate = Evaluate(
        gym.make(about["env_id"]), about["eval_freq"], about["eval_episodes"], about["seed"] + 1000, folder
    )
    make(about).learn(about["total_timesteps"], callback=evaluate)
    with open(os.path.join(folder, "status.json"), "w") as file:
        json.dump({"status": "finished", "timesteps": about["total_timesteps"]}, file)
