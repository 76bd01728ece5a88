"""SUNRISE: the paper's three functions, weights for backups, and an ensemble of any learner."""

from sunrise.config.ensemble import EnsembleSettings, Weighting, resolve_temperature, resolve_weighting
from sunrise.ensemble.functions import bootstrap_mask, confidence_weight, ucb_scores
from sunrise.ensemble.members import (
    Choice,
    Ensemble,
    EnsembleNumbers,
    Report,
    Sunrise,
    Tally,
    build,
    pool,
)
from sunrise.ensemble.weights import looks_at_disagreement

__all__ = [
    "Choice",
    "Ensemble",
    "EnsembleNumbers",
    "EnsembleSettings",
    "Report",
    "Sunrise",
    "Tally",
    "Weighting",
    "bootstrap_mask",
    "build",
    "confidence_weight",
    "looks_at_disagreement",
    "pool",
    "resolve_temperature",
    "resolve_weighting",
    "ucb_scores",
]
