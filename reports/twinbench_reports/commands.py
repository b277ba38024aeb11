"""What each subcommand does. Each returns its exit code and raises ReportError for a file it cannot use."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import sys
from pathlib import Path

from twinbench_reports.errors import ReportError
from twinbench_reports.exit_codes import INCONCLUSIVE, PASS
from twinbench_reports.history import read_history
from twinbench_reports.judge.findings import Verdict
from twinbench_reports.judge.judge import judge
from twinbench_reports.judge.pins import load_pins, matching
from twinbench_reports.judge.waivers import load_waivers
from twinbench_reports.load import Record, load_record
from twinbench_reports.merge import load_merged, merge_records
from twinbench_reports.render.annotations import annotations
from twinbench_reports.render.columns import terminal_style
from twinbench_reports.render.junit import junit_xml
from twinbench_reports.render.ledger import ledger_markdown, ledger_text
from twinbench_reports.render.markdown import COMMENT_BUDGET, SUMMARY_BUDGET
from twinbench_reports.render.markdown import markdown as markdown_text
from twinbench_reports.render.table import table_text
from twinbench_reports.render.verdict_json import verdict_json

# Figures need Matplotlib, which takes a second to load: html and history import it when they run.


def gate(options: argparse.Namespace) -> int:
    """Judges, writes what was asked for, and exits with the verdict."""
    record, before, verdict = _judged(options, options.today or datetime.date.today())
    if options.verdict:
        _write(options.verdict, verdict_json(verdict, record, before))
    if options.junit:
        _write(options.junit, junit_xml(verdict, record))
    if options.summary:
        _write(options.summary, markdown_text(record, verdict, SUMMARY_BUDGET),
               append=str(options.summary) == os.environ.get("GITHUB_STEP_SUMMARY"))
    if options.annotations:
        print(annotations(verdict), end="")
    style = terminal_style()
    print(style.paint(f"{verdict.word}: {verdict.headline}", verdict.word))
    if not options.quiet:
        for finding in verdict.findings:
            print(
                f"{style.paint(finding.severity, finding.severity)} {finding.kind} {_plain(finding.subject)}: "
                f"{_plain(finding.message)}"
            )
            if finding.reproduce and finding.severity != "notice":
                print(f"    {_plain(finding.reproduce)}")
        for finding in verdict.waived:
            print(f"waived {finding.kind} {_plain(finding.subject)}: {_plain(finding.waiver)}")
    return verdict.exit_code


def html(options: argparse.Namespace) -> int:
    """Writes the page, and the figures as files where asked for."""
    from twinbench_reports.render.html import all_drawings, html_report

    record, before, verdict = _judged(options, options.today)
    measured = [load_record(path) for path in options.measured]
    _write(options.out, html_report(record, verdict, before, measured))
    print(f"{options.out}: {verdict.word}, {verdict.headline}")
    if options.figures:
        _make_folder(options.figures)
        written = [
            path for drawings in all_drawings(record).values() for drawing in drawings
            for path in drawing.write(options.figures)]
        print(f"{options.figures}: {len(written)} figure files")
    return PASS


def markdown(options: argparse.Namespace) -> int:
    """Prints or writes Markdown."""
    record, _, verdict = _judged(options, options.today)
    text = markdown_text(record, verdict, COMMENT_BUDGET)
    if options.out:
        _write(options.out, text)
    else:
        sys.stdout.write(text)
    return PASS


def table(options: argparse.Namespace) -> int:
    """Prints the terminal table."""
    record, _, verdict = _judged(options, options.today)
    sys.stdout.write(table_text(record, verdict, terminal_style(width=options.width)))
    return PASS


def ledger(options: argparse.Namespace) -> int:
    """Prints the claims."""
    record = _load(options)
    sys.stdout.write(
        ledger_markdown(record) if options.markdown else ledger_text(record, terminal_style(width=options.width)))
    return PASS


def history(options: argparse.Namespace) -> int:
    """Prints speedups over time; 3 where nothing matches."""
    found = read_history(options.folder, options.filter)
    for reason in found.refused:
        print(f"twinbench-report: left out: {reason}", file=sys.stderr)
    if not found.twins:
        print(f"twinbench-report: no speedup below {options.folder} matches {options.filter!r}", file=sys.stderr)
        return INCONCLUSIVE
    from twinbench_reports.render.history import history_drawing, history_text

    sys.stdout.write(history_text(found, terminal_style(width=options.width)))
    if options.svg:
        _write(options.svg, history_drawing(found).standalone_svg())
    return PASS


def merge(options: argparse.Namespace) -> int:
    """Writes the merged record."""
    records = [load_record(path) for path in options.records]
    root = merge_records(records, latest=options.latest, other_boards=options.other_boards)
    _write(options.out, json.dumps(root, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    print(f"{options.out}: {len(records)} records, engines {', '.join(root['twinbench']['engines'])}")
    return PASS


def validate(options: argparse.Namespace) -> int:
    """Checks records; the first that breaks the schema ends with 2."""
    for path in options.records:
        record = load_record(path)
        print(f"{path}: a record of schema {record.block['schema_version']}, sha256 {record.sha256}")
    return PASS


def _load(options: argparse.Namespace) -> Record:
    return load_merged([load_record(path) for path in options.records], latest=options.latest,
                       other_boards=options.other_boards)


def _judged(options: argparse.Namespace, today: datetime.date | None) -> tuple[Record, Record | None, Verdict]:
    record = _load(options)
    before = load_record(options.baseline) if options.baseline else None
    pins = matching(load_pins(options.pins), options.filter) if options.pins else None
    waivers = load_waivers(options.waivers) if options.waivers else ()
    return record, before, judge(record, before, pins=pins, waivers=waivers, today=today,
                                 timing_advisory=options.timing == "advisory")


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ReportError(f"cannot be made: {error.strerror}", file=str(folder),
                          remedy="name another folder") from error


def _write(path: Path, text: str, *, append: bool = False) -> None:
    _make_folder(path.parent)
    try:
        with path.open("a" if append else "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise ReportError(f"cannot be written: {error.strerror}", file=str(path),
                          remedy="name another file, or make room") from error


def _plain(text: str) -> str:
    """No control character of a record reaches the terminal, and no line begins a workflow command."""
    return "".join(char if char.isprintable() else " " for char in text)
