"""The command line: subcommands, their flags, and the nearest name for a mistyped one."""

from __future__ import annotations

import argparse
import datetime
import difflib
import os
import signal
import sys
import threading
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from twinbench_reports import __version__, commands
from twinbench_reports.errors import ReportError
from twinbench_reports.exit_codes import TOOL_ERROR
from twinbench_reports.text import plain

_EPILOG = """exit codes: 0 pass; 1 regression, parity failure or broken proof; 2 usage error or unusable file;
3 inconclusive, missing or nothing measured. `make` rewrites codes: wrappers should read verdict.json."""

_MOST_JOBS = 1024
_LONGEST = 2000  # characters of an error that quotes what was typed


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that suggests what a mistyped word was meant to be."""

    subcommands: dict[str, Parser] = {}

    def error(self, message: str) -> None:
        if "invalid choice" in message and self.subcommands:
            typed = message.split("'")[1]
            message = f"there is no subcommand {typed!r}" + nearest(typed, self.subcommands)
        if len(message) > _LONGEST:
            message = f"{message[:_LONGEST]} ... ({len(message):,} characters)"
        self.exit(TOOL_ERROR, f"{self.prog}: {plain(message)}\nsee {self.prog} --help\n")

    def _print_message(self, message: str, file: TextIO | None = None) -> None:
        """Help and version have arrived before this returns: argparse itself lets a failed write pass."""
        if message and file is sys.stdout:
            file.write(message)
            file.flush()
        else:
            super()._print_message(message, file)

    def refuse(self, unknown: Sequence[str]) -> None:
        """Ends for arguments that nobody took."""
        flags = [flag for action in self._actions for flag in action.option_strings]
        word = unknown[0]
        self.error(f"unknown argument {word!r}" + (nearest(word.split("=")[0], flags) if word.startswith("-") else ""))


def nearest(word: str, known: Sequence[str] | dict[str, Parser]) -> str:
    """"; did you mean ...?", or all there are."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else f"; there are: {', '.join(sorted(known))}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one subcommand. Python's own exit code for a crash is 1, which means a regression here, so crashes become
    2."""
    parser = build_parser()
    replaced: list[signal.Signals] = []
    try:
        options, unknown = parser.parse_known_args(arguments)
        if unknown:
            parser.subcommands[options.subcommand].refuse(unknown)
        replaced = _end_cleanly()
        _expect_texts(options)
        _expect_free_places(options)
        code = options.run(options)
        sys.stdout.flush()
        return code
    except ReportError as error:
        print(f"twinbench-report: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        print("twinbench-report: interrupted; nothing was judged", file=sys.stderr)
    except OSError as error:
        # What was printed did not arrive, and would be tried again when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        print(f"twinbench-report: {plain(str(error))}: what was printed is not complete", file=sys.stderr)
    except Exception:  # noqa: BLE001 a bug of the tool must not look like a regression
        print("\n".join(map(plain, traceback.format_exc().splitlines())), file=sys.stderr)
        print("twinbench-report: a bug in the report tool; nothing was judged", file=sys.stderr)
    finally:  # whoever called this in a process of its own keeps what it had: processes that it forks can be ended
        for number in replaced:
            signal.signal(number, signal.SIG_DFL)
    return TOOL_ERROR


def _expect_texts(options: argparse.Namespace) -> None:
    """Names of files may be any bytes; what is written into pages and records may not."""
    for name, value in vars(options).items():
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str) and not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):
                raise ReportError(f"{text[:80]!a} is no text", path=f"--{name.replace('_', '-')}",
                                  remedy="write UTF-8")


def _expect_free_places(options: argparse.Namespace) -> None:
    """What is written takes the place of nothing that is read, and of nothing else that is written."""
    taken: dict[str, str] = {}
    written = [name for name in ("verdict", "junit", "summary", "out", "svg") if getattr(options, name, None)]
    for name in [name for name in vars(options) if name not in written] + written:
        value = getattr(options, name)
        for path in value if isinstance(value, list) else [value]:
            if not isinstance(path, Path):
                continue
            place = os.path.realpath(path)
            if name in written and place in taken:
                raise ReportError(f"it is the same file as {taken[place]}, and would be lost", file=str(path),
                                  path=f"--{name}", remedy="name a file of its own")
            taken[place] = f"--{name}" if name not in ("records", "files", "folder") else "what is read"


def _end_cleanly() -> list[signal.Signals]:
    """A closed standard output is an error before anything is judged, and being ended is an interruption. Returns the
    signals that had the default handler, and have another now."""
    if sys.stdout is None:
        raise ReportError("it is closed", file="standard output", remedy="give it a place, such as /dev/null")
    if threading.current_thread() is not threading.main_thread():
        return []
    replaced = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) is signal.SIG_DFL]
    for number in replaced:
        signal.signal(number, signal.default_int_handler)
    return replaced


def build_parser() -> Parser:
    """Every subcommand and flag."""
    parser = Parser(prog="twinbench-report",
                    description="Judges and renders Twinbench records. Needs neither LibTorch nor a GPU.",
                    epilog=_EPILOG, allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", action="version", version=f"twinbench-report {__version__}")
    children = parser.add_subparsers(dest="subcommand", required=True, metavar="SUBCOMMAND", parser_class=Parser)

    def add(name: str, run: object, text: str) -> Parser:
        child = children.add_parser(name, help=text, description=text, allow_abbrev=False, epilog=_EPILOG,
                                    formatter_class=argparse.RawDescriptionHelpFormatter)
        child.set_defaults(run=run)
        parser.subcommands = {**parser.subcommands, name: child}
        return child

    gate = add("gate", commands.gate, "decide whether a change may be merged; exits 0, 1, 2 or 3")
    _add_records(gate)
    _add_judging(gate)
    gate.add_argument("--verdict", type=Path, metavar="FILE", help="write verdict.json")
    gate.add_argument("--junit", type=Path, metavar="FILE", help="write JUnit XML")
    gate.add_argument("--summary", type=Path, metavar="FILE",
                      help="write a Markdown job summary of at most 100 KB; appends to $GITHUB_STEP_SUMMARY")
    gate.add_argument("--annotations", action="store_true",
                      help="print GitHub annotations: at most 8, and one that points to the rest")
    gate.add_argument("--quiet", action="store_true", help="print the verdict line only")

    html = add("html", commands.html, "write the report as one self-contained HTML file")
    _add_records(html)
    _add_judging(html)
    html.add_argument("-o", "--out", type=Path, default=Path("report.html"), metavar="FILE",
                      help="where to write it (default: %(default)s)")
    html.add_argument("--measured", type=Path, nargs="+", default=[], metavar="RECORD",
                      help="records of cards: their times stand beside what is modelled for a card of that name")
    _add_documents(html)
    html.add_argument("--figures", type=Path, metavar="DIR", help="also write every figure as PNG and SVG")

    markdown = add("markdown", commands.markdown, "print the report as Markdown of at most 64 KB, the worst first")
    _add_records(markdown)
    _add_judging(markdown)
    markdown.add_argument("-o", "--out", type=Path, metavar="FILE", help="write to a file instead of standard output")

    table = add("table", commands.table, "print the record as a table for a terminal")
    _add_records(table)
    _add_judging(table)
    table.add_argument("--width", type=int, metavar="COLUMNS", help="width of the table (default: the terminal's)")

    ledger = add("ledger", commands.ledger, "print the claims of the documents beside what was measured")
    _add_records(ledger)
    _add_documents(ledger)
    ledger.add_argument("--markdown", action="store_true", help="print a Markdown table with every column")
    ledger.add_argument("--width", type=int, metavar="COLUMNS", help="width of the table (default: the terminal's)")

    history = add("history", commands.history, "print speedups over time, in segments of one machine and toolchain")
    history.add_argument("folder", type=Path, metavar="DIR", help="a folder with records, searched to any depth")
    history.add_argument("--filter", default=".", metavar="RE", help="only twins whose name matches (default: all)")
    history.add_argument("--svg", type=Path, metavar="FILE", help="also draw them")
    history.add_argument("--width", type=int, metavar="COLUMNS", help="width of the table (default: the terminal's)")

    keep = add("keep", commands.keep, "keep runs in a history folder: Twinbench records, or JSON of Google Benchmark, "
               "nvbench or pytest-benchmark")
    keep.add_argument("files", nargs="+", type=Path, metavar="FILE", help="what the benchmark program wrote")
    keep.add_argument("--to", type=Path, required=True, metavar="DIR", help="the history folder; it only grows")
    for name, text in (("revision", "of the code"), ("machine", "that ran it"), ("utc", "time of the run")):
        keep.add_argument(f"--{name}", default="", metavar="TEXT", help=f"{text}, where the file does not say")
    keep.add_argument("--times-only", action="store_true", help="keep no copy of the record itself (compressed, a "
                      "twelfth of its size): the site then has no pages of it")

    trends = add("trends", commands.trends, "print the times of a history folder with the changes of their level")
    trends.add_argument("folder", type=Path, metavar="DIR", help="a folder that `keep` filled")
    trends.add_argument("--filter", default=".", metavar="RE", help="only series whose name matches (default: all)")
    trends.add_argument("--changed", action="store_true", help="only series whose level changed")
    trends.add_argument("--width", type=int, metavar="COLUMNS", help="width of the table (default: the terminal's)")

    site = add("site", commands.site, "write a history as static pages: overview, components, scenarios, claims, "
               "machines, and the change between two runs")
    site.add_argument("folder", type=Path, metavar="HISTORY", help="a folder that `keep` filled")
    site.add_argument("-o", "--out", type=Path, required=True, metavar="DIR", help="where to write the pages")
    _add_documents(site)
    site.add_argument("--source-url", type=_address, default="", metavar="URL",
                      help="link source files: a URL with {revision} and {path}")
    site.add_argument("--compare", nargs=2, metavar=("BEFORE", "NOW"),
                      help="the revisions that the compare page shows without a script (default: the newest two runs)")
    site.add_argument("--jobs", type=_jobs, default=0, metavar="N", help="processes (default: cores)")

    merge = add("merge", commands.merge, "put records of one revision and machine together")
    _add_records(merge)
    merge.add_argument("-o", "--out", type=Path, required=True, metavar="FILE", help="where to write the merged record")

    validate = add("validate", commands.validate, "check records against the schema")
    validate.add_argument("records", nargs="+", type=Path, metavar="RECORD", help="record files")
    return parser


def _date(text: str) -> datetime.date:
    try:
        return datetime.date.fromisoformat(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no date: give one as 2026-01-31") from error


def _address(text: str) -> str:
    if not text or text.startswith(("https://", "http://")):
        return text
    raise argparse.ArgumentTypeError(f"{text!r} is no address of a page: give one that begins with https://")


def _jobs(text: str) -> int:
    if text.isascii() and text.isdecimal() and len(text) < 5 and int(text) <= _MOST_JOBS:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 0 to {_MOST_JOBS}")


def _add_records(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("records", nargs="+", type=Path, metavar="RECORD",
                        help="a record, or several that are merged first")
    parser.add_argument("--latest", action="store_true",
                        help="where two records hold the same row, take the later one (default: refuse)")
    parser.add_argument("--other-boards", action="store_true",
                        help="merge records of several boards of one model, as from --shard")


def _add_documents(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--documents", type=Path, metavar="DIR",
                        help="a source tree or bundle: its ci/documented.json and src/*/*/spec.json say what is "
                        "documented (default: the one that this package lies in)")


def _add_judging(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--baseline", type=Path, metavar="RECORD",
                        help="an earlier record: speedups may not fall, rows may not vanish")
    parser.add_argument("--pins", type=Path, metavar="FILE",
                        help="pinned counters, as `twinbench counters --pin` writes them")
    parser.add_argument(
        "--filter", default=".", metavar="RE",
        help="the --filter that the engines were given: only pins of matching cells are missed (default: all)")
    parser.add_argument("--waivers", type=Path, metavar="FILE",
                        help="[[waiver]] tables: match, kind, limit, reason, owner, expiry")
    parser.add_argument("--timing", choices=("gate", "advisory"), default="gate",
                        help="advisory: times are reported and decide nothing (default: %(default)s)")
    parser.add_argument("--today", type=_date, metavar="DATE",
                        help="the day on which waivers are judged (default: today; html: the run's)")
