"""SUNRISE: the paper's three functions, weights for backups, members by `vmap`, voting, and all of it compiled."""

from sunrise.config.ensemble import EnsembleSettings, Weighting, resolve_temperature, resolve_weighting
from sunrise.ensemble.build import EnsembleNumbers, Numbers, Report, Sunrise, build
from sunrise.ensemble.functions import bootstrap_mask, confidence_weight, ucb_scores
from sunrise.ensemble.members import Change, Ensemble, Tally, accept, member_keys, new_ensemble
from sunrise.ensemble.placement import Placement, on_device, over_devices
from sunrise.ensemble.voting import Choice, pool
from sunrise.ensemble.weights import (
    Evidence,
    RunningMean,
    Scheme,
    looks_at_disagreement,
    new_running_mean,
    register_weighting,
)

__all__ = [
    "Change",
    "Choice",
    "Ensemble",
    "EnsembleNumbers",
    "EnsembleSettings",
    "Evidence",
    "Numbers",
    "Placement",
    "Report",
    "RunningMean",
    "Scheme",
    "Sunrise",
    "Tally",
    "Weighting",
    "accept",
    "bootstrap_mask",
    "build",
    "confidence_weight",
    "looks_at_disagreement",
    "member_keys",
    "new_ensemble",
    "new_running_mean",
    "on_device",
    "over_devices",
    "pool",
    "register_weighting",
    "resolve_temperature",
    "resolve_weighting",
    "ucb_scores",
]
