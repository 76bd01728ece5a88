"""A peer: N data-efficient Rainbow agents in PyTorch, updated one after the other, as the authors' code does.

Same sizes and work as ours: two strided convolutions, dueling noisy streams, C51, double Q, the weight over the N
target values, gradients clipped to a norm of 10, fused Adam. What a modern PyTorch offers is used: noise is drawn as
vectors, the weights of a noisy layer are one `addcmul`, and each network sees the next observations once.
"""

import sys

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from turns import take_turns

ROWS, HIDDEN, ATOMS, FEATURES = 32, 256, 51, 576
SUPPORT = torch.linspace(-10, 10, ATOMS)


class Noisy(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        bound = inputs**-0.5
        self.weight = nn.Parameter(torch.empty(outputs, inputs).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(outputs).uniform_(-bound, bound))
        self.weight_std = nn.Parameter(torch.full((outputs, inputs), 0.1 * bound))
        self.bias_std = nn.Parameter(torch.full((outputs,), 0.1 * outputs**-0.5))
        self.resample()

    def resample(self) -> None:
        noise = torch.randn(sum(self.weight.shape))
        noise = noise.sign() * noise.abs().sqrt()
        outputs, inputs = noise.split(list(self.weight.shape))
        self.noise, self.bias_noise = torch.outer(outputs, inputs), outputs

    def forward(self, x):
        weight = torch.addcmul(self.weight, self.weight_std, self.noise)
        return F.linear(x, weight, torch.addcmul(self.bias, self.bias_std, self.bias_noise))


class Network(nn.Module):
    def __init__(self, actions: int) -> None:
        super().__init__()
        self.actions = actions
        self.trunk = nn.Sequential(
            nn.Conv2d(4, 32, 5, stride=5), nn.ReLU(), nn.Conv2d(32, 64, 5, stride=5), nn.ReLU(), nn.Flatten()
        )
        self.value = nn.Sequential(Noisy(FEATURES, HIDDEN), nn.ReLU(), Noisy(HIDDEN, ATOMS))
        self.advantage = nn.Sequential(Noisy(FEATURES, HIDDEN), nn.ReLU(), Noisy(HIDDEN, actions * ATOMS))
        self.noisy = [layer for layer in self.modules() if isinstance(layer, Noisy)]

    def resample(self) -> None:
        for layer in self.noisy:
            layer.resample()

    def forward(self, obs):
        features = self.trunk(obs)
        advantage = self.advantage(features).view(-1, self.actions, ATOMS)
        return self.value(features)[:, None] + advantage - advantage.mean(1, keepdim=True)


class Agent:
    def __init__(self, actions: int) -> None:
        self.online, self.target = Network(actions), Network(actions)
        self.target.load_state_dict(self.online.state_dict())
        self.target.requires_grad_(False)
        self.adam = torch.optim.Adam(self.online.parameters(), lr=1e-4, eps=1.5e-4, fused=True)
        self.step = 0

    def backup(self, reward, discount, next_obs):
        self.online.resample()
        self.target.resample()
        best = (self.online(next_obs).softmax(-1) @ SUPPORT).argmax(1)
        probability = self.target(next_obs)[torch.arange(ROWS), best].softmax(-1)
        place = ((reward[:, None] + discount[:, None] * SUPPORT).clamp(-10, 10) + 10) / (20 / (ATOMS - 1))
        low = place.floor().clamp(max=ATOMS - 2)
        high = place - low
        goal = torch.zeros(ROWS, ATOMS)
        goal.scatter_add_(1, low.long(), probability * (1 - high))
        goal.scatter_add_(1, low.long() + 1, probability * high)
        return goal, probability @ SUPPORT

    def update(self, obs, action, weight, goal):
        logits = self.online(obs)[torch.arange(ROWS), action]
        error = -(goal * logits.log_softmax(-1)).sum(1)
        self.adam.zero_grad(set_to_none=True)
        (weight * error).mean().backward()
        nn.utils.clip_grad_norm_(self.online.parameters(), 10.0)
        self.adam.step()
        self.step += 1
        if self.step % 2000 == 0:
            self.target.load_state_dict(self.online.state_dict())
        return error.detach()


def update_all(agents, batch):
    obs, action, reward, discount, next_obs = batch
    obs, next_obs = obs.float().div_(255), next_obs.float().div_(255)
    with torch.no_grad():
        backups = [agent.backup(reward, discount, next_obs) for agent in agents]
        votes = torch.stack([value for _, value in backups])
        weight = torch.sigmoid(-votes.std(0, correction=0) * 20) + 0.5
    errors = [agent.update(obs, action, weight, goal) for agent, (goal, _) in zip(agents, backups, strict=True)]
    return torch.stack(errors).mean(0)


if __name__ == "__main__":
    torch.manual_seed(0)
    members, actions = int(sys.argv[1]), int(sys.argv[2])
    agents = [Agent(actions) for _ in range(members)]
    batch = (
        torch.randint(0, 256, (ROWS, 4, 84, 84), dtype=torch.uint8),
        torch.randint(0, actions, (ROWS,)),
        torch.randn(ROWS),
        torch.full((ROWS,), 0.99**20),
        torch.randint(0, 256, (ROWS, 4, 84, 84), dtype=torch.uint8),
    )
    take_turns(lambda: update_all(agents, batch), torch.set_num_threads)
