"""How an ensemble of learners with critics acts, and how sure it is: every critic of every member has a vote.

`one` is the learner of ONE agent. Axes: N members, K critics of each, V = N·K voters, E environments, B rows of a
batch, C candidate actions, A action.
"""

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, Shaped

from sunrise.ensemble.functions import Number, ucb_scores
from sunrise.types import Backup, Batch, Learner, Observation, State, rows


class Choice(NamedTuple):
    """An action for each environment, and which candidate it was."""

    action: Shaped[Array, "E *A"]
    candidate: Int[Array, "E"]


def pool(votes: Float[Array, "N K *rest"]) -> Float[Array, "V *rest"]:
    """votes[N, K, ...] -> votes[V, ...]: every critic of every member is a voter."""
    return votes.reshape(-1, *votes.shape[2:])


def candidates(
    one: Learner, members: State, obs: Observation, keys: Shaped[PRNGKeyArray, "N"] | None
) -> Shaped[Array, "C E *A"]:
    """members[N], obs[E], keys[N] -> what may be done: all of a finite set of actions, or what each member proposes."""
    if one.actions is not None:
        return jnp.broadcast_to(one.actions[:, None], (one.actions.size, rows(obs)))
    return jax.vmap(one.propose, (0, None, 0))(members, obs, keys)


def explore(
    one: Learner,
    members: State,
    obs: Observation,
    acting: Int[Array, "E"],
    keys: Shaped[PRNGKeyArray, "N"],
    ucb_lambda: Number,
    by: Literal["ucb", "member"],
) -> Choice:
    """members[N], obs[E], acting[E], keys[N] -> the candidate of the highest UCB, or that of the `acting` member."""
    if by == "member":
        proposals = jax.vmap(one.propose, (0, None, 0))(members, obs, keys)
        return Choice(proposals[acting, jnp.arange(rows(obs))], acting)
    options = candidates(one, members, obs, keys)
    votes = pool(
        jax.vmap(lambda state, k: jax.vmap(lambda a: one.judge(state, obs, a, k), out_axes=1)(options))(members, keys)
    )  # [V, C, E]
    best = jnp.argmax(ucb_scores(votes, ucb_lambda), axis=0)
    return Choice(options[best, jnp.arange(rows(obs))], best)


def exploit(one: Learner, members: State, obs: Observation) -> Shaped[Array, "E *A"]:
    """members[N], obs[E] -> the mean of their actions without noise, or the action of the highest mean vote."""
    if one.actions is None:
        return jax.vmap(lambda state: one.propose(state, obs, None))(members).mean(axis=0)
    options = candidates(one, members, obs, None)
    votes = jax.vmap(lambda state: jax.vmap(lambda a: one.judge(state, obs, a, None), out_axes=1)(options))(members)
    return one.actions[jnp.argmax(pool(votes).mean(axis=0), axis=0)]


def uncertainty(one: Learner, members: State, obs: Observation, action: Shaped[Array, "E *A"]) -> Float[Array, "E"]:
    """members[N], obs[E], action[E] -> the standard deviation of all votes on it."""
    return jnp.std(pool(jax.vmap(lambda state: one.judge(state, obs, action, None))(members)), axis=0)


def votes_on_what_follows(
    one: Learner, members: State, batch: Batch, backup: Backup, keys: Shaped[PRNGKeyArray, "N"], shared: bool
) -> Float[Array, "V M B"]:
    """members[N], batch[B], backup[N, B], keys[N] -> the votes of all target critics on what follows.

    Each critic votes on its own member's next action, M = 1; or, `shared`, all vote on the one of each member, M = N.
    """
    if not shared:
        return pool(backup.votes)[:, None]
    return pool(
        jax.vmap(lambda state, k: jax.vmap(lambda a: one.judge_next(state, batch, a, k), out_axes=1)(backup.action))(
            members, keys
        )
    )
