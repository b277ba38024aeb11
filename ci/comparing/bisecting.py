"""The search for the first revision that is worse: halving, each candidate compared with the good one side by side.

The good program is measured anew beside every candidate, so that a long search does not compare with old numbers.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from comparing import main as comparing
from comparing import revisions
from twinbench_reports.errors import ReportError
from twinbench_reports.exit_codes import FAIL, INCONCLUSIVE, PASS, TOOL_ERROR

GOOD, BAD, SKIP = "good", "bad", "skip"
OF_EXIT = {PASS: GOOD, FAIL: BAD}  # what is undecided or does not build is skipped


@dataclass
class Search:
    """`first` is the first bad revision; with skipped ones beside it, `suspects` holds all that it may be."""

    first: str = ""
    suspects: list[str] = field(default_factory=list)
    steps: int = 0


def bisect(candidates: Sequence[str], judge: Callable[[str], str]) -> Search:
    """`candidates`, oldest first, follow a good revision; the last is said to be bad, which is looked at first."""
    search, known = Search(), {}

    def look(index: int) -> str:
        search.steps += 1
        known[index] = judge(candidates[index])
        return known[index]

    good, bad = -1, len(candidates) - 1
    if look(bad) != BAD:
        return search
    while bad - good > 1:
        middle = (good + bad) // 2
        open_ones = [index for index in range(good + 1, bad) if known.get(index) != SKIP]
        if not open_ones:
            break
        chosen = min(open_ones, key=lambda index: abs(index - middle))
        verdict = look(chosen)
        if verdict == GOOD:
            good = chosen
        elif verdict == BAD:
            bad = chosen
    search.suspects = list(candidates[good + 1:bad + 1])
    search.first = candidates[bad] if bad - good == 1 else ""
    return search


def main(root: Path, arguments: Sequence[str]) -> int:
    """The command line of ci/bisect."""
    parser = argparse.ArgumentParser(prog="ci/bisect", allow_abbrev=False, description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter,
                                     epilog="exit codes: 0 found; 2 usage or tool error; 3 not found")
    parser.add_argument("good", metavar="GOOD", help="a revision that is not worse")
    parser.add_argument("bad", metavar="BAD", help="a later revision that is")
    parser.add_argument("--filter", required=True, metavar="RE", help="the cells that became worse")
    parser.add_argument("--stages", default=",".join(comparing.STAGES), metavar="LIST",
                        help="what to compare (default: all); `counters` finds an extra dispatch without a clock")
    parser.add_argument("--minutes", type=float, default=10, help="for times, a step (default: %(default)s)")
    options = parser.parse_args(arguments)
    try:
        re.compile(options.filter)
        good, bad = (revisions.resolve(root, name) for name in (options.good, options.bad))
        listed = revisions.git(root, "rev-list", "--first-parent", "--reverse", f"{good}..{bad}").split()
    except (ReportError, re.error) as error:
        print(f"bisect: {error}", file=sys.stderr)
        return TOOL_ERROR
    if not listed:
        print("bisect: BAD has no commit that GOOD has not", file=sys.stderr)
        return TOOL_ERROR

    def judge(commit: str) -> str:
        code = comparing.main(root, [good, commit, "--filter", options.filter, "--stages", options.stages,
                                     "--minutes", str(options.minutes)])
        verdict = OF_EXIT.get(code, SKIP)
        print(f"bisect: {commit[:12]} is {verdict}", file=sys.stderr, flush=True)
        return verdict

    search = bisect(listed, judge)
    if search.first:
        print(f"first worse of {len(listed)} commits, after {search.steps} steps:")
        print(revisions.git(root, "show", "--no-patch", "--format=%h %an %ad%n  %s", search.first))
        return PASS
    if search.suspects:
        print(f"not found after {search.steps} steps: it is one of {', '.join(one[:12] for one in search.suspects)}")
    else:
        print(f"{options.bad} is not worse than {options.good}: there is nothing to find")
    return INCONCLUSIVE
