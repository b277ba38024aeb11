"""`twinbench-report ledger`: the claims as a Markdown or plain table, and the account of what was run."""

from __future__ import annotations

from twinbench_reports.documents.load import Documents
from twinbench_reports.documents.measured import LedgerRow, ledger_finding, ledger_rows
from twinbench_reports.load import Record
from twinbench_reports.render import numbers
from twinbench_reports.render.claims import COLUMNS, claim_rows
from twinbench_reports.render.columns import Style, render_columns
from twinbench_reports.render.markdown import cell
from twinbench_reports.render.twins import gather_claims, gather_twins


# The columns of the claims ledger, and those that a terminal has room for.
_LEDGER = {
    "row": "row", "subject": "stands with", "document": "document", "figure": "figure", "word": "specification",
    "state": "here", "decision": "decision", "text": "claim", "recomputed": "recomputed", "instead": "instead",
    "values": "measured or modelled", }
_SHORT = ("row", "subject", "figure", "word", "state", "text")


def ledger_text(record: Record, documents: Documents | None, style: Style) -> str:
    """The claims for a terminal, every row of the ledger where it is known, then the account."""
    rows = claim_rows(gather_claims(record.block, gather_twins(record.block)))
    keys = ("component", "document", "figure", "measured", "interval", "decision", "verdict", "text")
    body = "The components of this record make no claims.\n"
    if rows:
        cells = [[row[key] for key in keys] for row in rows]
        body = render_columns([COLUMNS[key] for key in keys], cells, style, right={2, 3}, shrink=7)
    known = _known(record, documents)
    if known:
        rows = [[row[key] for key in _SHORT] for row in map(_cells, known)]
        body += f"\n{ledger_finding(known)}\n{render_columns([_LEDGER[key] for key in _SHORT], rows, style, shrink=5)}"
    return body + "\n" + account(record) + "\n"


def ledger_markdown(record: Record, documents: Documents | None = None) -> str:
    """The claims as Markdown tables with every column, then the account."""
    rows = claim_rows(gather_claims(record.block, gather_twins(record.block)))
    lines = ["| " + " | ".join(COLUMNS.values()) + " |", "|" + "---|" * len(COLUMNS)]
    lines += ["| " + " | ".join(cell(row[key]) for key in COLUMNS) + " |" for row in rows]
    known = _known(record, documents)
    if known:
        lines += ["", cell(ledger_finding(known)), "", "| " + " | ".join(_LEDGER.values()) + " |",
                  "|" + "---|" * len(_LEDGER)]
        lines += ["| " + " | ".join(cell(text) for text in _cells(row).values()) + " |" for row in known]
    return "\n".join(lines) + "\n\n" + account(record) + "\n"


def _known(record: Record, documents: Documents | None) -> list[LedgerRow]:
    return ledger_rows(documents, record.block, gather_twins(record.block)) if documents else []


def _cells(row: LedgerRow) -> dict[str, str]:
    values = [value.text for value in row.values if value.state != "recomputed"]
    sums = [value.text for value in row.values if value.state == "recomputed"]
    return {"row": row.claim.row, "subject": row.subject, "document": row.claim.document, "figure": row.claim.figure,
            "word": row.claim.word, "state": row.state, "decision": row.decision or numbers.DASH,
            "text": row.claim.text, "recomputed": "; ".join([row.claim.recomputed, *sums]),
            "instead": row.claim.instead, "values": "; ".join(values)}


def account(record: Record) -> str:
    """How many results of how many planned, and why the rest was skipped."""
    ledger = record.block["ledger"]
    parts = [f"{numbers.integer(ledger['planned'])} planned"]
    parts += [
        f"{numbers.integer(ledger[key])} {key}" for key in ("passed", "failed", "errors", "skipped", "inconclusive")]
    reasons = "; ".join(f"{count}x {reason}" for reason, count in sorted(ledger["skip_reasons"].items()))
    return ", ".join(parts) + (f". Skipped: {reasons}" if reasons else "")
