"""The command line of ci/compare_revisions, and its order: build, count, then time what counts cannot tell."""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import json
import os
import re
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from comparing import exact, revisions
from comparing.side import Side
from comparing.timing import Budget, CellTimes, Comparison, judge_null, timed_cells
from comparing.verdicts import METRIC_WORDS, again, by_component, size_text, time_findings
from twinbench_reports.errors import ReportError
from twinbench_reports.exit_codes import PASS, TOOL_ERROR
from twinbench_reports.judge.findings import EXIT_OF, SEVERITIES, Finding, Verdict
from twinbench_reports.judge.waivers import Waiver, apply_waivers, load_waivers
from twinbench_reports.render.columns import terminal_style
from twinbench_reports.render.findings import findings_text
from twinbench_reports.render.markdown import findings_markdown
from twinbench_reports.statistics.looks import RULE, SAME, WORDS

_EPILOG = """exit codes: 0 nothing is worse; 1 something counts more or is slower; 2 usage error, or a revision that
does not build or run; 3 undecided, or nothing compared. --verdict writes the same as JSON."""
NULL_CELLS = 3  # compared with themselves before any time is believed
NULL_SHARE = 0.4  # of the budget for times, at most
MOST_LINES = 200  # of a summary
STAGES = ("coverage", "budgets", "counters", "kernels", "instructions", "times")


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Flags, with usage errors as exit code 2."""
    parser = argparse.ArgumentParser(prog="ci/compare_revisions", epilog=_EPILOG, allow_abbrev=False,
                                     description="Builds two revisions side by side and judges the change: counters, "
                                     "kernel budgets, modelled times and instructions first and exactly, then times in "
                                     "paired blocks of processes.", formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("base", metavar="BASE", help="a revision, or with --programs a program")
    parser.add_argument("head", metavar="HEAD", help="a revision; . is the working tree with its uncommitted changes")
    parser.add_argument("--filter", default=".", metavar="RE", help="only cells that match (default: all)")
    parser.add_argument("--minutes", type=float, default=20, help="for times, beside building and counting (default: "
                        "%(default)s)")
    parser.add_argument("--stages", default=",".join(STAGES), metavar="LIST",
                        help=f"what to compare, of {','.join(STAGES)} (default: all)")
    parser.add_argument("--programs", action="store_true", help="BASE and HEAD are programs that are built already")
    parser.add_argument("--same-code-too", action="store_true", help="time equal programs: what this machine makes of "
                        "them")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="of the compiler (default: cores)")
    parser.add_argument("--seed", type=int, default=1, help="draws the order of the blocks (default: %(default)s)")
    parser.add_argument("--waivers", type=Path, metavar="FILE", help="reviewed exceptions, TOML as for "
                        "`twinbench-report gate`; the file of this checkout, not of HEAD")
    parser.add_argument("--verdict", type=Path, metavar="FILE", help="write the findings and every block as JSON")
    parser.add_argument("--summary", type=Path, metavar="FILE", help="append the findings as Markdown")
    options = parser.parse_args(arguments)
    options.stages = [stage for stage in options.stages.split(",") if stage]
    wrong = [stage for stage in options.stages if stage not in STAGES]
    if wrong or not options.stages:
        parser.error(f"--stages: {wrong[0] if wrong else 'nothing'!r} is no stage; there are: {', '.join(STAGES)}")
    if not options.minutes > 0:
        parser.error(f"--minutes {options.minutes}: give a positive number")
    try:
        re.compile(options.filter)
    except re.error as error:
        parser.error(f"--filter {options.filter!r} is no regular expression: {error}")
    return options


def main(root: Path, arguments: Sequence[str]) -> int:
    """Compares, says what it found, and returns the exit code."""
    options = parse(arguments)
    start = time.monotonic()

    def say(text: str) -> None:
        print(f"[{time.monotonic() - start:5.0f} s] {text}", file=sys.stderr, flush=True)

    try:
        waivers = load_waivers(options.waivers) if options.waivers else ()
        base, head, identical = _sides(root, options, say)
        findings, compared = _counted(base, head, options, say)
        cells: list[CellTimes] = []
        if identical and not options.same_code_too:
            say("both sides are the same code: their times are not compared")
        elif "times" in options.stages:
            cells = _timed(base, head, options, findings, identical, say)
        return _conclude(options, findings, waivers, cells, compared + len(cells), identical)
    except ReportError as error:
        print(f"compare_revisions: {error}", file=sys.stderr)
        return TOOL_ERROR
    except Exception:  # noqa: BLE001 a bug of the tool must not look like a regression
        traceback.print_exc()
        print("compare_revisions: a bug of the tool; nothing was judged", file=sys.stderr)
        return TOOL_ERROR


def _sides(root: Path, options: argparse.Namespace, say: Callable[[str], None]) -> tuple[Side, Side, bool]:
    if options.programs:
        base, head = (Side(name, root, Path(path).resolve())
                      for name, path in (("base", options.base), ("head", options.head)))
        return base, head, base.image() == head.image()
    commits = [revisions.resolve(root, name) for name in (options.base, options.head)]
    cache = revisions.cache_folder()
    folders = [revisions.checkout(root, commit, cache) for commit in commits]
    say(f"base {commits[0][:12]}, head {commits[1][:12]}, trees in {cache}")
    base, head = (revisions.build(root, folder, name, say, options.jobs)
                  for name, folder in zip(("base", "head"), folders))
    revisions.forget_old(root, cache, folders)
    return base, head, revisions.same_source(root, *commits) or base.image() == head.image()


def _counted(base: Side, head: Side, options: argparse.Namespace,
             say: Callable[[str], None]) -> tuple[list[Finding], int]:
    findings: list[Finding] = []
    compared = 0

    def reproduce(cell: str) -> str:
        return _command(options, cell)

    def take(kind: str, before: exact.Cells, now: exact.Cells) -> None:
        nonlocal compared
        new = list(exact.compare(kind, before, now, reproduce))
        findings.extend(new)
        compared += len(before)
        say(f"{kind}: {len(before)} cells, {sum(finding.severity == 'fail' for finding in new)} count more")

    if "coverage" in options.stages and not options.programs:  # these have no tree
        findings.extend(exact.coverage(base, head))
    if "budgets" in options.stages and not options.programs:
        take("budgets", exact.budgets(base), exact.budgets(head))
    if "counters" in options.stages:
        for device in ("cpu", "simt"):
            take(f"counters {device}", *(exact.counters(side, options.filter, device) for side in (base, head)))
    if "kernels" in options.stages:
        take("kernels", *(exact.kernels(side, options.filter) for side in (base, head)))
    if "instructions" in options.stages:
        before, now, notes = exact.count_twice(base, head, options.filter, reproduce)
        findings.extend(notes)
        take("instructions", before, now)
    return findings, compared


def _timed(base: Side, head: Side, options: argparse.Namespace, findings: list[Finding], identical: bool,
           say: Callable[[str], None]) -> list[CellTimes]:
    """Compares the times; adds what it finds to `findings`."""
    mine, other = timed_cells(head, options.filter), timed_cells(base, options.filter)
    judged = [name for name in mine if name in other and "/optimized/" in name]
    findings += [Finding("missing", "times", name, "vanished: base times it, head does not", _command(options, name))
                 for name in other if name not in mine]
    findings += [Finding("notice", "times", name, "new: base does not have it") for name in mine if name not in other]
    if not judged:
        return []
    budget = options.minutes * 60
    null = Comparison(base, dataclasses.replace(base, name="base again"), rule=RULE,
                      budget=Budget(budget * NULL_SHARE), seed=options.seed)
    step = max(1, len(judged) // NULL_CELLS)
    start = time.monotonic()
    disbelieved, floor = judge_null(null.run(judged[::step][:NULL_CELLS]))
    rule = dataclasses.replace(RULE, noise_floor=floor)
    say(f"null test: {disbelieved or 'same'}, floor {floor:.1%}, so a slowdown counts from {rule.least_failing:.1%}")
    comparison = Comparison(base, head, rule=rule, budget=Budget(budget - (time.monotonic() - start)),
                            seed=options.seed + 1)
    cells = comparison.run(judged)
    say(f"times: {len(cells)} cells, {comparison.processes} processes")
    if identical:
        findings += [Finding("notice", "times", f"{cell.name} [{METRIC_WORDS[metric]}]", "both programs are the same "
                             f"code, and the machine made it {WORDS[series.verdict]}: {size_text(series, rule)}")
                     for cell in cells for metric, series in cell.series.items() if series.verdict != SAME]
        return cells
    component_causes = by_component(findings)
    causes = {cell.name: component_causes[cell.name.split("/")[0]] for cell in cells
              if cell.name.split("/")[0] in component_causes}
    commands = {cell.name: _command(options, cell.name) for cell in cells}
    findings += time_findings(cells, rule, causes, commands, disbelieved)
    return cells


def _command(options: argparse.Namespace, cell: str) -> str:
    flags = " --programs" if options.programs else ""
    return again(f"ci/compare_revisions{flags}", options.base, options.head, re.escape(cell).replace("\\-", "-"))


def _conclude(options: argparse.Namespace, findings: list[Finding], waivers: Sequence[Waiver], cells: list[CellTimes],
              compared: int, identical: bool) -> int:
    if not compared:
        findings.append(Finding("missing", "comparison", options.filter, "no cell matches: nothing was compared"))
    findings, waived = apply_waivers(findings, waivers, datetime.date.today())
    findings.sort(key=lambda finding: finding.rank)
    code = next((EXIT_OF[severity] for severity in SEVERITIES
                 if any(finding.severity == severity for finding in findings)), PASS)
    verdict = Verdict(code, findings, waived, counts={"judged": compared})
    if options.verdict:
        root = {"schema_version": "1.0", "exit_code": code, "verdict": verdict.word, "identical_code": identical,
                "base": options.base, "head": options.head, "seed": options.seed, "compared": compared,
                "findings": [finding.as_dict() for finding in findings],
                "waived": [finding.as_dict() for finding in waived],
                "times": [{"cell": cell.name, "error": cell.error, **{
                    metric: {"verdict": WORDS[series.verdict], "log_ratios": series.ratios, "fresh": series.fresh}
                    for metric, series in cell.series.items()}} for cell in cells]}
        _write(options.verdict, json.dumps(root, indent=1, allow_nan=False) + "\n", "w")
    if options.summary:
        head = f"## compare_revisions: {verdict.word}\n\n{verdict.headline}, `{options.base}` to `{options.head}`."
        _write(options.summary, "\n".join([head, *list(findings_markdown(verdict))[:MOST_LINES]]) + "\n", "a")
    print(findings_text(verdict, terminal_style()), end="")
    if identical:
        print("Both sides are the same code.")
    return code


def _write(path: Path, text: str, mode: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open(mode, encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise ReportError(f"cannot be written: {error.strerror}", file=str(path), remedy="name another file") from error
