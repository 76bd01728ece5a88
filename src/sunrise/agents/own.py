"""Agents of an algorithm that is not ours."""

from sunrise.agents.agent import Agent
from sunrise.agents.classes import AGENTS
from sunrise.config.algorithms import ALGORITHMS, Algorithm
from sunrise.config.algorithms import algorithm as ours
from sunrise.config.own import checked, own_algorithm


def agent(algorithm: Algorithm | str) -> type[Agent]:
    """A class of agents like `SAC` for an algorithm: one of your own, or `module:NAME` of one, or the name of ours."""
    if isinstance(algorithm, str):
        algorithm = own_algorithm(algorithm) if ":" in algorithm else ours(algorithm)
    if ALGORITHMS.get(algorithm.name) is algorithm:
        return AGENTS[algorithm.name]

    class Own(Agent, algo=checked(algorithm)):
        pass

    Own.__name__ = Own.__qualname__ = algorithm.name.upper()
    return Own
