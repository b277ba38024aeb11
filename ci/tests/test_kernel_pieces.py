"""Tests of pieces of machine code: control flow, anchors by source line, and what of them is pinned.

The listings are hand-written (harness/model/testing/listings.json); the model's own tests take their pieces from there
and hold what they give for the counted accesses to the true number of executions.
"""
import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "ci"))
import kernel_listing  # noqa: E402
import kernel_pieces  # noqa: E402

LISTINGS = json.loads((ROOT / "harness" / "model" / "testing" / "listings.json").read_text())
KERNEL, HELPER = "/anywhere/kernels/demo/kernel.h", "kernels/common/helper.h"


def listing(code: list[str]) -> str:
    """As nvdisasm prints it. "line 5 in 20": line 5 of a helper that line 20 of the kernel calls."""
    rows, address = ['\t.section\t.text.demo,"ax",@progbits'], 0
    for text in code:
        if text.startswith("line "):
            numbers = text.split()[1::2]
            outer = f'\t//## File "{KERNEL}", line {numbers[-1]}'
            if len(numbers) > 1:
                rows.append(f'\t//## File "{HELPER}", line {numbers[0]} inlined at "{KERNEL}", line {numbers[1]}')
            rows.append(outer)
        elif text.startswith("."):
            rows.append(text)
        else:
            rows.append(f"        /*{address:04x}*/                   {text} ;")
            address += 16
    return "\n".join(rows)


def pieces(code: list[str]) -> list[dict]:
    return kernel_pieces.pieces_of(kernel_listing.parse(listing(code))["demo"])


@pytest.mark.parametrize("row", LISTINGS, ids=[row["name"] for row in LISTINGS])
def test_a_listing_falls_into_the_pieces_that_the_models_tests_take(row):
    found = kernel_pieces.with_numbered_places({"sm_90": {"pieces": pieces(row["code"])}}, ROOT)
    assert found == {"places": row["places"], "sm_90": {"pieces": row["pieces"]}}


def test_code_after_a_loop_belongs_to_the_code_before_it():
    first, inner = pieces(["MOV R1, R2", ".L_x_0:", "line 2", "LDS R4, [R5]", "@P0 BRA `(.L_x_0)", "FADD R6, R6, R4",
                           "EXIT"])
    assert (first["instructions"], first["fma"], inner["instructions"]) == (3, 1, 2)


def test_what_follows_an_early_exit_is_a_piece_of_its_own():
    first, rest = pieces(["line 2", "LDS R4, [R5]", "@P0 EXIT", "line 3", "STS [R5], R4", "EXIT"])
    assert first["at"].keys() == {("warps",), ("shared load", "kernels/demo/kernel.h", 2)}
    assert rest["at"].keys() == {("shared store", "kernels/demo/kernel.h", 3)} and "within" not in rest


def test_a_wide_access_moves_as_many_words_and_a_guarded_one_is_kept_apart():
    code = ["line 2", "LDG.E.128 R4, desc[UR4][R2.64]", "@P0 LDG.E.64 R8, desc[UR4][R2.64]", "LDS.U16 R1, [R2]",
            "LDSM.16.M88.4 R4, [R2]", "ATOMS.ADD.64 R1, [R2], R4", "LDGSTS.E.BYPASS.LTC128B.128 [R7], desc[UR6][R4.64]",
            "@!PT LDS RZ, [RZ]", "HMMA.16816.F32.BF16 R4, R8, R12, R4", "EXIT"]
    only, = pieces(code)
    here = ("kernels/demo/kernel.h", 2)
    assert only["at"] == {("warps",): 1, ("load", *here): 4 + 4, ("shared load", *here): 0.5 + 4,
                          ("shared atomic", *here): 2, ("products",): 1}
    assert only["if"] == {("load", *here): 2}


def test_lanes_that_have_diverged_and_slow_paths_are_not_followed():
    only, = pieces(["BRA.DIV UR4, `(.L_x_1)", "EXIT", ".L_x_1:", "line 9", "STS [R5], R4", "EXIT"])
    assert only["instructions"] == 2


def test_the_layers_own_lines_are_no_places():
    code = kernel_listing.parse('\t.section\t.text.demo,"ax"\n'
                                '\t//## File "/w/kernels/common/simt_async.h", line 3 '
                                'inlined at "/w/kernels/demo/kernel.h", line 7\n'
                                '\t//## File "/w/kernels/demo/kernel.h", line 7 '
                                'inlined at "/w/kernels/common/cuda_launch.h", line 9\n'
                                "        /*0000*/   LDGSTS.E.128 [R7], desc[UR6][R4.64] ;\n        /*0010*/   EXIT ;")
    assert code["demo"][0].frames == (("kernels/common/simt_async.h", 3), ("kernels/demo/kernel.h", 7),
                                      ("kernels/common/cuda_launch.h", 9))
    assert kernel_pieces.place_of(code["demo"][0]) == ("load", "kernels/demo/kernel.h", 7)


def test_a_place_keeps_the_text_of_its_line(tmp_path):
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "kernel.h").write_text("first\n   second line, which is longer than what is kept of it;\n")
    figures = {"pieces": [{"instructions": 1, "at": {("load", "kernels/kernel.h", 2): 4}}]}
    found = kernel_pieces.with_numbered_places({"sm_90": figures}, tmp_path)
    assert found["places"] == [["load", "kernels/kernel.h", 2, "second line, which is longer than what is"[:40]]]


def test_diverged_lanes_meet_where_it_was_said_before():
    first, one, other = pieces(["BSSY.RECONVERGENT B0, `(.L_x_4)", "@P0 BRA `(.L_x_3)", "line 2", "STS [R5], R4",
                                "BSYNC.RECONVERGENT B0", ".L_x_3:", "line 3", "LDS R4, [R5]", "BSYNC.RECONVERGENT B0",
                                ".L_x_4:", "line 4", "STG.E desc[UR4][R2.64], R4", "EXIT"])
    assert [list(piece["at"]) for piece in (one, other)] in (
        [[("shared store", "kernels/demo/kernel.h", 2)], [("shared load", "kernels/demo/kernel.h", 3)]],
        [[("shared load", "kernels/demo/kernel.h", 3)], [("shared store", "kernels/demo/kernel.h", 2)]])
    assert ("store", "kernels/demo/kernel.h", 4) in first["at"]


def test_what_a_loop_is_left_for_is_not_executed_in_its_every_round():
    first, *_ = pieces(["MOV R1, R2", ".L_x_0:", "line 2", "LDS R4, [R5]", "@P1 BRA `(.L_x_2)", "line 3",
                        "LDS R7, [R5]", "@P0 BRA `(.L_x_0)", "EXIT", ".L_x_2:", "FADD R6, R6, R4", "FADD R6, R6, R4",
                        "EXIT"])
    assert first["fma"] == 2
