"""What a disturbed run came to (ci/injections.py), against an undisturbed one: a named status, or what is wrong."""
import json
import re
from collections import Counter
from dataclasses import dataclass, field

EXPECTED = {"bench": (0, 3)}  # undisturbed: the null test of a busy machine is undecided
NAMES = {0: "unharmed", 1: "failed, named", 2: "refused, named", 3: "undecided, named", 4: "a limit, named"}
# A word of src/common/error.h, of harness/runner/job.h or of harness/gpu/status.h must be there.
NAMED = re.compile(r"\b(bad_argument|unknown_name|out_of_range|bad_file|truncated|corrupt|input_output|missing_device|"
                   r"out_of_memory|bad_launch|bad_kernel|internal|timeout|silent|crashed|aborted|protocol_error|"
                   r"interrupted|left_processes|"
                   r"no_driver|no_device|unsupported_architecture|"
                   r"driver_\w+|cupti_\w+|nvml_\w+|records_dropped|libgomp)\b")
# The system's own loader, before any code of ours runs.
NOT_LOADED = re.compile(r"error while loading shared libraries: \S+: (failed to map|cannot map|cannot allocate)")
# What two runs of the same have in common, by section of the record.
ROWS = {"parity": ("cell", "check", "verdict"), "counters": ("cell", "verdict", "values", "by_name"),
        "proofs": ("component", "counter", "verdict"), "selftest": ("name", "verdict"), "ceilings": ("name", "device"),
        "scenarios": ("scenario", "verdict"), "modelled": ("cell", "card", "microseconds", "verdict")}


@dataclass
class Result:
    code: int | None  # None: it hung
    said: str
    complained: str
    left: list = field(default_factory=list)  # beside its file
    file: bytes | None = None


def block_of(result):
    """The record's own section; None where the file is something else."""
    try:
        return json.loads(result.file)["twinbench"]
    except (TypeError, ValueError, KeyError):
        return None


def gist(engine, result):
    """What must be equal between two undisturbed runs: the answers, not the times."""
    block = block_of(result)
    if block is None:
        return result.file, "" if engine in ("ceilings", "dump", "data") else result.said.replace("\r", "")
    return {name: [{key: row.get(key) for key in keys} for row in block[name]] for name, keys in ROWS.items()}


def devices(result):
    """What is known of the card, and what it was seen to do."""
    block = block_of(result) or {}
    traced = [(row["cell"], (row.get("device_activity") or {}).get("kernels"), row.get("device_activity_reason"))
              for row in block.get("counters", [])]
    timelines = [(row["reason"], sorted(key for key, values in (row["samples"] or {}).items() if any(
        value is not None for value in (values if isinstance(values, list) else [values]))))
        for row in block.get("timelines", [])]
    known = block.get("provenance", {})
    return json.dumps([known.get("gpu"), known.get("driver"), known.get("gpu_reason"), traced, timelines],
                      sort_keys=True)


def judged(engine, result, undisturbed, may_die_of=(), ended=False, of_work=False, of_driver=False, times_too=False):
    """(what it came to, what is wrong with that). of_work: exit code 1 is right, for the cell itself came to harm;
    ended: what was planned need not all be accounted for; of_driver: 0 is right where the record says what is
    missing."""
    code, spoken = result.code, result.said + result.complained
    what = NAMES.get(code, "hung" if code is None else f"ended by signal {-code}" if code < 0 else f"code {code}")
    if code == 127 and NOT_LOADED.search(result.complained) and result.file is None:
        return "not started, said by the loader", f"left {result.left[:3]}" if result.left else ""
    wrong = "" if code in NAMES or (code is not None and -code in may_die_of) else what
    block = block_of(result)
    is_record = block_of(undisturbed) is not None
    if result.file is not None and is_record and block is None:
        return what, wrong or "half a record"
    if block and code is not None and code >= 0:
        ledger = block["ledger"]
        if code == 0 and ledger["exit_code"] != 0:
            wrong = wrong or "0 with another code in the record"
        accounted = sum(ledger[key] for key in ("passed", "failed", "errors", "skipped", "inconclusive"))
        # What a scenario is judged by is known once it has run.
        wanted = ledger["planned"] if engine == "scenario" else block_of(undisturbed)["ledger"]["planned"]
        if not ended and (accounted != ledger["planned"] or ledger["planned"] != wanted):
            wrong = wrong or f"{accounted} of {wanted} accounted for"
    if code in EXPECTED.get(engine, (0,)) and not NAMED.search(spoken if code else ""):
        what = "unharmed"
        if undisturbed.file is not None and result.file is None:
            wrong = wrong or f"{code} without its file"
        elif not times_too and gist(engine, result) != gist(engine, undisturbed):
            wrong = wrong or "silent: it reports something else"
    elif code is not None and code > 0 and not NAMED.search(spoken):
        wrong = wrong or "no word for what happened"
    if of_driver and code == 0 and devices(result) != devices(undisturbed):
        what = "reported without what was refused, named"
        words, usual = (Counter(NAMED.findall(devices(one))) for one in (result, undisturbed))
        if not words - usual:
            wrong = wrong or "silent: something is missing of the card, and no word for it"
    if code == 1 and not of_work:
        wrong = wrong or "1, which is for work that failed"
    if result.left:
        wrong = wrong or f"left {result.left[:3]}"
    return what, wrong
