"""`twinbench-report table`: the record at a glance in a terminal, one line a twin."""

from __future__ import annotations

from twinbench_reports import machine
from twinbench_reports.cells import Row
from twinbench_reports.judge.findings import Verdict
from twinbench_reports.judge.timing import null_test_word
from twinbench_reports.load import Record
from twinbench_reports.render import numbers
from twinbench_reports.render.columns import Style, render_columns
from twinbench_reports.render.modelled import MODELLED_HEAD, gather_modelled, modelled_rows
from twinbench_reports.render.twins import Twin, gather_claims, gather_parity, gather_twins, telling_proofs

HEAD = ("twin", "speedup", "interval", "verdict", "proof counter", "parity", "roofline", "claim", "over library")
PARTS = "host × gaps × kernels"


def table_text(record: Record, verdict: Verdict, style: Style) -> str:
    """Verdict, table, then what to do."""
    block = record.block
    twins = gather_twins(block)
    claims = {view.component: view for view in reversed(gather_claims(block, twins)) if view.claimed is not None}
    parity = {(view.component, view.device, view.dtype): view for view in gather_parity(block)}
    telling = telling_proofs(twins)
    shown = [twin for twin in twins if twin.speedup or any(row["verdict"] != "pass" for row in twin.proofs)]
    if not any(twin.speedup for twin in twins):
        shown = [twin for twin in twins if any(row in telling for row in twin.proofs)]
    rows = [_row(twin, _proofs_for(twin, telling), parity, claims) for twin in shown]
    lines = [
        style.paint(f"{verdict.word}: {verdict.headline}", verdict.word),
        f"{record.provenance['revision'][:12]} · {machine.label(record.provenance)} · null test: "
        f"{null_test_word(block)}",
        ""]
    head = HEAD
    if any(twin.decomposed for twin in shown):
        head, rows = (*HEAD, PARTS), [(*row, _parts(twin)) for row, twin in zip(rows, shown)]
    text = "\n".join(lines) + (render_columns(head, rows, style, right={1, 5, 6}) if rows else "")
    alone = [view for key, view in parity.items() if not any(twin.key[:3] == key for twin in shown)]
    if alone:
        text += "\nParity only:\n" + render_columns(("component", "worst ratio", "verdict"), [
            (f"{view.component}/{view.device}/{view.dtype}", numbers.significant(view.worst_ratio), view.verdict)
            for view in alone], style, right={1})
    modelled = gather_modelled(record)
    if modelled:
        text += "\nModelled, not measured:\n" + render_columns(MODELLED_HEAD, modelled_rows(modelled), style,
                                                               right={2, 3, 5})
    for finding in verdict.actions:
        text += (f"\n{style.paint(finding.severity, finding.severity)} {finding.kind} {finding.subject}: "
                 f"{finding.message}")
        text += f"\n     {finding.reproduce}" if finding.reproduce else ""
    return text + ("\n" if verdict.actions else "")


def _proofs_for(twin: Twin, telling: list[Row]) -> list[Row]:
    """The twin's own proofs, or those of its component's largest counted case: what is timed need not be counted."""
    return twin.proofs or [row for row in telling if (row["component"], row["device"]) == twin.key[:2]]


def _parts(twin: Twin) -> str:
    return " × ".join(numbers.significant(twin.part(name))
                      for name in ("host", "launch_gap", "kernel")) if twin.decomposed else numbers.DASH


def _row(twin: Twin, proofs: list[Row], parity: dict, claims: dict) -> tuple[str, ...]:
    row = twin.speedup
    proof = "; ".join(
        f"{proof['counter']} {numbers.integer(proof['baseline']['measured'])} → "
        f"{numbers.integer(proof['optimized']['measured'])}"
        + ("" if proof["verdict"] == "pass" else f" {proof['verdict']}") for proof in proofs)
    view = parity.get(twin.key[:3])
    worst = "" if view is None else f"{view.verdict} " * (view.verdict != "pass") + numbers.significant(
        view.worst_ratio)
    claim = claims.get(twin.component)
    claim = claim if claim and claim.measured is twin else None
    return (twin.name, numbers.ratio(row["ratio"]) if row else numbers.DASH,
            numbers.interval(row["lower"], row["upper"]) if row else numbers.DASH,
            row["verdict"] if row else numbers.DASH, proof or numbers.DASH, worst or numbers.DASH,
            numbers.percent(twin.roofline("optimized")), f"{claim.figure} {claim.decision}" if claim else numbers.DASH,
            f"{numbers.ratio(twin.library['ratio'])} {twin.library['verdict']}" if twin.library else numbers.DASH)
