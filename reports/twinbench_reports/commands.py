"""What each subcommand does. Each returns its exit code and raises ReportError for a file it cannot use."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import sys
from pathlib import Path

from twinbench_reports.cells import parse_cell
from twinbench_reports.documents.load import Documents, load_documents, tree
from twinbench_reports.errors import ReportError
from twinbench_reports.exit_codes import INCONCLUSIVE, PASS
from twinbench_reports.files import append_file, make_folder, write_file
from twinbench_reports.filters import chosen
from twinbench_reports.history import read_history
from twinbench_reports.judge.consistency import require_consistent
from twinbench_reports.judge.findings import Verdict
from twinbench_reports.judge.judge import judge
from twinbench_reports.judge.pins import load_pins, matching
from twinbench_reports.judge.waivers import load_waivers
from twinbench_reports.load import Record, load_record, read_bytes, unpacked
from twinbench_reports.merge import load_merged, merge_records
from twinbench_reports.render.annotations import annotations
from twinbench_reports.render.columns import terminal_style
from twinbench_reports.render.findings import findings_text
from twinbench_reports.render.junit import junit_xml
from twinbench_reports.render.ledger import ledger_markdown, ledger_text
from twinbench_reports.render.markdown import COMMENT_BUDGET, SUMMARY_BUDGET
from twinbench_reports.render.markdown import markdown as markdown_text
from twinbench_reports.render.table import table_text
from twinbench_reports.render.trends import trend_rows, trends_text
from twinbench_reports.render.verdict_json import verdict_json
from twinbench_reports.store.folder import Store
from twinbench_reports.store.importers import read_run
from twinbench_reports.store.records import keep_record
from twinbench_reports.text import plain

# Figures need Matplotlib, which takes a second to load: html and history import it when they run.


def gate(options: argparse.Namespace) -> int:
    """Judges, writes what was asked for, and exits with the verdict."""
    record, before, verdict = _judged(options, options.today or datetime.date.today())
    if options.verdict:
        write_file(options.verdict, verdict_json(verdict, record, before))
    if options.junit:
        write_file(options.junit, junit_xml(verdict, record))
    if options.summary:
        own = str(options.summary) != os.environ.get("GITHUB_STEP_SUMMARY")
        (write_file if own else append_file)(options.summary, markdown_text(record, verdict, SUMMARY_BUDGET))
    if options.annotations:
        print(annotations(verdict), end="")
    print(findings_text(verdict, terminal_style(), quiet=options.quiet), end="")
    return verdict.exit_code


def html(options: argparse.Namespace) -> int:
    """Writes the page, and the figures as files where asked for."""
    from twinbench_reports.render.html import all_drawings, html_report

    record, before, verdict = _judged(options, options.today)
    measured = [load_record(path) for path in options.measured]
    documents = _documents(options)
    write_file(options.out, html_report(record, verdict, before, measured, documents))
    print(plain(f"{options.out}: {verdict.word}, {verdict.headline}"))
    if options.figures:
        make_folder(options.figures)
        written = [
            path for drawings in all_drawings(record, documents).values() for drawing in drawings
            for path in drawing.write(options.figures)]
        print(plain(f"{options.figures}: {len(written)} figure files"))
    return PASS


def markdown(options: argparse.Namespace) -> int:
    """Prints or writes Markdown."""
    record, _, verdict = _judged(options, options.today)
    text = markdown_text(record, verdict, COMMENT_BUDGET)
    if options.out:
        write_file(options.out, text)
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
    record, documents = _load(options), _documents(options)
    sys.stdout.write(ledger_markdown(record, documents) if options.markdown
                     else ledger_text(record, documents, terminal_style(width=options.width)))
    return PASS


def history(options: argparse.Namespace) -> int:
    """Prints speedups over time; 3 where nothing matches."""
    found = read_history(options.folder, options.filter)
    for reason in found.refused:
        print(f"twinbench-report: left out: {plain(reason)}", file=sys.stderr)
    if not found.twins:
        kept = "; `trends` and `site` read what `keep` filled" if Store(options.folder).runs() else ""
        print(plain(f"twinbench-report: no speedup below {options.folder} matches {options.filter!r}{kept}"),
              file=sys.stderr)
        return INCONCLUSIVE
    from twinbench_reports.render.history import history_drawing, history_text

    sys.stdout.write(history_text(found, terminal_style(width=options.width)))
    if options.svg:
        write_file(options.svg, history_drawing(found).standalone_svg())
    return PASS


def keep(options: argparse.Namespace) -> int:
    """Adds runs to a history folder; all files are read before the first is kept."""
    runs = [read_run(path, revision=options.revision, machine_name=options.machine, utc=options.utc)
            for path in options.files]
    store = Store(options.to)
    for path, run in zip(options.files, runs):
        if run.record and not options.times_only:
            keep_record(options.to, unpacked(read_bytes(path), str(path)))
        file, new = store.add(run)
        how = "kept as" if new else "already kept as"
        print(plain(f"{path}: {len(run.points)} series of {run.source}, {how} {file}"))
    return PASS


def trends(options: argparse.Namespace) -> int:
    """Prints the series of a history folder; 3 where nothing matches."""
    chosen(options.filter, [])  # a wrong one is refused before the folder is read
    store = Store(options.folder)
    count = store.refresh()
    for reason in store.refused:
        print(f"twinbench-report: left out: {plain(reason)}", file=sys.stderr)
    found = list(store.trends(options.filter))
    rows = trend_rows(found, options.changed)
    print(f"{count} runs, {len(found)} series")
    if rows:
        sys.stdout.write(trends_text(rows, terminal_style(width=options.width)))
    return PASS if found else INCONCLUSIVE


def site(options: argparse.Namespace) -> int:
    """Writes the pages of a history."""
    from twinbench_reports.site.build import build

    root = options.documents or tree()
    found, count = build(options.folder, options.out, documents=_documents(options), tree=root,
                         source_url=options.source_url, pair=options.compare or (), jobs=options.jobs)
    for reason in found.refused:
        print(f"twinbench-report: left out: {plain(reason)}", file=sys.stderr)
    first = found.machines[0]
    said = f"{first.verdict.word}, {first.verdict.headline}" if first.verdict else "no run kept its record"
    print(plain(f"{options.out / 'index.html'}: {count} pages of {len(found.machines)} machines; {said}"))
    return PASS


def merge(options: argparse.Namespace) -> int:
    """Writes the merged record."""
    records = [load_record(path) for path in options.records]
    root = merge_records(records, latest=options.latest, other_boards=options.other_boards)
    write_file(options.out, json.dumps(root, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    print(plain(f"{options.out}: {len(records)} records, engines {', '.join(root['twinbench']['engines'])}"))
    return PASS


def validate(options: argparse.Namespace) -> int:
    """Checks records; the first that breaks the schema ends with 2."""
    for path in options.records:
        record = load_record(path)
        print(plain(f"{path}: a record of schema {record.block['schema_version']}, sha256 {record.sha256}"))
    return PASS


def _documents(options: argparse.Namespace) -> Documents | None:
    root = options.documents or tree()
    return load_documents(root) if root else None


def _load(options: argparse.Namespace) -> Record:
    return load_merged([load_record(path) for path in options.records], latest=options.latest,
                       other_boards=options.other_boards)


def _judged(options: argparse.Namespace, today: datetime.date | None) -> tuple[Record, Record | None, Verdict]:
    record = _load(options)
    require_consistent(record)
    before = load_record(options.baseline) if options.baseline else None
    chosen(options.filter, [])  # a wrong one is refused where there are no pins, too
    pinned = load_pins(options.pins) if options.pins else None
    pins = matching(pinned, options.filter) if pinned else None
    components = {parse_cell(cell).component for cell in pinned} if pinned else None
    waivers = load_waivers(options.waivers) if options.waivers else ()
    return record, before, judge(record, before, pins=pins, components=components, waivers=waivers, today=today,
                                 timing_advisory=options.timing == "advisory")
