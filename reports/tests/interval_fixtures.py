"""Writes interval_fixtures.json, which the C++ harness and this package must both agree with: `python FILE`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from twinbench_reports.statistics import order, paired, sign_test

FILE = Path(__file__).with_name("interval_fixtures.json")
CONFIDENCES = (0.95, 0.99)


def samples() -> list[list[float]]:
    """Continuous, tied, constant, spiky and drifting log ratios, of 1 to 64 values rounded to six decimals."""
    rng = np.random.default_rng(15)
    found = []
    for n in (1, 2, 3, 5, 6, 7, 8, 9, 12, 20, 33, 48, 64):
        found += [rng.normal(0.1, 0.02, n), np.round(rng.normal(0, 0.02, n), 2), np.full(n, 0.1),
                  rng.normal(0, 0.01, n) * np.where(rng.random(n) < 0.2, 10, 1), np.cumsum(rng.normal(0, 0.01, n)),
                  0.02 * (-1.0)**np.arange(n) + rng.normal(0, 0.004, n)]
    return [[float(value) for value in np.round(values, 6)] for values in found]


def expected(values: list[float]) -> dict[str, object]:
    """What the package says of one sample."""
    first, middle, third = order.quartiles(values)
    row: dict[str, object] = {
        "values": values, "median": float(middle), "first_quartile": float(first), "third_quartile": float(third),
        "hodges_lehmann": float(order.hodges_lehmann(values)),
        "robust_deviation": float(order.robust_deviation(values)),
        "autocorrelation": order.lag_one_autocorrelation(values), "at": []}
    for confidence in CONFIDENCES:
        estimate = paired.estimate_ratio(values, confidence)
        row["at"].append({  # type: ignore[attr-defined]
            "confidence": confidence, "sign_test": sign_test.interval(values, confidence),
            "estimate": {"log_ratio": estimate.log_ratio, "interval": estimate.interval, "count": estimate.count,
                         "block_size": estimate.block_size},
            "minimum_detectable": sign_test.minimum_detectable(len(values), float(order.robust_deviation(values)),
                                                               confidence)})
    return row


if __name__ == "__main__":
    lines = ",\n".join(json.dumps(expected(values)) for values in samples())
    FILE.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
