"""`twinbench configuration`: the documented ones as a table, one whole, as JSON; dropped flows told; hostile files."""
import json
from pathlib import Path

import warm

ROOT = Path(__file__).resolve().parents[2]


def run(*arguments):
    return warm.run("configuration", *arguments, timeout=60)


def test_the_table_has_every_documented_one_and_tells_whose_flows_are_dropped():
    done = run()
    assert done.returncode == 0, done.stderr
    names = {path.stem for path in (ROOT / "configurations").rglob("*.yaml")}
    assert {line.split()[0] for line in done.stdout.splitlines()} >= names and len(names) == 7
    assert {line.split(": ")[1] for line in done.stderr.splitlines()} == {"experiment", "large_lattice", "optimized",
                                                                          "rtx5090"}


def test_one_says_what_it_needs_and_how_it_would_fit():
    whole = run("experiment_as_coded", "--memory", 6)
    assert whole.returncode == 0 and whole.stderr == ""
    assert "12,544 requested, 12,544 admitted, 0 dropped" in whole.stdout
    assert "in 6.00 GB: does not fit; micro_batch 16 and keep_state_every" in whole.stdout
    assert "cannot fit" in run("experiment_as_coded", "--memory", 0.5).stdout


def test_json_holds_the_same():
    row, = json.loads(run("debug", "--json").stdout)["configurations"]
    assert row["flows"] == {"requested": 3200, "quota": 6250, "admitted": 3200, "dropped": 0}
    assert row["bytes"]["optimized"] == sum(row["bytes"][part] for part in (
        "weights", "gradients", "moments", "storage", "batches", "optimized_tape"))
    assert row["fields"]["convergence_patience"] == 5 and row["fields"]["neuron_hidden"] == 32


def test_what_is_wrong_is_told_by_name(tmp_path):
    assert "did you mean 'experiment'" in run("experimnt").stderr
    for wrong in (["none.yaml"], ["--folder", tmp_path], ["--memory", 0], ["--memory", "nan"], [""]):
        assert run(*wrong).returncode == 2, wrong
    text = (ROOT / "configurations/energy_flow/debug.yaml").read_text()
    for planted, told in (("batch_size: 8", "batch_size: -8"), ("name: debug", "name: \"a\\x1b[2J\""),
                          ("lattice_depth: 10", "lattice_depth: 1"), ("  carrier_layers: 2", "  carrier_layer: 2"),
                          ("lattice_width: 20", "lattice_width: 9999999999999999999999"),
                          ("lattice_width: 20", "lattice_width: 65536"), ("batch_size: 8", "batch_size: 010"),
                          ("name: debug", f"name: {'a' * 60000}"), ("text_loss", "batch: 1\n---\ntext_loss")):
        (tmp_path / "planted.yaml").write_text(text.replace(planted, told))
        done = run(tmp_path / "planted.yaml")
        assert done.returncode == 2 and "planted.yaml" in done.stderr and "\x1b" not in done.stderr, done.stderr
