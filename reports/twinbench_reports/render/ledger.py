"""`twinbench-report ledger`: the claims as a Markdown or plain table, and the account of what was run."""

from __future__ import annotations

from twinbench_reports.load import Record
from twinbench_reports.render import numbers
from twinbench_reports.render.claims import COLUMNS, claim_rows
from twinbench_reports.render.columns import Style, render_columns
from twinbench_reports.render.markdown import cell
from twinbench_reports.render.twins import gather_claims, gather_twins


def ledger_text(record: Record, style: Style) -> str:
    """The claims for a terminal, then the account."""
    rows = claim_rows(gather_claims(record.block, gather_twins(record.block)))
    keys = ("component", "document", "figure", "measured", "interval", "decision", "verdict", "text")
    body = "The components of this record make no claims.\n"
    if rows:
        cells = [[row[key] for key in keys] for row in rows]
        body = render_columns([COLUMNS[key] for key in keys], cells, style, right={2, 3}, shrink=7)
    return body + "\n" + account(record) + "\n"


def ledger_markdown(record: Record) -> str:
    """The claims as a Markdown table with every column, then the account."""
    rows = claim_rows(gather_claims(record.block, gather_twins(record.block)))
    lines = ["| " + " | ".join(COLUMNS.values()) + " |", "|" + "---|" * len(COLUMNS)]
    lines += ["| " + " | ".join(cell(row[key]) for key in COLUMNS) + " |" for row in rows]
    return "\n".join(lines) + "\n\n" + account(record) + "\n"


def account(record: Record) -> str:
    """How many results of how many planned, and why the rest was skipped."""
    ledger = record.block["ledger"]
    parts = [f"{numbers.integer(ledger['planned'])} planned"]
    parts += [
        f"{numbers.integer(ledger[key])} {key}" for key in ("passed", "failed", "errors", "skipped", "inconclusive")]
    reasons = "; ".join(f"{count}x {reason}" for reason, count in sorted(ledger["skip_reasons"].items()))
    return ", ".join(parts) + (f". Skipped: {reasons}" if reasons else "")
