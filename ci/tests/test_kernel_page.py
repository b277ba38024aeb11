"""The page of the CUDA path without a card: every planted bug names a test that is there, and the tables say what the
pins and records hold."""
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "ci"))
import kernel_page  # noqa: E402
from test_cheats import there  # noqa: E402

PROOFS = json.loads((ROOT / "ci/kernel_proofs.json").read_text())
PINS = json.loads((ROOT / "ci/kernel_counts.json").read_text())
CELL = "energy_flow.first/optimized/simt/fp32/large"


def row(sectors, lanes=320):
    access = {"requests": 10, "lanes": lanes, "ideal": 40, "sectors": sectors}
    return {"loads": access, "shared": {"requests": 1, "lanes": 32, "ideal": 2, "wavefronts": 64}}


def pin(share):
    return {"microseconds": "20.00", "floor_share": share, "limiter": "first::Forward: L2 bandwidth"}


NOW = {CELL: {"first::Forward": row(40), "modelled H200": pin("0.850"), "modelled RTX 5090": pin("0.910")},
       CELL.replace("large", "tiny"): {"first::Forward": row(40), "modelled H200": pin("0.001")},
       CELL.replace("large", "backward_large"): {"first::Backward": row(44, 240), "modelled H200": pin("0.500")}}
FIGURES = [{"what": "the first one", "cell": CELL, "at_least": 0.9, "why": "L2 is in the way"}]
THEN = {CELL: {"first::Forward": row(160)}}


def page(**changes):
    given = {"pins": {"cells": NOW, "reasons": [{"bound": "lanes", "kernel": "first::Backward"}]}, "versions": [THEN],
             "proofs": PROOFS, "parity_blocks": [], "machine_code": "", "revision": "abc",
             "launches": []} | changes
    given["proofs"] = PROOFS | {"figures": FIGURES} | changes.get("proofs", {})
    return kernel_page.page(**given)


def test_every_planted_bug_and_mended_point_names_what_holds_it():
    proofs = PROOFS["planted"] + PROOFS["mended_by_reading"]
    assert not {by for one in proofs for by in one["by"]} - there()
    assert all(one["by"] for one in proofs) and len(PROOFS["mended_by_reading"]) == 8 and PROOFS["unknown"]
    for asked in ("uncoalesced walk", "32-way bank conflict", "misaligned vector load", "missing atomic between blocks",
                  "divided warp", "redundant second read", "atomic hot spot"):
        assert asked in [one["bug"] for one in PROOFS["planted"]]


def test_counts_stand_beside_the_first_ones():
    text = page()
    assert "| `first::Forward` | energy_flow.first/fp32/large | 4.00 -> 1.00 | - | 32.00 | 32 |" in text
    never_pinned = "| `first::Backward` | energy_flow.first/fp32/backward_large | 1.10 | - | 32.00 | 24 |"
    assert never_pinned in text


def test_the_largest_cell_of_each_pass_is_modelled_on_both_cards():
    text = page()
    assert "| energy_flow.first/fp32/large | H200 | 17.00 | 20.00 | 85 % | first::Forward: L2 bandwidth |" in text
    assert "| energy_flow.first/fp32/large | RTX 5090 | 18.20 |" in text and "fp32/tiny" not in text
    assert "| energy_flow.first/fp32/backward_large | H200 | 10.00 | 20.00 | 50 % |" in text


def test_a_figure_that_is_missed_says_why():
    first = "| the first one | energy_flow.first/fp32/large | "
    assert first + "90 % | 85 % | 91 % | H200 | L2 is in the way |" in page()
    met = page(proofs={"figures": [FIGURES[0] | {"at_least": 0.85}]})
    assert first + "85 % | 85 % | 91 % | none | - |" in met
    assert all(one["cell"] in PINS["cells"] for one in PROOFS["figures"]), "of cells that are pinned"
    assert "|  |" not in "".join(kernel_page.asked(PROOFS["figures"], PINS["cells"])), "a miss has a reason"
    untold = kernel_page.asked([one | {"why": ""} for one in PROOFS["figures"]], PINS["cells"])
    assert "|  |" in "".join(untold), "and none is written where nothing was missed"


def launch(card, moving, seconds, name="first::Forward", limiter="instruction issue"):
    return {"card": card, "parts": [{"name": name, "microseconds": seconds, "limiter": limiter,
                                     "terms_microseconds": {"memory bandwidth": moving}}]}


def test_kernels_that_stream_are_held_against_copy_bandwidth():
    small = {"cell": CELL.replace("large", "tiny"), "modelled": [launch("H200", 1, 10), launch("RTX 5090", 1, 10)]}
    large = {"cell": CELL, "modelled": [launch("H200", 8, 10), launch("RTX 5090", 18, 20)]}
    other = {"cell": CELL, "modelled": [launch("H200", 4, 10, "first::Busy"), launch("RTX 5090", 4, 10, "first::Busy"),
                                        launch("H200", 9, 10, "mm 1x1x1 bf16")]}
    text = page(launches=[small, large, other])
    row = "| `first::Forward` | energy_flow.first/fp32/large | 80 % | 90 % | instruction issue | no reason written |"
    assert row in text and "first::Busy" not in text and "`mm" not in text
    reasons = page(launches=[large], proofs={"streams": {"first::Forward": "its slots"}})
    assert "| instruction issue | its slots |" in reasons
    fast = page(launches=[{"cell": CELL, "modelled": [launch("H200", 8.6, 10), launch("RTX 5090", 18, 20)]}])
    assert "| 86 % | 90 % | instruction issue | - |" in fast


def test_parity_and_machine_code_are_summed_up():
    def check(verdict, ratio):
        return {"cell": CELL, "verdict": verdict, "seconds": 2.0, "outputs": [{"worst_ratio": ratio}]}

    blocks = [{"parity": [check("pass", 0.25), check("pass", 0.5), check("fail", None),
                          check("pass", 0.9) | {"cell": CELL.replace("simt", "cpu")}]}]
    code = "sm_90   AsyncPass       SASS instructions  equal: 120\n0 differences\n"
    text = page(parity_blocks=blocks, machine_code=code)
    assert "| energy_flow.first | fp32 | 1 | 2 | 1 fail | 0.50 |" in text
    assert "| sm_90 | AsyncPass | SASS instructions | equal | 120 |" in text


def test_the_page_is_there_and_shows_every_kernel():
    text = (ROOT / "reports/kernels.md").read_text()
    shown = set(re.findall(r"^\| `([\w:]+)` \|", text, re.MULTILINE))
    pinned = set(kernel_page.kernels_of(PINS["cells"]))
    assert shown == pinned, "write it anew: ci/kernel_page.py --help"
    assert all(one["bug"] in text for one in PROOFS["planted"])
    parity = text.split("## Parity on simt")[1].split("## ")[0]
    passed = re.findall(r"^\| \w+\.\w+ \| \w+ \| \d+ \| (\d+) \|", parity, re.MULTILINE)
    assert passed and "0" not in passed, "a component that was skipped shows nothing: run it to its end"
    assert "no reason written" not in text
    for part in ("## Parity on simt", "## Modelled times", "### Figures that were asked", "### Kernels that stream",
                 "## Machine code", "## Unknown until more of a card is there"):
        assert part in text
