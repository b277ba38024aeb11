"""GitHub workflow annotations: few, worst first, then one that points to the rest."""

from __future__ import annotations

from twinbench_reports.judge.findings import Verdict

# GitHub shows 10 of a level and drops the others without a word.
LIMIT = 8
_LEVEL = {"fail": "error", "missing": "error", "inconclusive": "warning"}


def annotations(verdict: Verdict) -> str:
    """At most LIMIT lines, and one that says how many more there are."""
    actions = verdict.actions
    lines = [
        _line(_LEVEL[finding.severity], f"{finding.severity}: {finding.subject}",
              f"{finding.text}\n{finding.reproduce}".strip()) for finding in actions[:LIMIT]]
    if len(actions) > LIMIT:
        lines.append(
            _line("warning", "twinbench",
                  f"{len(actions) - LIMIT} more findings: see the job summary, verdict.json or the HTML report"))
    return "".join(line + "\n" for line in lines)


def _line(level: str, title: str, message: str) -> str:
    return f"::{level} title={_escape(title).replace(':', '%3A').replace(',', '%2C')}::{_escape(message)}"


def _escape(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
