"""How numbers are written, everywhere the same: three significant digits, the unit once, a dash for nothing."""

from __future__ import annotations

import math

DASH = "–"


def significant(value: float | None, digits: int = 3) -> str:
    """A plain number with so many significant digits, thousands grouped; powers of ten only where plain is
    unreadable."""
    if value is None or not math.isfinite(value):
        return DASH
    if value == 0:
        return "0"
    exponent = math.floor(math.log10(abs(value)))
    if exponent < -4 or exponent >= 9:
        mantissa, power = f"{value:.{digits - 1}e}".split("e")
        return f"{mantissa}e{int(power)}"
    rounded = round(value, digits - 1 - exponent)
    exponent = math.floor(math.log10(abs(rounded)))
    return f"{rounded:,.{max(0, digits - 1 - exponent)}f}"


def ratio(value: float | None) -> str:
    """A speedup: 12.3x."""
    return DASH if value is None else significant(value) + "×"


def interval(lower: float | None, upper: float | None) -> str:
    """The interval of a ratio, in the unit of the ratio."""
    return DASH if lower is None or upper is None else f"[{significant(lower)}, {significant(upper)}]"


def integer(value: int | float | None) -> str:
    """A count."""
    return DASH if value is None else f"{value:,.0f}"


def seconds(value: float | None) -> str:
    """A duration with the unit that keeps it readable."""
    if value is None:
        return DASH
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if abs(value) >= scale:
            return f"{significant(value / scale)} {unit}"
    return "0 s" if value == 0 else f"{significant(value / 1e-9)} ns"


def percent(fraction: float | None) -> str:
    """A fraction as percent."""
    return DASH if fraction is None else f"{significant(100 * fraction)} %"


def rate(value: float | None, unit: str) -> str:
    """A ceiling: 19.8 GB/s, 1.2 TFLOP/s; 2.6 µs where it is the cost of one launch."""
    if value is None or unit == "s":
        return seconds(value)
    for prefix, scale in (("T", 1e12), ("G", 1e9), ("M", 1e6)):
        if value >= scale:
            return f"{significant(value / scale)} {prefix}{unit}"
    return f"{significant(value)} {unit}"


def binary_size(value: float | None) -> str:
    """Bytes as a person reads them."""
    if value is None:
        return DASH
    for unit, scale in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if abs(value) >= scale:
            return f"{significant(value / scale)} {unit}"
    return f"{value:,.0f} B"


def plural(count: int, noun: str, many: str = "") -> str:
    """3 cells, 1 cell."""
    return f"{count:,} {noun if count == 1 else many or noun + 's'}"


def counter(name: str, value: int | float | None) -> str:
    """A counter's value, as a size where its name says bytes."""
    return binary_size(value) if name.endswith("bytes") else integer(value)
