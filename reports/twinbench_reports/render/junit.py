"""JUnit XML: one suite a section, one test case a row, so that any CI shows each failure by name."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

from twinbench_reports.cells import JUDGED_SECTIONS, named_rows
from twinbench_reports.judge.findings import Finding, Verdict
from twinbench_reports.load import Record

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ELEMENT = {"fail": "failure", "missing": "error", "inconclusive": "error"}


def junit_xml(verdict: Verdict, record: Record) -> str:
    """The rows of the record, and the findings that belong to no row."""
    root = ElementTree.Element("testsuites", name="twinbench")
    findings: dict[tuple[str, str], list[Finding]] = {}
    for finding in verdict.actions:
        findings.setdefault((finding.kind, finding.subject), []).append(finding)
    waived = {(finding.kind, finding.subject): finding for finding in verdict.waived}
    for section in (*JUDGED_SECTIONS, "speedups"):
        rows = list(named_rows(record.block, section))
        if rows:
            suite = ElementTree.SubElement(root, "testsuite", name=section)
            for name, row in rows:
                _add_case(suite, section, name, row, findings.pop((section, name), []), waived.get((section, name)))
    if findings:
        suite = ElementTree.SubElement(root, "testsuite", name="gate")
        for (kind, subject), group in sorted(findings.items()):
            case = ElementTree.SubElement(suite, "testcase", classname=_clean(kind), name=_clean(subject))
            _add_findings(case, group)
    for element in (root, *root):
        element.set("tests", str(sum(1 for _ in element.iter("testcase"))))
        element.set("failures", str(sum(1 for _ in element.iter("failure"))))
        element.set("errors", str(sum(1 for _ in element.iter("error"))))
        element.set("skipped", str(sum(1 for _ in element.iter("skipped"))))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _add_case(suite: ElementTree.Element, section: str, name: str, row: dict, group: list[Finding],
              waived: Finding | None) -> None:
    case = ElementTree.SubElement(suite, "testcase", classname=section, name=_clean(name))
    if row.get("seconds") is not None:
        case.set("time", f"{row['seconds']:.6f}")
    if group:
        _add_findings(case, group)
    elif waived:
        ElementTree.SubElement(case, "skipped", message=_clean(f"waived {waived.waiver}"))
    elif row["verdict"] in ("skip", "inconclusive"):
        ElementTree.SubElement(case, "skipped", message=_clean(row["reason"]))


def _add_findings(case: ElementTree.Element, group: list[Finding]) -> None:
    for finding in group:
        element = ElementTree.SubElement(case, _ELEMENT[finding.severity], type=finding.severity,
                                         message=_clean(finding.message))
        element.text = _clean(
            f"{finding.message}\nreproduce: {finding.reproduce}" if finding.reproduce else finding.message)


def _clean(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
