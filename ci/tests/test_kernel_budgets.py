"""Tests of the kernel budgets: a planted spill, more registers, too much shared memory, missing kernels all fail."""
import contextlib
import io
import json
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import kernel_budgets  # noqa: E402

MANGLED = "_ZN9twinbench7kernels4simt3runINS0_4demo8DoubleItEJNS3_9ArgumentsEEEEvDpT0_"


def report(registers=20, spill=0, shared=128, architectures=("sm_90", "sm_120"), name=MANGLED):
    shared_text = f", {shared} bytes smem" if shared else ""
    return "".join(f"""ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '{name}' for '{architecture}'
ptxas info    : Function properties for helper
    48 bytes stack frame, 40 bytes spill stores, 40 bytes spill loads
ptxas info    : Function properties for {name}
    {spill} bytes stack frame, {spill} bytes spill stores, {spill} bytes spill loads
ptxas info    : Used {registers} registers, used 1 barriers{shared_text}
ptxas info    : Compile time = 4.1 ms
""" for architecture in architectures)


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

    @unittest.skipUnless(shutil.which("nvcc"), "no nvcc")
    def test_a_real_spill_of_a_real_kernel_is_seen(self):
        folder = Path(self.folder.name) / "kernels" / "demo"
        folder.mkdir(parents=True)
        source = folder / "many_values.cu"
        source.write_text("""// Keeps 64 values alive at once: with few registers it must spill.
extern "C" __global__ void many_values(const float* in, float* out) {
  float v[64];
#pragma unroll
  for (int i = 0; i < 64; ++i) v[i] = in[i * 1024 + threadIdx.x];
  __syncthreads();
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 64; ++i) { sum = sum * v[i] + v[63 - i]; out[i] = v[(i * 7) % 64]; }
  out[threadIdx.x + 64] = sum;
}
""")
        nvcc = kernel_budgets.find_nvcc()
        roomy = kernel_budgets.parse_report(kernel_budgets.compile_report(nvcc, [source]))
        tight = kernel_budgets.parse_report(kernel_budgets.compile_report(nvcc, [source], ["-maxrregcount=32"]))
        failures, _ = kernel_budgets.compare(roomy, tight)
        self.assertTrue(any("spill_store_bytes 0 -> " in line for line in failures), failures)


if __name__ == "__main__":
    unittest.main()
