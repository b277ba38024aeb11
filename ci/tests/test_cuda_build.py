"""The program with the CUDA side linked in: it runs where there is no GPU, lists the CUDA cells, and says what is
missing."""
import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = os.environ["TWINBENCH_PROGRAM"]
without_gpu = pytest.mark.skipif(Path("/proc/driver/nvidia").exists(), reason="this machine has an NVIDIA driver")


def run(*arguments, **environment):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=180, cwd=ROOT, env={
        **os.environ,
        **environment})


def _kernel_components():
    for line in (ROOT / "src" / "components.def").read_text().splitlines():
        if line.startswith("TWINBENCH_COMPONENT("):
            pipeline, name, kind, _ = line[len("TWINBENCH_COMPONENT("):].rstrip(")").split(", ")
            if kind != "host":
                yield pipeline, name


def test_every_kernel_component_has_cuda_cells():
    listed = run("list", "--cells")
    assert listed.returncode == 0, listed.stderr
    cells = [line.split("/") for line in listed.stdout.splitlines()]
    components = {".".join(words) for words in _kernel_components()}
    on_cuda = {cell[0] for cell in cells if cell[1] == "optimized" and cell[2] == "cuda"}
    assert on_cuda == components


@without_gpu
@pytest.mark.parametrize("command", [["bench", "--quick"], ["parity", "--quick"], ["counters"], ["ceilings"]])
def test_cuda_asked_for_by_name_is_a_typed_error(command):
    result = run(*command, "--device", "cuda")
    assert result.returncode == 2 and "missing_device" in result.stderr, result.stderr


@without_gpu
@pytest.mark.parametrize("engine", ["bench", "parity", "counters"])
@pytest.mark.parametrize("more, code, field", [([], 3, "skipped"), (["--require-device"], 2, "errors")])
def test_all_devices_skips_the_missing_one_by_name(tmp_path, engine, more, code, field):
    out = tmp_path / "record.json"
    quick = [] if engine == "counters" else ["--quick"]
    result = run(engine, *quick, "--device", "all", "--filter", "simple_neuron/.*/cuda/fp32/train", "--out", out, *more)
    assert result.returncode == code, result.stdout + result.stderr
    ledger = json.loads(out.read_text())["twinbench"]["ledger"]
    assert ledger[field] == ledger["planned"] == (1 if engine == "bench" else 3)  # a twin, or its three cells
    if field == "skipped":
        assert any("missing_device" in reason for reason in ledger["skip_reasons"])
    else:
        assert "missing_device" in result.stdout


@without_gpu
@pytest.mark.parametrize("command", [["bench", "--quick", "--filter", "simple_neuron/.*/fp32/train"], ["ceilings"]])
def test_a_card_that_the_runtime_cannot_open_is_an_error_of_one_line(command):
    fakes = Path(PROGRAM).parents[1] / "fake"
    result = run(*command, "--device", "cuda", TWINBENCH_CUDA_LIBRARY=str(fakes / "libfake_cuda.so"),
                 TWINBENCH_NVML_LIBRARY=str(fakes / "libfake_nvml.so"))
    assert result.returncode == 2, result.stdout + result.stderr
    assert "missing_device: CUDA device 0" in result.stdout and "cudaErrorInsufficientDriver" in result.stdout
    assert "frame #" not in result.stdout + result.stderr
