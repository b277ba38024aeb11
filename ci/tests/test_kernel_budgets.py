"""Tests of the kernel budgets: a planted spill, more registers, too much shared memory, lower occupancy all fail."""
import contextlib
import io
import json
import shutil
import sys
import tempfile
import unittest
import unittest.mock
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import kernel_budgets  # noqa: E402
import kernel_compile  # noqa: E402
import kernel_occupancy  # noqa: E402

MANGLED = "_ZN9twinbench7kernels4simt3runINS0_4demo8DoubleItEJNS3_9ArgumentsEEEEvDpT0_"


def report(registers=20, spill=0, shared=128, architectures=("sm_90", "sm_120"), name=MANGLED, threads=256, dynamic=0):
    shared_text = f", {shared} bytes smem" if shared else ""
    return "".join(f"""ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '{name}' for '{architecture}'
ptxas info    : Function properties for helper
    48 bytes stack frame, 40 bytes spill stores, 40 bytes spill loads
ptxas info    : Function properties for {name}
    {spill} bytes stack frame, {spill} bytes spill stores, {spill} bytes spill loads
ptxas info    : Used {registers} registers, used 1 barriers{shared_text}
ptxas info    : Compile time = 4.1 ms
""" for architecture in architectures) + f"twinbench launch: {name} threads {threads} dynamic {dynamic}\n"


class KernelBudgets(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.budgets = Path(self.folder.name) / "budgets.json"

    def run_tool(self, text, *options, compiler="13.0.88"):
        path = Path(self.folder.name) / "report.txt"
        path.write_text(text)
        output = io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            code = kernel_budgets.main(["--report", str(path), "--budgets", str(self.budgets), "--compiler", compiler,
                                        *options])
        return code, output.getvalue()

    def pin(self, text):
        code, output = self.run_tool(text, "--pin")
        self.assertEqual(code, 0, output)

    def test_equal_figures_pass(self):
        self.pin(report())
        self.assertEqual(self.run_tool(report())[0], 0)
        kernels = json.loads(self.budgets.read_text())["kernels"]
        self.assertEqual(list(kernels), ["kernels::demo::DoubleIt"])
        self.assertEqual(kernels["kernels::demo::DoubleIt"]["sm_120"]["stack_bytes"], 0)

    def test_a_pin_is_whole_or_as_it_was(self):
        self.pin(report())
        before = self.budgets.read_text()
        with unittest.mock.patch("os.fsync", side_effect=OSError(28, "No space left on device")):
            code, output = self.run_tool(report(spill=4), "--pin")
        self.assertEqual(code, 2)
        self.assertIn("No space left on device", output)
        self.assertEqual(self.budgets.read_text(), before)
        self.assertEqual(sorted(path.name for path in Path(self.folder.name).iterdir()), ["budgets.json", "report.txt"])

    def test_one_planted_spill_fails_by_name(self):
        self.pin(report())
        code, output = self.run_tool(report(architectures=("sm_90",)) + report(spill=4, architectures=("sm_120",)))
        self.assertEqual(code, 1)
        self.assertIn("kernels::demo::DoubleIt sm_120 spill_store_bytes 0 -> 4", output)
        self.assertNotIn("sm_90", output)

    def test_one_more_register_fails_and_one_less_is_a_note(self):
        self.pin(report())
        code, output = self.run_tool(report(registers=21))
        self.assertEqual(code, 1)
        self.assertIn("registers 20 -> 21", output)
        code, output = self.run_tool(report(registers=19))
        self.assertEqual(code, 0)
        self.assertIn("note:", output)

    def test_too_much_shared_memory_fails_even_when_pinning(self):
        code, output = self.run_tool(report(shared=99 * 1024 + 4), "--pin")
        self.assertEqual(code, 1, output)
        self.assertFalse(self.budgets.exists())
        self.pin(report(shared=99 * 1024))

    def test_dynamic_shared_memory_counts_towards_the_limit(self):
        code, output = self.run_tool(report(shared=1024, dynamic=98 * 1024 + 4), "--pin")
        self.assertEqual(code, 1, output)
        self.assertIn("101380 > 101376", output)
        self.pin(report(shared=1024, dynamic=98 * 1024))
        code, output = self.run_tool(report(shared=1024, dynamic=97 * 1024))
        self.assertEqual(code, 0, output)
        code, output = self.run_tool(report(shared=0, dynamic=98 * 1024 + 512))
        self.assertIn("dynamic_shared_bytes 100352 -> 100864", output)

    def test_occupancy_is_pinned_and_a_lower_one_fails(self):
        self.pin(report(registers=32))
        pinned = json.loads(self.budgets.read_text())["kernels"]["kernels::demo::DoubleIt"]
        self.assertEqual([pinned[a]["warps_per_sm"] for a in ("sm_90", "sm_120")], [64, 48])
        self.assertEqual([pinned[a]["most_warps_per_sm"] for a in ("sm_90", "sm_120")], [64, 48])
        code, output = self.run_tool(report(registers=48))
        self.assertEqual(code, 1)
        self.assertIn("sm_90 warps_per_sm 64 -> 40", output)
        code, output = self.run_tool(report(registers=32, threads=128))
        self.assertEqual(code, 1)
        self.assertIn("threads 256 -> 128", output)

    def test_new_and_vanished_kernels_fail(self):
        self.pin(report())
        self.assertEqual(self.run_tool(report(name="other"))[0], 1)
        self.assertEqual(self.run_tool(report(architectures=("sm_90",)))[0], 1)

    def test_nothing_measured_and_another_compiler_are_never_a_pass(self):
        self.pin(report())
        self.assertEqual(self.run_tool("")[0], 3)
        self.assertEqual(self.run_tool(report(), compiler="13.2.1")[0], 3)

    def test_missing_budgets_and_broken_reports_are_tool_errors(self):
        self.assertEqual(self.run_tool(report())[0], 2)
        self.pin(report())
        self.assertEqual(self.run_tool(report().replace("bytes spill loads", "?"))[0], 2)
        code, output = self.run_tool(report().replace("twinbench launch", "?"))
        self.assertEqual(code, 2)
        self.assertIn("does not say how", output)

    def test_a_kernel_that_is_pinned_twice_is_refused(self):
        self.pin(report())
        text = self.budgets.read_text()
        kernel = '"kernels::demo::DoubleIt": {'
        self.assertEqual(text.count(kernel), 1)
        self.budgets.write_text(text.replace(kernel, '"kernels::demo::DoubleIt": {}, ' + kernel))
        code, output = self.run_tool(report())
        self.assertEqual(code, 2)
        self.assertIn("the key kernels::demo::DoubleIt appears twice", output)

    @unittest.skipUnless(shutil.which("nvcc"), "no nvcc")
    def test_a_real_spill_of_a_real_kernel_is_seen(self):
        folder = Path(self.folder.name) / "kernels" / "demo"
        folder.mkdir(parents=True)
        source = folder / "many_values.cu"
        source.write_text(
            """// Keeps 64 values alive at once: with the registers that a block of 1024 leaves it must spill.
__device__ __forceinline__ void many_values(const float* in, float* out) {
  float v[64];
#pragma unroll
  for (int i = 0; i < 64; ++i) v[i] = in[i * 1024 + threadIdx.x];
  __syncthreads();
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 64; ++i) { sum = sum * v[i] + v[63 - i]; out[i] = v[(i * 7) % 64]; }
  out[threadIdx.x + 64] = sum;
}
extern "C" __global__ void __launch_bounds__(128) roomy(const float* in, float* out) { many_values(in, out); }
extern "C" __global__ void __launch_bounds__(1024) tight(const float* in, float* out) { many_values(in, out); }
""")
        compiled = kernel_compile.alone(kernel_budgets.find_nvcc(), source)
        figures = kernel_budgets.parse_report(kernel_budgets.report_on({source: compiled}))
        kernel_budgets.add_occupancy(figures)
        roomy, tight = ({"many_values": figures[name]} for name in ("roomy", "tight"))
        failures, _ = kernel_budgets.compare(roomy, tight)
        self.assertTrue(any("spill_store_bytes 0 -> " in line for line in failures), failures)


class Occupancy(unittest.TestCase):
    """Against figures worked out by hand from the chips' limits: 64 K registers given out in 256 to a warp, 228 or 100
    KB of shared memory with 1 KB a block reserved, 64 or 48 warps, 32 or 24 blocks."""

    def test_by_hand(self):
        rows = {("sm_90", 32, 0, 0, 256): (8, 64, 64), ("sm_120", 32, 0, 0, 256): (6, 48, 48),  # threads bind
                ("sm_90", 48, 0, 0, 256): (5, 40, 64),       # registers: 65536 / (48 * 256) = 5.3
                ("sm_90", 33, 0, 0, 256): (6, 48, 64),       # 33 registers take 40 a thread: 6.4
                ("sm_90", 16, 0, 0, 32): (32, 32, 64), ("sm_120", 16, 0, 0, 32): (24, 24, 48),  # blocks bind
                ("sm_90", 32, 1024, 60 * 1024, 128): (3, 12, 64),   # 62 KB each of 228
                ("sm_120", 32, 1024, 60 * 1024, 128): (1, 4, 48)}   # and of 100
        self.assertEqual(kernel_occupancy.occupancy(list(rows)), list(rows.values()))

    def test_an_unknown_architecture_is_refused(self):
        with self.assertRaisesRegex(kernel_occupancy.LaunchError, "sm_75"):
            kernel_occupancy.occupancy([("sm_75", 32, 0, 0, 256)])

    def test_launch_bounds_and_dynamic_memory_come_from_the_ptx(self):
        ptx = """.visible .entry plain(
)
.maxntid 32, 8, 1
{
	ret;
}
.visible .entry staged(
)
.maxntid 128
{
	mov.u32 	%r1, _ZN4simt15dynamic_storageE;
}
"""
        self.assertEqual(kernel_occupancy.launches_in_ptx(ptx), {"plain": (256, False), "staged": (128, True)})
        with self.assertRaisesRegex(kernel_occupancy.LaunchError, "plain has no launch bound"):
            kernel_occupancy.launches_in_ptx(ptx.replace(".maxntid 32, 8, 1", ""))

    def test_a_launch_of_other_blocks_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "demo.cu"
            source.write_text(
                "constexpr int kLanes = 32;\n simt::launch(demo::Plain{}, grid_of(a, b), dim3(kLanes, Plain::kRows), "
                "0);"
            )
            header = Path(folder) / "demo.h"
            header.write_text("static constexpr int kRows = 4 * 2;")
            kernel_occupancy.check_launch_sites([source], Path(folder), {"Plain": 256})
            with self.assertRaisesRegex(kernel_occupancy.LaunchError, "Plain with blocks of 256 threads"):
                kernel_occupancy.check_launch_sites([source], Path(folder), {"Plain": 128})
            source.write_text("simt::launch(Plain{}, 1, a.threads, 0);")
            with self.assertRaisesRegex(kernel_occupancy.LaunchError, "a.threads"):
                kernel_occupancy.check_launch_sites([source], Path(folder), {"Plain": 128})

    def test_kernels_of_one_name_are_told_apart_by_their_namespace(self):
        with tempfile.TemporaryDirectory() as folder:
            kernels = Path(folder)
            for component, threads in (("one", 128), ("other", 256)):
                place = kernels / "pipeline" / component
                place.mkdir(parents=True)
                (place / "kernel.h").write_text(
                    f"namespace twinbench::pipeline::{component} {{\nstruct Forward {{\n"
                    f"static int documented_shared_bytes() {{ return {threads}; }} }};\n}}\n")
                (place / "launch.cu").write_text(f"simt::launch(Forward{{}}, 1, {threads}, 0);")
            types = {f"twinbench::pipeline::{name}::Forward": threads
                     for name, threads in (("one", 128), ("other", 256))}
            self.assertEqual(kernel_occupancy.dynamic_shared_bytes(list(types), kernels), types)
            sources = sorted(kernels.rglob("*.cu"))
            kernel_occupancy.check_launch_sites(sources, kernels, types)
            with self.assertRaisesRegex(kernel_occupancy.LaunchError, "Forward with blocks of 128 threads"):
                kernel_occupancy.check_launch_sites(sources, kernels, dict(zip(types, (256, 128))))

    def test_a_dynamic_kernel_states_its_bytes(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "demo_kernel.h").write_text(
                "struct Stated { static int documented_shared_bytes() { return 4096; } };\n"
                "struct Silent {\n};\n")
            self.assertEqual(kernel_occupancy.dynamic_shared_bytes(["Stated"], Path(folder)), {"Stated": 4096})
            with self.assertRaisesRegex(kernel_occupancy.LaunchError, "documented_shared_bytes"):
                kernel_occupancy.dynamic_shared_bytes(["Silent"], Path(folder))


class LaunchText(unittest.TestCase):
    """What is read from the text of launches: constants, and the kernels that a lambda is given."""

    def test_constants_may_stand_in_terms_of_later_files(self):
        with tempfile.TemporaryDirectory() as folder:
            first, second = Path(folder) / "a.h", Path(folder) / "b.h"
            first.write_text("constexpr int kRows = 2 * other::kThreads;\nconstexpr int kWidth = sizeof(float);\n")
            second.write_text("constexpr int kThreads = 8 * 32;\n")
            self.assertEqual(kernel_occupancy.constants([first, second]), {"kThreads": 256, "kRows": 512})

    def test_kernels_of_a_lambda_are_those_that_it_is_given(self):
        text = ("void launch() {\n  const auto start = [&](auto kernel) { simt::launch(kernel, grid); };\n"
                "  wide ? start(Wide{}) : start(common::Narrow{});\n}\n\nvoid other() { start(Elsewhere{}); }\n")
        at = text.index("simt::launch")
        self.assertEqual(kernel_occupancy.names_of("kernel", text, at), ["Wide", "Narrow"])
        self.assertEqual(kernel_occupancy.names_of("demo::Double{}", text, at), ["Double"])
        for kernel, around in (("kernel", "simt::launch(kernel, grid);"), ("other", text)):
            with self.assertRaises(kernel_occupancy.LaunchError):
                kernel_occupancy.names_of(kernel, around, around.index("simt::launch"))
        unused = text.replace("Wide{}", "Wide").replace("common::Narrow{}", "Narrow")
        with self.assertRaises(kernel_occupancy.LaunchError):
            kernel_occupancy.names_of("kernel", unused, at)


if __name__ == "__main__":
    unittest.main()
