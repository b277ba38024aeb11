"""Tests of the machine code's figures: loads in flight end where one is needed, and a changed kernel is told."""
import contextlib
import io
import json
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import kernel_sass  # noqa: E402


def listing(*instructions):
    rows = "\n".join(text if text.startswith(".") else f"        /*{16 * i:04x}*/                   {text} ;"
                     for i, text in enumerate(instructions))
    return f'\t.section\t.text.demo,"ax",@progbits\n{rows}\n'


FOUR_LOADS = ("LDG.E.128 R4, desc[UR4][R2.64]", "LDG.E.128 R8, desc[UR4][R2.64+0x10]", "LDG.E R12, desc[UR4][R2.64]",
              "LDG.E R13, desc[UR4][R2.64]")


def loads(*instructions):
    return kernel_sass.parse(listing(*instructions))["demo"]["loads_in_flight"]


class KernelSass(unittest.TestCase):
    def test_loads_count_until_one_is_needed(self):
        self.assertEqual(loads(*FOUR_LOADS, "FADD R20, R7, R13", "EXIT"), 4)

    def test_a_store_between_ends_the_flight(self):
        chain = []
        for i in range(4):
            chain += [f"LDG.E R{10 + i}, desc[UR4][R2.64]", f"STG.E desc[UR4][R6.64], R{10 + i}"]
        self.assertEqual(loads(*chain, "EXIT"), 1)

    def test_every_register_of_a_wide_load_is_waited_for(self):
        self.assertEqual(loads("LDG.E.128 R4, desc[UR4][R2.64]", "FADD R20, R7, R1", "LDG.E R9, desc[UR4][R2.64]",
                               "FADD R21, R9, R1", "EXIT"), 1)

    def test_a_jump_target_ends_straight_code(self):
        self.assertEqual(loads("LDG.E R4, desc[UR4][R2.64]", ".L_x_0:", "LDG.E R5, desc[UR4][R2.64]", "FADD R6, R4, R5",
                               "@P0 BRA `(.L_x_0)", "EXIT"), 1)

    def test_copies_in_flight_are_those_of_all_groups_that_a_wait_leaves(self):
        copy = "LDGSTS.E.BYPASS.128 [R7], desc[UR6][R4.64]"
        pipeline = (copy, copy, "LDGDEPBAR", copy, copy, "LDGDEPBAR", "DEPBAR.LE SB0, 0x3 ?WAIT4_END_GROUP", "EXIT")
        self.assertEqual(kernel_sass.parse(listing(*pipeline))["demo"]["copies_in_flight"], 2 * 4)
        waits_for_each = (copy, "LDGDEPBAR", "DEPBAR.LE SB0, 0x0", copy, "LDGDEPBAR", "DEPBAR.LE SB0, 0x0", "EXIT")
        self.assertEqual(kernel_sass.parse(listing(*waits_for_each))["demo"]["copies_in_flight"], 1)

    def test_kinds_are_counted_without_padding(self):
        others = ("STG.E desc[UR4][R2.64], R4", "LDS R1, [R2]", "MUFU.EX2 R1, R2", "@!P0 FFMA R1, R2, R3, R4", "NOP")
        figures = kernel_sass.parse(listing(*FOUR_LOADS, *others, "EXIT"))["demo"]
        expected = {"instructions": 9, "global_loads": 4, "global_stores": 1, "shared": 1, "special": 1, "fma": 1}
        self.assertEqual({key: figures[key] for key in expected}, expected)

    def run_tool(self, measured, pinned, compiler="13.0.88"):
        with tempfile.TemporaryDirectory() as folder:
            pins = Path(folder) / "pins.json"
            pins.write_text(json.dumps({"compiler": "13.0.88", "kernels": pinned}))
            output = io.StringIO()
            with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output), \
                    mock.patch.object(kernel_sass, "measure", return_value=measured), \
                    mock.patch.object(kernel_sass.kernel_budgets, "find_nvcc", return_value="nvcc"), \
                    mock.patch.object(kernel_sass.kernel_budgets, "compiler_version", return_value=compiler):
                code = kernel_sass.main(["--pins", str(pins)])
            return code, output.getvalue()

    def test_a_change_is_told_by_name(self):
        pinned = {"demo::Copy": {"sm_90": {"instructions": 40, "loads_in_flight": 4}}}
        self.assertEqual(self.run_tool(pinned, pinned)[0], 0)
        code, text = self.run_tool({"demo::Copy": {"sm_90": {"instructions": 40, "loads_in_flight": 1}}}, pinned)
        self.assertEqual(code, 1)
        self.assertIn("demo::Copy", text)
        self.assertEqual(self.run_tool({}, pinned)[0], 1)

    def test_pieces_are_compared_and_lines_that_moved_are_not(self):
        def kernel(line, text, words):
            return {"demo::Copy": {"places": [["load", "kernels/demo/kernel.h", line, text]],
                                   "sm_90": {"instructions": 40, "pieces": [{"instructions": 40, "at": [[0, words]]}]}}}
        pinned = kernel(10, "a = b;", 4)
        self.assertEqual(self.run_tool(kernel(12, "a = b;", 4), pinned)[0], 0)
        self.assertEqual(self.run_tool(kernel(10, "a = c;", 4), pinned)[0], 1)
        self.assertEqual(self.run_tool(kernel(10, "a = b;", 8), pinned)[0], 1)

    def test_another_compiler_is_not_compared(self):
        pinned = {"demo::Copy": {"sm_90": {"instructions": 40, "loads_in_flight": 4}}}
        self.assertEqual(self.run_tool(pinned, pinned, compiler="13.1.0")[0], 3)


if __name__ == "__main__":
    unittest.main()
