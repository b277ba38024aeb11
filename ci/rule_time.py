#!/usr/bin/env python3
"""How much longer parity takes for the rules against fast lies: their seconds over those of all other checks, from a
record. The vacuity guard counts among the rules.

usage: ci/rule_time.py RECORD [--most SHARE]      exit code 1: more than SHARE (0.3 stands for 30 %)
To be measured quietly: build/cpu/bin/twinbench parity --out record.json && ci/rule_time.py record.json --most 0.3"""
import argparse
import collections
import json
import sys

RULES = frozenset(("ways", "threads", "carried", "instances", "sensitivity", "precision", "cost", "late",
                   "global_state", "outlives", "vacuity"))


def seconds_by_check(record):
    """{check: [seconds, rows, {component: seconds}]}"""
    found = {}
    for row in record["twinbench"]["parity"]:
        if row["check"] in ("left_out", "process"):
            continue
        entry = found.setdefault(row["check"], [0.0, 0, collections.Counter()])
        entry[0] += row["seconds"]
        entry[1] += 1
        entry[2][row["cell"].partition("/")[0]] += row["seconds"]
    return found


def share(found):
    """The rules' seconds over the others', and both."""
    rules = sum(entry[0] for check, entry in found.items() if check in RULES)
    others = sum(entry[0] for check, entry in found.items() if check not in RULES)
    return (rules / others if others else float("inf")), rules, others


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("record")
    parser.add_argument("--most", type=float)
    options = parser.parse_args(arguments)
    try:
        with open(options.record, encoding="utf-8") as file:
            found = seconds_by_check(json.load(file))
    except (OSError, ValueError, KeyError, TypeError) as error:
        sys.exit(f"rule_time: {options.record}: {error}: give a record that `twinbench parity --out` wrote")
    if not found:
        sys.exit(f"rule_time: {options.record}: no check of parity is in it")
    added, rules, others = share(found)
    print(f"rules {rules:.1f} s, all else {others:.1f} s: the rules add {100 * added:.1f} %")
    for check, (seconds, rows, components) in sorted(found.items(), key=lambda item: -item[1][0]):
        most = ", ".join(f"{name} {of:.1f}" for name, of in components.most_common(3))
        print(f"{seconds:8.2f} s {rows:6d} rows  {'rule' if check in RULES else '    '}  {check:18s} {most}")
    return 1 if options.most is not None and added > options.most else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
