"""What the card did: traced work and memory of each cell, and the card over each engine's jobs; or why there is
none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from twinbench_reports.cells import Row
from twinbench_reports.render import numbers

_MOST = 400  # rows of the memory table
_COLUMNS = ("utilisation_percent", "power_w", "temperature_c", "sm_clock_mhz", "memory_clock_mhz", "memory_used_bytes",
            "throttle_reasons")


def activity_rows(block: Row) -> list[Row]:
    """Each traced cell, its totals divided by the runs that were traced; the idlest device first."""
    rows = []
    for row in block["counters"]:
        activity = row.get("device_activity")
        if activity and activity["runs"]:
            runs = activity["runs"]
            sums = ("kernels", "graph_launches", "copies", "copied_bytes", "synchronisations", "busy_s", "gap_s")
            rows.append({
                "cell": row["cell"],
                "runs": runs,
                "busy_share": activity["busy_share"],
                "longest_gap_s": activity.get("longest_gap_s"),
                **{key: activity[key] / runs for key in sums},
            })
    return sorted(rows, key=lambda row: (row["busy_share"] is None, row["busy_share"], row["cell"]))


def memory_rows(block: Row) -> list[Row]:
    """Each cell's memory from set-up to its end: what leaks first, then the largest."""
    rows = [{
        "cell": row["cell"],
        "host": row["memory"]["host"],
        "device": row["memory"]["device"] or {},
        "leaks": leaked(row["memory"])} for row in block["counters"] if row.get("memory")]
    return sorted(
        rows, key=lambda row:
        (not row["leaks"], -max(row["host"]["peak_bytes"], row["device"].get("peak_bytes", 0)), row["cell"]))[:_MOST]


def leaked(memory: Row) -> bool:
    """Whether anything outlives the cell, on the host or on the device."""
    return any(side and side["leaked_bytes"] for side in (memory["host"], memory["device"]))


def joined_timelines(block: Row) -> list[Row]:
    """One timeline an engine: a merged record holds one for every component. Time goes on where the one before
    ended."""
    joined: dict[str, Row] = {}
    for part in block.get("timelines", []):
        whole = joined.setdefault(part["engine"], {
            "engine": part["engine"],
            "reason": part["reason"],
            "samples": None,
            "jobs": []})
        samples = part["samples"]
        if not samples or not samples["seconds"]:
            continue
        if whole["samples"] is None:
            whole |= {"reason": "", "samples": {key: [] for key in (*_COLUMNS, "seconds")} | {"energy_j": 0.0}}
        sums = whole["samples"]
        offset = sums["seconds"][-1] + samples["period_s"] if sums["seconds"] else 0.0
        sums["seconds"] += [offset + second for second in samples["seconds"]]
        for key in _COLUMNS:
            sums[key] += samples.get(key) or [None] * len(samples["seconds"])
        known = sums["energy_j"] is not None and samples["energy_j"] is not None
        sums["energy_j"] = sums["energy_j"] + samples["energy_j"] if known else None
        whole["jobs"] += part["jobs"]
    return list(joined.values())


def timeline_rows(timelines: Sequence[Row]) -> list[dict[str, Any]]:
    """The card over each engine's jobs in a line; `reason` where it was not sampled."""
    rows = []
    for timeline in timelines:
        samples = timeline["samples"]
        row = {"engine": timeline["engine"], "reason": timeline["reason"], "jobs": len(timeline["jobs"])}
        if samples:
            throttled = {name for names in samples["throttle_reasons"] for name in names or []}
            row |= {
                "seconds": samples["seconds"][-1],
                "energy_j": samples["energy_j"],
                "throttle_reasons": ", ".join(sorted(throttled)) or "none"}
            for key in ("utilisation_percent", "power_w", "temperature_c", "sm_clock_mhz"):
                known = [value for value in samples[key] if value is not None]
                row[key] = (sum(known) / len(known), min(known), max(known)) if known else None
        rows.append(row)
    return rows


def device_finding(block: Row) -> str:
    """One sentence on the trace and one on leaks; absence with its most frequent reason."""
    rows = activity_rows(block)
    if rows:
        shares = [row["busy_share"] for row in rows if row["busy_share"] is not None]
        text = f"{numbers.plural(len(rows), 'cell')} traced" + (
            f", the device busy {numbers.percent(min(shares))} to {numbers.percent(max(shares))} of its span."
            if shares else ".")
    else:
        reasons = Counter(row["device_activity_reason"] for row in block["counters"]
                          if row.get("device_activity_reason"))
        why = f": {reasons.most_common(1)[0][0]}" if reasons else ""
        text = f"No device work was traced{why}."
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
            facts.append((key, {
                True: "on",
                False: "off"}.get(value, str(value)) if isinstance(value, bool) else str(value)))
    return [(key.replace("_", " "), value) for key, value in facts]
