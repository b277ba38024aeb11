"""Every operator against the torch modules a user would write, fp32, timed from Python at every documented size.

python operator_table.py LIBRARY [--filter RE] [--seconds S] [--device cpu]: build/<preset>/lib/libtwinbench_ops.so;
the sizes are the timed cases of the program beside it. Values (and gradients) are compared before anything is timed.
Ratios are module / operator: pairs in ABBA order, the median with its exact 95 % interval. Exits 1 if one is below 1.0
by its whole interval, or if values differ."""

import argparse
import json
import math
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import waiting_threads  # noqa: E402

POLICY = waiting_threads.settle()  # before torch loads
import torch  # noqa: E402
from operator_modules import ALSO, PAIRS  # noqa: E402


def operators_and_cases(program):
    """(component, case) of every operator that the library registers, in the program's order."""
    listed = json.loads(subprocess.run([program, "list", "--json"], check=True, capture_output=True, text=True).stdout)
    components = listed["components"] if isinstance(listed, dict) else listed
    for component in components:
        if not hasattr(torch.ops.twinbench, component["id"].replace(".", "_")):
            continue
        for case in [case for case in component["cases"] if case["timed"]] + ALSO.get(component["id"], []):
            yield component["id"], case


def drawn_like(results):
    return [torch.randn_like(result) for result in results]


def runs(pair, backward):
    """The two things that are timed, module first: one forward pass, or one with every gradient."""
    if not backward:

        def forward(function):
            with torch.no_grad():
                return function(*pair.data)

        return [lambda f=f: forward(f) for f in (pair.module, pair.operator)]
    data = [tensor.requires_grad_(tensor.is_floating_point()) for tensor in pair.data]
    leaves = [tensor for tensor in data + pair.parameters if tensor.requires_grad]
    results = pair.module(*data)
    gradients = drawn_like(results)

    def both(function):
        return torch.autograd.grad(function(*data), leaves, gradients, allow_unused=True)

    return [lambda f=f: both(f) for f in (pair.module, pair.operator)]


def differing(theirs, ours):
    """Empty, or what differs. Results of 1e3 products in another order."""
    for index, (one, other) in enumerate(zip(theirs, ours, strict=True)):
        if one is None and (other is None or not other.any()):
            continue  # unused; the operator gives zeros
        try:
            torch.testing.assert_close(other, one, rtol=2e-3, atol=2e-4 * max(1.0, one.abs().max().item()))
        except AssertionError as error:
            return f"result {index}: {error}"
    return ""


def seconds_of(run, calls, device):
    if device == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(calls):
        run()
    if device == "cuda":
        torch.cuda.synchronize()
    return (time.perf_counter() - start) / calls


def median_interval(values):
    """The median and the order statistics that hold it with 95 % or more."""
    ordered, n = sorted(values), len(values)
    below, outside = 0.0, 0  # P(fewer than `outside` values lie below the median)
    while outside < (n - 1) // 2 and below + math.comb(n, outside) / 2**n <= 0.025:
        below += math.comb(n, outside) / 2**n
        outside += 1
    low = max(outside - 1, 0)
    return statistics.median(ordered), ordered[low], ordered[n - 1 - low]


def timed(module, operator, seconds, device):
    """Ratios of pairs, and each side's median seconds. A pair is module, operator, operator, module: drift cancels."""
    for run in (module, operator):
        run()
    once = max(seconds_of(module, 3, device), seconds_of(operator, 3, device))
    calls = max(1, min(200, int(0.003 / once)))  # a timed piece takes some 3 ms
    ratios, sides, end = [], ([], []), time.perf_counter() + seconds
    while len(ratios) < 7 or time.perf_counter() < end:
        a, b, c, d = (seconds_of(run, calls, device) for run in (module, operator, operator, module))
        ratios.append(math.sqrt(a * d / (b * c)))
        sides[0].append((a + d) / 2)
        sides[1].append((b + c) / 2)
    return median_interval(ratios), *map(statistics.median, sides)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", type=Path)
    parser.add_argument("--filter", default=".", help="regular expression over <component>/<case>")
    parser.add_argument("--seconds", type=float, default=4.0, help="for each row")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    given = parser.parse_args()
    torch.ops.load_library(given.library)
    cases = list(operators_and_cases(given.library.resolve().parents[1] / "bin/twinbench"))
    missing = sorted({component for component, _ in cases} - PAIRS.keys())
    if missing:
        sys.exit(f"operator_table: no modules for {', '.join(missing)}; remedy: add them to operator_modules/")
    threads = torch.get_num_threads()
    print(f"torch {torch.__version__}, {given.device}, {threads} threads, waiting threads {POLICY}, fp32")
    print(f"{'operator/case':52} {'module':13} {'pass':8} {'module':>9} {'operator':>9}  ratio [95 % interval]")
    failed = []
    for component, case in cases:
        row = f"{component}/{case['name']}"
        if not re.search(given.filter, row):
            continue
        backward = case["pass"] == "backward"
        torch.manual_seed(20)
        silent = {name: value for name, value in case["options"].items() if name != "noise"}
        checked = list(PAIRS[component](case["sizes"], silent, given.device))
        torch.manual_seed(20)
        for pair, exact in zip(PAIRS[component](case["sizes"], case["options"], given.device), checked):
            torch.manual_seed(21)  # noise cannot be compared: two generators
            wrong = differing(*(run() for run in runs(exact, backward)))
            if wrong:
                failed.append(f"{row} {pair.name}: {wrong}")
                continue
            (ratio, low, high), theirs, ours = timed(*runs(pair, backward), given.seconds, given.device)
            times = f"{'both' if backward else 'forward':8} {theirs * 1e6:7.0f}us {ours * 1e6:7.0f}us"
            judged = f"{ratio:5.2f}x [{low:.2f}, {high:.2f}]{'  BELOW 1.0' if high < 1 else ''}"
            print(f"{row:52} {pair.name:13} {times}  {judged}", flush=True)
            if high < 1:
                failed.append(f"{row} {pair.name}: {ratio:.2f}x")
    for line in failed:
        print(f"operator_table: {line}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
