"""Order statistics: median, quartiles, spread without assuming normal noise. Along the last axis of arrays."""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
NORMAL_INTERQUARTILE_RANGE = 1.3489795003921634  # 2 Phi^-1(0.75)


def finite(values: ArrayLike) -> Array:
    """The values as an array of at least one finite number; a NaN would sort to a place of no meaning."""
    array = np.asarray(values, dtype=float)
    if array.ndim == 0 or array.shape[-1] == 0:
        raise ValueError("0 values: give at least one")
    if not np.isfinite(array).all():
        raise ValueError("a sample is not a finite number: leave it out by name, never silently")
    return array


def median(values: ArrayLike) -> Array:
    """The mean of the two middle values where their number is even."""
    return np.median(finite(values), axis=-1)


def quartiles(values: ArrayLike) -> tuple[Array, Array, Array]:
    """Linear interpolation between order statistics at position q * (n - 1)."""
    ordered = np.sort(finite(values), axis=-1)

    def at(q: float) -> Array:
        position = q * (ordered.shape[-1] - 1)
        index = int(position)
        above = min(index + 1, ordered.shape[-1] - 1)
        return ordered[..., index] + (position - index) * (ordered[..., above] - ordered[..., index])

    return at(0.25), at(0.5), at(0.75)


def robust_deviation(values: ArrayLike) -> Array:
    """Interquartile range / 1.349: the standard deviation where noise is normal, undisturbed by spikes."""
    first, _, third = quartiles(values)
    return (third - first) / NORMAL_INTERQUARTILE_RANGE


@functools.cache
def _pairs(n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    return np.triu_indices(n)


def walsh_averages(values: ArrayLike) -> Array:
    """The means of all pairs, each value with itself included: n (n + 1) / 2 of them, unsorted."""
    array = finite(values)
    one, other = _pairs(array.shape[-1])
    return (array[..., one] + array[..., other]) / 2


def hodges_lehmann(values: ArrayLike) -> Array:
    """The median of all pairwise means: nearly as narrow as the mean, and it survives outliers."""
    return np.median(walsh_averages(values), axis=-1)


def lag_one_autocorrelation(values: ArrayLike) -> float | None:
    """Correlation of each value with the next; null below three values or without any spread."""
    array = np.asarray(values, dtype=float)
    if array.shape[-1] < 3:
        return None
    array = finite(array)
    deviations = array - array.mean()
    squares = float((deviations**2).sum())
    # Equal values differ from their computed mean by rounding only: their correlation would be that of rounding errors.
    rounding = float(np.abs(array).max()) * 1e-14
    if squares <= len(array) * rounding**2:
        return None
    return float((deviations[1:] * deviations[:-1]).sum()) / squares
