"""A peer: one Stable-Baselines3 SAC agent's update at the same sizes."""

import gymnasium as gym
import numpy as np
import torch
from stable_baselines3 import SAC
from stable_baselines3.common.logger import configure

from turns import take_turns


class Noise(gym.Env):
    """Spaces of HalfCheetah's sizes; it is only stepped to fill the buffer."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (17,), np.float32)
    action_space = gym.spaces.Box(-1, 1, (6,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.np_random.standard_normal(17, np.float32), {}

    def step(self, action):
        return self.np_random.standard_normal(17, np.float32), 0.0, False, False, {}


if __name__ == "__main__":
    model = SAC("MlpPolicy", Noise(), batch_size=256, buffer_size=5000, learning_starts=10**9, device="cpu", seed=0)
    model.set_logger(configure(None, []))
    model.learn(2000)
    take_turns(lambda: model.train(gradient_steps=1, batch_size=256), torch.set_num_threads)
