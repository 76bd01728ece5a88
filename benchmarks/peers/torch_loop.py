"""A peer: N SAC agents in PyTorch, updated one after the other in a Python loop, as the authors' code does.

Twin critics, tuned entropy, the weight over all 2N target values, at the same sizes as ours. Three styles:
`authors` does what the authors' code does: an ordinary Adam and a backward pass for each network, targets moved tensor
by tensor, a sample of its own for the weight, and the deviation of the critics at the actor's action, which is unused.
`loop` leaves out the last two, so that its work is ours. `tuned` is what a careful PyTorch programmer makes of that:
one backward pass and one fused Adam for both critics, targets moved by one fused call.
It answers each line on stdin with the seconds of its fastest of a few updates.
"""

import sys

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from turns import take_turns

OBS, ACTION, ROWS, HIDDEN = 17, 6, 256, 256
TUNED, AUTHORS = sys.argv[2:] == ["tuned"], sys.argv[2:] == ["authors"]


def mlp(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(inputs, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, outputs)
    )


class Agent:
    def __init__(self) -> None:
        self.actor = mlp(OBS, 2 * ACTION)
        self.critics = [mlp(OBS + ACTION, 1) for _ in range(2)]
        self.targets = [mlp(OBS + ACTION, 1) for _ in range(2)]
        for target, critic in zip(self.targets, self.critics, strict=True):
            target.load_state_dict(critic.state_dict())
            target.requires_grad_(False)
        self.log_alpha = torch.zeros(1, requires_grad=True)

        def adam(parameters):
            return torch.optim.Adam(parameters, lr=3e-4, fused=TUNED)

        self.actor_opt = adam(self.actor.parameters())
        groups = (
            [[p for c in self.critics for p in c.parameters()]] if TUNED else [c.parameters() for c in self.critics]
        )
        self.critic_opts = [adam(group) for group in groups]
        self.alpha_opt = adam([self.log_alpha])

    def policy(self, obs):
        mean, log_std = self.actor(obs).chunk(2, dim=1)
        log_std = log_std.clamp(-20, 2)
        noise = torch.randn_like(mean)
        action = torch.tanh(mean + log_std.exp() * noise)
        log_prob = -0.5 * noise**2 - log_std - 0.9189385 - torch.log(1 - action**2 + 1e-6)
        return action, log_prob.sum(1)

    def update(self, batch, weight, next_q, next_log_prob):
        obs, action, reward, discount, _ = batch
        alpha = self.log_alpha.exp().detach()
        target = reward + discount * (torch.minimum(*next_q) - alpha * next_log_prob)
        rows = torch.cat([obs, action], 1)
        losses = [(weight * F.mse_loss(c(rows)[:, 0], target, reduction="none")).mean() for c in self.critics]
        for loss, optimiser in zip([sum(losses)] if TUNED else losses, self.critic_opts, strict=True):
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
        new_action, log_prob = self.policy(obs)
        for c in self.critics:
            c.requires_grad_(False)
        rows = torch.cat([obs, new_action], 1)
        actor_loss = (alpha * log_prob - torch.minimum(*[c(rows)[:, 0] for c in self.critics])).mean()
        self.actor_opt.zero_grad(set_to_none=True)
        actor_loss.backward()
        self.actor_opt.step()
        for c in self.critics:
            c.requires_grad_(True)
        alpha_loss = -(self.log_alpha * (log_prob.detach() - ACTION)).mean()
        self.alpha_opt.zero_grad(set_to_none=True)
        alpha_loss.backward()
        self.alpha_opt.step()
        with torch.no_grad():
            for target, critic in zip(self.targets, self.critics, strict=True):
                if TUNED:
                    torch._foreach_lerp_(list(target.parameters()), list(critic.parameters()), 0.005)
                else:
                    for t, c in zip(target.parameters(), critic.parameters(), strict=True):
                        t.data.copy_(t.data * 0.995 + c.data * 0.005)


def opinions(agents, obs, targets):
    """Every critic's value of a fresh action of its own agent."""
    values = []
    for agent in agents:
        rows = torch.cat([obs, agent.policy(obs)[0]], 1)
        values += [c(rows)[:, 0] for c in (agent.targets if targets else agent.critics)]
    return torch.stack(values)


def update_all(agents, batch):
    next_obs = batch[4]
    backups = []
    with torch.no_grad():
        for agent in agents:
            action, log_prob = agent.policy(next_obs)
            rows = torch.cat([next_obs, action], 1)
            backups.append(([t(rows)[:, 0] for t in agent.targets], log_prob))
        votes = torch.stack([q for next_q, _ in backups for q in next_q])
        if AUTHORS:
            votes = opinions(agents, next_obs, targets=True)
            opinions(agents, batch[0], targets=False).std(0, correction=0)
        weight = torch.sigmoid(-votes.std(0, correction=0) * 20) + 0.5
    for agent, (next_q, log_prob) in zip(agents, backups, strict=True):
        agent.update(batch, weight, next_q, log_prob)


if __name__ == "__main__":
    torch.manual_seed(0)
    agents = [Agent() for _ in range(int(sys.argv[1]))]
    batch = (
        torch.randn(ROWS, OBS),
        torch.tanh(torch.randn(ROWS, ACTION)),
        torch.randn(ROWS),
        torch.full((ROWS,), 0.99),
        torch.randn(ROWS, OBS),
    )
    take_turns(lambda: update_all(agents, batch), torch.set_num_threads)
