"""Waivers, records and kept runs with changes at random, dozens of each: read, or refused by name.

What a change of one byte seldom reaches, a whole value of another kind, is changed in the parsed tree too."""

from __future__ import annotations

import copy
import json
import os
import random

import pytest
import synthetic

from twinbench_reports import load
from twinbench_reports.errors import ReportError
from twinbench_reports.judge.waivers import load_waivers
from twinbench_reports.load import load_record, parse_json
from twinbench_reports.store.run import Run, run_of

SEED = 20261123
CHANGES = int(os.environ.get("TWINBENCH_FUZZ_CHANGES", "25"))
WAIVERS = ["", '[[waiver]]\nmatch = "sem.*"\nkind = "timing"\nlimit = 1.25\nreason = "a known driver bug"\n'
           'owner = "who"\nexpiry = 2026-01-31\n',
           '[[waiver]]\nmatch = "a"\nkind = "parity"\nlimit = 2\nreason = "r"\nowner = "o"\nexpiry = 2026-02-28\n'
           '[[waiver]]\nmatch = "b"\nkind = "counters"\nlimit = 0\nreason = "r"\nowner = "o"\nexpiry = 2026-02-28\n',
           'waiver = [{match = "x", kind = "timing", limit = 1e3, reason = "r", owner = "o", expiry = 2026-01-01}]\n']
KEPT = Run("2026-01-01T00:00:00Z", "0123456789ab", "one", "twinbench", {"scan": 1e-3, "sort": 2.5}, "pass", "a" * 64,
           {"scan": [1.1, 1.0, 1.2]}, {"dispatches": 3})
STRANGE = [None, True, -1, 0, 1.5, 1e308, -(2**63), 2**63, 10**400, "", "x", "\x1b[31m", "\ud800", "9" * 400, [], [[]],
           {}, {"a": 1}, "1999-99-99", "::error::x"]


def changed(data, rng):
    """One to three small changes: a byte, a run of bytes from elsewhere, a cut, a doubling."""
    data = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(data) + 1)
        kind = rng.randrange(5)
        if kind == 0 and data:
            data[at % len(data)] = rng.randrange(256)
        elif kind == 1:
            data[at:at] = rng.choice([b"\x00", b"\xff", b"[[", b"]]", b"{", b'"', b"=", b"\n", b"1e999", b"-",
                                      b"\xed\xa0\x80"])
        elif kind == 2:
            del data[at:at + rng.randint(1, 40)]
        elif kind == 3:
            other = rng.randrange(len(data) + 1)
            data[at:at] = data[other:other + rng.randint(1, 60)]
        else:
            del data[at:]
    return bytes(data)


def with_strange_value(root, rng):
    """The tree with one value anywhere in it replaced."""
    root = copy.deepcopy(root)
    at = root
    while True:
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        key = rng.choice(keys)
        if not isinstance(at[key], (dict, list)) or not at[key] or rng.random() < 0.15:
            at[key] = rng.choice(STRANGE)
            return root
        at = at[key]


def read_all(read, inputs):
    """How many were read and how many refused; anything but a ReportError of one printable line is a finding."""
    counts = {True: 0, False: 0}
    for what in inputs:
        try:
            read(what)
            counts[True] += 1
        except ReportError as error:
            assert all(char.isprintable() or char == "\n" for char in str(error)), repr(str(error))
            assert len(str(error)) < 20_000
            counts[False] += 1
    return counts


def test_waivers(tmp_path):
    rng, path = random.Random(SEED), tmp_path / "waivers.toml"

    def read(data):
        path.write_bytes(data)
        for waiver in load_waivers(path):
            assert 0 <= waiver.limit < 1e101 and waiver.reason and waiver.owner

    counts = read_all(read, [changed(rng.choice(WAIVERS).encode(), rng) for _ in range(10 * CHANGES)])
    assert counts[False] > counts[True] // 4 and counts[True] > 0, counts


@pytest.mark.parametrize("how", ["bytes", "values"])
def test_records(tmp_path, how):
    rng, path, root = random.Random(SEED), tmp_path / "record.json", synthetic.full()
    data = json.dumps(root).encode()

    def read(new):
        path.write_bytes(new)
        load_record(path)

    inputs = ([changed(data, rng) for _ in range(CHANGES)] if how == "bytes" else
              [json.dumps(with_strange_value(root, rng)).encode("utf-8", "surrogatepass") for _ in range(CHANGES)])
    counts = read_all(read, inputs)
    assert counts[False] > CHANGES // 4, counts


@pytest.mark.skipif(load.jsonschema_rs is None, reason="only one validator is installed here")
def test_the_quick_validator_says_what_the_other_says():
    rng, root, verdicts = random.Random(SEED), synthetic.full(), set()
    for _ in range(CHANGES):
        try:
            tree = parse_json(json.dumps(with_strange_value(root, rng)).encode("utf-8", "surrogatepass"), "record.json")
        except ReportError:
            continue  # no validator is asked
        verdicts.add((load._keeps_schema(tree), load._validator().is_valid(tree)))
    assert verdicts == {(True, True), (False, False)}


@pytest.mark.parametrize("how", ["bytes", "values"])
def test_kept_runs(how):
    rng, root = random.Random(SEED), json.loads(KEPT.text())

    def read(new):
        run = run_of(parse_json(new, "run.json"), "run.json")
        assert run.file_name.endswith(".json") and "/" not in run.file_name

    data = json.dumps(root).encode()
    inputs = ([changed(data, rng) for _ in range(5 * CHANGES)] if how == "bytes" else
              [json.dumps(with_strange_value(root, rng)).encode("utf-8", "surrogatepass") for _ in range(5 * CHANGES)])
    counts = read_all(read, inputs)
    assert counts[False] > CHANGES, counts
