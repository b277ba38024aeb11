"""Streams of timings of one unchanged program, as ln(seconds): what a machine does to them, made up or recorded."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from twinbench_reports.statistics.order import Array

RECORDED = Path(__file__).with_name("recorded.json")
KINDS = ("quiet", "warming up", "clock steps", "spikes", "leaning on neighbours")
_NOISE = 0.01


def draw(kind: str, trials: int, timings: int, rng: np.random.Generator) -> Array:
    """Rows of timings in the order of time, 1 % of noise each and what the kind adds."""
    logs = rng.normal(0, _NOISE, (trials, timings))
    if kind == "quiet":
        return logs
    if kind == "warming up":  # 5 % slower by the end of the first hundred timings, as a card or a laptop that heats up
        return logs + 0.05 * np.minimum(np.arange(timings) / 100, 1)
    if kind == "clock steps":  # two clocks 8 % apart, a change each two hundred timings
        return logs + 0.08 * (np.cumsum(rng.random((trials, timings)) < 0.005, axis=1) % 2)
    if kind == "spikes":  # one timing in ten has company: up to 30 % longer
        return logs + np.where(rng.random((trials, timings)) < 0.1, rng.exponential(0.1, (trials, timings)), 0)
    if kind == "leaning on neighbours":
        for index in range(1, timings):
            logs[:, index] = 0.9 * logs[:, index - 1] + np.sqrt(1 - 0.81) * logs[:, index]
        return logs
    raise ValueError(f"no stream {kind!r}; there are: {', '.join(KINDS)}")


def draw_history(kind: str, trials: int, points: int, rng: np.random.Generator) -> Array:
    """One value a run, on a machine that is quiet, warm some days, of two clocks, with company, or slow to change."""
    if kind == "warming up":
        return rng.normal(0, _NOISE, (trials, points)) + rng.uniform(0, 0.05, (trials, points))
    if kind == "clock steps":  # which clock a run meets changes each twenty runs
        steps = np.cumsum(rng.random((trials, points)) < 0.05, axis=1) % 2
        return rng.normal(0, _NOISE, (trials, points)) + 0.08 * steps
    return draw(kind, trials, points, rng)


def recorded(timings: int, step: int = 20) -> Array:
    """Windows of the recorded streams, each beginning `step` timings after the one before."""
    rows = json.loads(RECORDED.read_text(encoding="utf-8"))["streams"]
    windows = [np.log(stream["seconds"][start:start + timings]) for stream in rows
               for start in range(0, len(stream["seconds"]) - timings + 1, step)]
    return np.array(windows)
