"""Markdown for job summaries and comments: the worst first, within a byte budget, saying what was left out."""

from __future__ import annotations

import re
from collections.abc import Iterator

from twinbench_reports import machine
from twinbench_reports.cells import twin_name
from twinbench_reports.judge.findings import Finding, Verdict
from twinbench_reports.judge.timing import null_test_word, qualification_text
from twinbench_reports.load import Record
from twinbench_reports.render import numbers
from twinbench_reports.render.claims import claim_rows
from twinbench_reports.render.twins import Twin, gather_claims, gather_parity, gather_twins, telling_proofs

COMMENT_BUDGET = 64_000  # bytes; GitHub refuses a comment above 65,536 characters
SUMMARY_BUDGET = 100_000  # bytes; a job summary above 1 MiB is lost whole
_SHAPES = {"pass": "●", "fail": "▲", "inconclusive": "◆", "missing": "◇", "notice": "·"}
_RESERVE = 120  # bytes kept for the line that says what was left out


def markdown(record: Record, verdict: Verdict, budget: int = COMMENT_BUDGET) -> str:
    """The whole report in at most `budget` bytes of UTF-8: blocks go in by importance until one does not fit."""
    written: list[str] = []
    used, dropped = 0, 0
    for block in _blocks(record, verdict):
        size = len(block.encode()) + 1
        if dropped or used + size > budget - _RESERVE:
            dropped += 1
            continue
        written.append(block)
        used += size
    if dropped:
        written.append(
            f"\n*{dropped:,} more lines are left out: the limit is {budget:,} bytes. The HTML report has all.*")
    return "\n".join(written) + "\n"


def _blocks(record: Record, verdict: Verdict) -> Iterator[str]:
    """Lines that may be cut between, in the order of importance."""
    provenance, block = record.provenance, record.block
    yield f"## {_SHAPES[verdict.word]} Twinbench: {verdict.word}"
    dirty = " (with uncommitted changes)" if provenance["dirty"] else ""
    yield (
        f"\n{verdict.headline}.\n\n`{cell(provenance['revision'][:12])}`{dirty} · "
        f"{cell(machine.label(provenance))} · {cell(provenance['utc'])} · null test: {null_test_word(block)}")
    if qualification_text(block):
        yield f"\nTiming {cell(qualification_text(block))}."
    yield from findings_markdown(verdict)
    twins = gather_twins(block)
    yield from _speedups([twin for twin in twins if twin.speedup])
    yield from _proofs(twins)
    yield from _parity(record)
    yield from _scenarios(record)
    claims = claim_rows(gather_claims(block, twins))
    if claims:
        yield ("\n### Claims against measured\n\n| component | document | figure | measured here | decision | "
               "specification |\n|---|---|--:|--:|---|---|")
        for row in claims:
            yield "| " + " | ".join(
                cell(row[key]) for key in ("component", "document", "figure", "measured", "decision", "verdict")) + " |"


def findings_markdown(verdict: Verdict) -> Iterator[str]:
    if verdict.actions:
        yield "\n### Do this\n"
    for finding in verdict.actions:
        yield _finding_line(finding)
    if verdict.waived:
        yield "\n### Waived\n"
    for finding in verdict.waived:
        yield _finding_line(finding) + f" (waived {cell(finding.waiver)})"
    notices = verdict.of("notice")
    if notices:
        yield f"\n{numbers.plural(len(notices), 'notice')}:\n"
    for finding in notices:
        yield _finding_line(finding)


def _finding_line(finding: Finding) -> str:
    command = f"<br>`{cell(finding.reproduce)}`" if finding.reproduce and finding.severity != "notice" else ""
    return (f"- {_SHAPES[finding.severity]} **{finding.severity}** {finding.kind} `{cell(finding.subject)}`: "
            f"{cell(finding.text)}{command}")


def _speedups(twins: list[Twin]) -> Iterator[str]:
    if not twins:
        return
    slower = sum(1 for twin in twins if twin.speedup["verdict"] == "slower")
    yield (f"\n### Speedups (baseline over optimized, {numbers.plural(slower, 'row')} slower)\n\n"
           "| twin | speedup | interval | n | over library | verdict |\n|---|--:|---|--:|--:|---|")
    for twin in sorted(twins, key=lambda twin: (twin.ratio is not None, twin.ratio or 0, twin.key)):
        row = twin.speedup
        library = numbers.ratio(twin.library["ratio"]) if twin.library else numbers.DASH
        yield (
            f"| {cell(twin.name)} | {numbers.ratio(row['ratio'])} | {numbers.interval(row['lower'], row['upper'])} | "
            f"{row['n']} | {library} "
            f"| {row['verdict']}{' (' + cell(row['reason']) + ')' if row['reason'] else ''} |")


def _proofs(twins: list[Twin]) -> Iterator[str]:
    rows = telling_proofs(twins)
    if not rows:
        return
    yield ("\n### Proof counters (measured, expected in brackets)\n\n| twin | counter | formula | baseline | optimized "
           "| verdict |\n|---|---|---|--:|--:|---|")
    for row in rows:
        sides = (f"{numbers.integer(row[side]['measured'])} ({numbers.integer(row[side]['expected'])})"
                 for side in ("baseline", "optimized"))
        yield (f"| {cell(twin_name(row))} | {cell(row['counter'])} | {cell(row['formula'])} | {' | '.join(sides)} | "
               f"{row['verdict']} |")
    others = sum(len(twin.proofs) for twin in twins) - len(rows)
    if others:
        yield f"\n{numbers.plural(others, 'smaller case')} of the same counters hold too."


def _parity(record: Record) -> Iterator[str]:
    views = gather_parity(record.block)
    if not views:
        return
    yield ("\n### Parity (worst error over allowed error)\n\n| component | worst ratio | max absolute | max relative | "
           "checks |\n|---|--:|--:|--:|---|")
    for view in sorted(views, key=lambda view: (view.verdict in
                                                ("pass", "skip"), -(view.worst_ratio or 0), view.component)):
        checks = ", ".join(f"{count} {word}" for word, count in view.verdicts.items() if count)
        yield (
            f"| {cell(view.component)} {view.device} {view.dtype} | {numbers.significant(view.worst_ratio)} | "
            f"{numbers.significant(view.max_absolute)} "
            f"| {numbers.significant(view.max_relative)} | {checks} |")


def _scenarios(record: Record) -> Iterator[str]:
    rows = record.block["scenarios"]
    if rows:
        yield "\n### Scenarios\n\n| scenario | verdict | speedup | criteria |\n|---|---|--:|---|"
    for row in sorted(rows, key=lambda row: (row["verdict"] == "pass", row["name"])):
        speedup = row["speedup"]
        text = numbers.ratio(
            speedup["ratio"]) + (" (extrapolated)" if speedup["extrapolated"] else "") if speedup else numbers.DASH
        criteria = "; ".join(f"{criterion['name']}: {criterion['verdict']}" for criterion in row["criteria"])
        yield f"| {cell(row['name'])} {row['device']} | {row['verdict']} | {text} | {cell(criteria)} |"


def cell(text: str) -> str:
    """Text that stays in its table cell and starts no markup, mention or link of its own."""
    text = re.sub(r"\s+", " ", str(text)).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace("|", "\\|").replace("`", "'").replace("@", "&#64;")
