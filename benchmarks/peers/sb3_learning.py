"""A peer: a Stable-Baselines3 agent trained and evaluated as ours are. Its settings come as one JSON argument."""

import csv
import json
import os
import sys

import gymnasium as gym
import numpy as np
import torch
from stable_baselines3 import DQN, SAC
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.evaluation import evaluate_policy

FIELDS = ("timesteps", "mean_return", "std_return", "min_return", "max_return", "episodes")


class Evaluate(BaseCallback):
    """A row of eval.csv every so many timesteps."""

    def __init__(self, env, every, episodes, seed, path):
        super().__init__()
        self.env, self.every, self.episodes, self.seed, self.path = env, every, episodes, seed, path

    def _on_step(self):
        if self.num_timesteps % self.every == 0:
            self.env.reset(seed=self.seed)
            returns, _ = evaluate_policy(
                self.model, self.env, self.episodes, deterministic=True, return_episode_rewards=True, warn=False
            )
            row = (self.num_timesteps, np.mean(returns), np.std(returns), min(returns), max(returns), len(returns))
            with open(self.path, "a", newline="") as file:
                csv.writer(file, lineterminator="\n").writerow(row)
        return True


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
    versions = {"torch": torch.__version__, "stable-baselines3": __import__("stable_baselines3").__version__}
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump({"algo": about["algo"], "settings": about, "versions": versions, "machine": {"cores": 1}}, file)
    path = os.path.join(folder, "eval.csv")
    with open(path, "w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerow(FIELDS)
    evaluate = Evaluate(
        gym.make(about["env_id"]), about["eval_freq"], about["eval_episodes"], about["seed"] + 1000, path
    )
    make(about).learn(about["total_timesteps"], callback=evaluate)
    with open(os.path.join(folder, "status.json"), "w") as file:
        json.dump({"status": "finished", "timesteps": about["total_timesteps"]}, file)
