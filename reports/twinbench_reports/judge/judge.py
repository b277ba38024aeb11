"""Puts the rules together and decides the exit code."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Sequence

from twinbench_reports.exit_codes import PASS
from twinbench_reports.judge.causes import with_causes
from twinbench_reports.judge.compared import judge_compared
from twinbench_reports.judge.completeness import count_rows, judge_completeness
from twinbench_reports.judge.correctness import judge_correctness
from twinbench_reports.judge.findings import EXIT_OF, SEVERITIES, Finding, Verdict
from twinbench_reports.judge.known import judge_known
from twinbench_reports.judge.measured import judge_measured, judge_outputs_against
from twinbench_reports.judge.modelled import judge_modelled_against
from twinbench_reports.judge.pins import Pins, judge_counters_against, judge_pins
from twinbench_reports.judge.planned import judge_planned
from twinbench_reports.judge.timing import judge_timing
from twinbench_reports.judge.waivers import Waiver, apply_waivers
from twinbench_reports.load import Record


def judge(now: Record, before: Record | None = None, *, pins: Pins | None = None,
          components: Collection[str] | None = None, waivers: Sequence[Waiver] = (),
          today: datetime.date | None = None, timing_advisory: bool = False) -> Verdict:
    """Judges a record, against an earlier one where given. A failure outranks a gap, and a gap outranks a pass.
    `components`: those that there are, where that is known."""
    findings: list[Finding] = [
        *judge_known(now.block, components),
        *judge_correctness(now.block),
        *judge_measured(now.block),
        *judge_compared(now.block),
        *judge_planned(now.block),
        *(judge_outputs_against(now.block, before.block) if before else ()),
        *judge_pins(now.block, pins),
        *judge_counters_against(now, before),
        *judge_modelled_against(now, before),
        *judge_timing(now, before, advisory=timing_advisory),
        *judge_completeness(now.block, before.block if before else None),
    ]
    standing, waived = apply_waivers(list(with_causes(findings)), waivers, today or _day_of(now))
    standing.sort(key=lambda finding: finding.rank)
    exit_code = next((EXIT_OF[severity] for severity in SEVERITIES if any(f.severity == severity for f in standing)),
                     PASS)
    return Verdict(exit_code, standing, sorted(waived, key=lambda finding: finding.rank), count_rows(now.block))


def _day_of(record: Record) -> datetime.date:
    """The day of the run: a report made again later excuses what it excused then."""
    try:
        return datetime.date.fromisoformat(record.provenance["utc"][:10])
    except ValueError:
        return datetime.datetime.now(datetime.timezone.utc).date()
