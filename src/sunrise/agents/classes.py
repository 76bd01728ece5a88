"""The user-facing classes, one an algorithm; `classes.pyi` has their keywords as types (`make keywords`)."""

from sunrise.agents.agent import Agent


class SAC(Agent, algo="sac"):
    """Soft Actor-Critic, as an ensemble of agents."""


class TD3(Agent, algo="td3"):
    """Twin Delayed Deep Deterministic Policy Gradient, as an ensemble of agents."""


class DisCor(Agent, algo="discor"):
    """Soft Actor-Critic with DisCor's error weights, as an ensemble of agents."""


class Rainbow(Agent, algo="rainbow"):
    """Data-efficient Rainbow for Atari and other finite sets of actions, as an ensemble of agents."""


class DQN(Agent, algo="dqn"):
    """Deep Q-Learning for finite sets of actions, as an ensemble of agents: Rainbow with its components off."""


class RAD(Agent, algo="rad"):
    """Soft Actor-Critic from randomly cropped pictures, as an ensemble of agents; also plain SAC from pixels."""


class DrQ(Agent, algo="drq"):
    """Soft Actor-Critic from pictures with values averaged over random shifts, as an ensemble of agents."""


class CURL(Agent, algo="curl"):
    """Soft Actor-Critic from pictures with a contrastive loss, as an ensemble of agents."""


class Random(Agent, algo="random"):
    """An agent that acts uniformly at random and learns nothing: the floor of every comparison."""


AGENTS: dict[str, type[Agent]] = {cls.algo: cls for cls in (SAC, TD3, DisCor, Rainbow, DQN, RAD, DrQ, CURL, Random)}
