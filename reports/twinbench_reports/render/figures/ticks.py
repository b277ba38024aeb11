"""Ticks of ratio, percent and duration axes, written as people say them."""

from __future__ import annotations

import math
from collections.abc import Callable

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, NullLocator

from twinbench_reports.render import numbers


def nice_steps(lower: float, upper: float, most: int = 9) -> list[float]:
    """1-2-5 steps from lower to upper on a log axis, thinned to at most so many."""
    decades = range(math.floor(math.log10(lower)), math.ceil(math.log10(upper)) + 1)
    for mantissas in ((1, 2, 5), (1, 3), (1,)):
        steps = [mantissa * 10.0**decade for decade in decades for mantissa in mantissas]
        steps = [step for step in steps if lower * 0.999 <= step <= upper * 1.001]
        if len(steps) <= most:
            return steps
    stride = math.ceil(len(steps) / most)
    return steps[::stride]


def log_axis(axes: Axes, which: str, lower: float, upper: float, write: Callable[[float], str], most: int = 9) -> None:
    """A log axis between the limits with few labels."""
    axis = getattr(axes, f"{which}axis")
    getattr(axes, f"set_{which}scale")("log")
    getattr(axes, f"set_{which}lim")(lower, upper)
    steps = nice_steps(lower, upper, most)
    axis.set_major_locator(FixedLocator(steps))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(lambda value, _position: write(value))


def short(value: float) -> str:
    """1, 0.5, 1000, 1e-6: an axis label."""
    return f"{value:g}"


def times(value: float) -> str:
    return f"{value:g}×"


def percent(value: float) -> str:
    return f"{100 * value:g} %"


def rate(unit: str) -> Callable[[float], str]:
    return lambda value: numbers.rate(value, unit).replace(".00", "").replace(".0 ", " ")
