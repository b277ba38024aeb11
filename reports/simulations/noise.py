"""Kinds of noise that timings show, as log ratios of blocks with a given deviation. Every draw comes from a seed."""

from __future__ import annotations

import numpy as np

from twinbench_reports.statistics.order import Array

KINDS = ("gaussian", "heavy-tailed", "outliers", "autocorrelated", "bimodal")
AR = 0.5


def draw(kind: str, deviation: float, shape: tuple[int, int], rng: np.random.Generator) -> Array:
    """Rows of blocks. `deviation` is the standard deviation of the undisturbed part (bimodal: of the whole)."""
    if kind == "gaussian":
        return rng.normal(0, deviation, shape)
    if kind == "heavy-tailed":  # Student's t with 3 degrees of freedom, scaled to the deviation
        return rng.standard_t(3, shape) * deviation / np.sqrt(3)
    if kind == "outliers":  # one block in ten is five times as wild
        return rng.normal(0, deviation, shape) * np.where(rng.random(shape) < 0.1, 5, 1)
    if kind == "autocorrelated":
        steps = rng.normal(0, deviation * np.sqrt(1 - AR**2), shape)
        values = np.empty(shape)
        values[:, 0] = rng.normal(0, deviation, shape[0])
        for index in range(1, shape[1]):
            values[:, index] = AR * values[:, index - 1] + steps[:, index]
        return values
    if kind == "bimodal":  # a clock of two states, each block in one of them
        return deviation * (0.9 * rng.choice([-1.0, 1.0], shape) + np.sqrt(1 - 0.81) * rng.normal(0, 1, shape))
    raise ValueError(f"no noise {kind!r}; there are: {', '.join(KINDS)}")
