"""What the card did: traced work and memory of each cell, and the card over each engine's jobs; or why there is none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from twinbench_reports.cells import Row
from twinbench_reports.render import numbers

_MOST = 400  # rows of the memory table


def activity_rows(block: Row) -> list[Row]:
    """Each traced cell, its totals divided by the runs that were traced; the idlest device first."""
    rows = []
    for row in block["counters"]:
        activity = row.get("device_activity")
        if activity and activity["runs"]:
            runs = activity["runs"]
            rows.append({"cell": row["cell"], "runs": runs, "busy_share": activity["busy_share"], "longest_gap_s": activity.get("longest_gap_s")}
                        | {key: activity[key] / runs for key in ("kernels", "graph_launches", "copies", "copied_bytes", "synchronisations", "busy_s", "gap_s")})
    return sorted(rows, key=lambda row: (row["busy_share"] is None, row["busy_share"], row["cell"]))


def memory_rows(block: Row) -> list[Row]:
    """Each cell's memory from set-up to its end: what leaks first, then the largest."""
    rows = [{"cell": row["cell"], "host": row["memory"]["host"], "device": row["memory"]["device"] or {}, "leaks": leaked(row["memory"])}
            for row in block["counters"] if row.get("memory")]
    return sorted(rows, key=lambda row: (not row["leaks"], -max(row["host"]["peak_bytes"], row["device"].get("peak_bytes", 0)), row["cell"]))[:_MOST]


def leaked(memory: Row) -> bool:
    """Whether anything outlives the cell, on the host or on the device."""
    return any(side and side["leaked_bytes"] for side in (memory["host"], memory["device"]))


def timeline_rows(block: Row) -> list[dict[str, Any]]:
    """The card over each engine's jobs in a line; `reason` where it was not sampled."""
    rows = []
    for timeline in block.get("timelines", []):
        samples = timeline["samples"]
        row = {"engine": timeline["engine"], "reason": timeline["reason"], "jobs": len(timeline["jobs"])}
        if samples and samples["seconds"]:
            throttled = {name for names in samples.get("throttle_reasons", []) for name in names or []}
            row |= {"seconds": samples["seconds"][-1], "energy_j": samples["energy_j"], "throttle_reasons": ", ".join(sorted(throttled)) or "none"}
            for key in ("utilisation_percent", "power_w", "temperature_c", "sm_clock_mhz"):
                known = [value for value in samples.get(key, []) if value is not None]
                row[key] = (sum(known) / len(known), min(known), max(known)) if known else None
        rows.append(row)
    return rows


def device_finding(block: Row) -> str:
    """One sentence on the trace and one on leaks; absence with its most frequent reason."""
    rows = activity_rows(block)
    if rows:
        shares = [row["busy_share"] for row in rows if row["busy_share"] is not None]
        text = f"{numbers.plural(len(rows), 'cell')} traced" + (f", the device busy {numbers.percent(min(shares))} to {numbers.percent(max(shares))} of its span." if shares else ".")
    else:
        reasons = Counter(row["device_activity_reason"] for row in block["counters"] if row.get("device_activity_reason"))
        text = f"No device work was traced: {reasons.most_common(1)[0][0]}." if reasons else "No device work was traced."
    watched = [row for row in block["counters"] if row.get("memory")]
    leaking = sum(1 for row in watched if leaked(row["memory"]))
    if watched:
        text += f" {leaking or 'None'} of {numbers.plural(len(watched), 'cell')} left memory behind."
    return text


def card_facts(gpu: Row | None) -> Sequence[tuple[str, str]]:
    """The card's facts in words, nested ones flat; what the card does not give is left out."""
    facts: list[tuple[str, str]] = []
    for key, value in sorted((gpu or {}).items()):
        if isinstance(value, dict):
            facts += [(f"{key} {name}", str(one)) for name, one in sorted(value.items()) if one is not None]
        elif isinstance(value, list):
            facts.append((key, "; ".join(map(str, value)) or "none"))
        elif key.endswith("bytes") and value is not None:
            facts.append((key, numbers.binary_size(value)))
        elif value is not None:
            facts.append((key, {True: "on", False: "off"}.get(value, str(value)) if isinstance(value, bool) else str(value)))
    return [(key.replace("_", " "), value) for key, value in facts]
