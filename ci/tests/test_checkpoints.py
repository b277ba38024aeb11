"""Checkpoints and Python: what safetensors writes becomes a checkpoint and comes back, damage is named."""
import json

import numpy as np
import pytest
import warm
from safetensors.numpy import load_file, save_file

STATE = {"parameters/0": np.linspace(-1, 1, 4001, dtype=np.float32).reshape(1, 4001),
         "counts": np.array([3, 700], dtype=np.int64), "scale": np.array(65536.0), "none": np.zeros((0, 3))}


@pytest.fixture
def checkpoint(tmp_path):
    save_file(STATE, tmp_path / "python.safetensors", metadata={"config.lattice_width": "50", "sequence": "7"})
    done = warm.run("data", "convert", tmp_path / "python.safetensors", "--out", tmp_path / "run.efck")
    assert done.returncode == 0, done.stderr
    return tmp_path / "run.efck"


def test_python_reads_what_it_wrote(checkpoint, tmp_path):
    assert warm.run("data", "convert", checkpoint, "--out", tmp_path / "back.safetensors").returncode == 0
    back = load_file(tmp_path / "back.safetensors")
    assert sorted(back) == sorted(STATE)
    for name, value in STATE.items():
        assert back[name].dtype == value.dtype and back[name].shape == value.shape
        assert back[name].tobytes() == value.tobytes()


def test_info_says_what_it_holds(checkpoint):
    said = json.loads(warm.run("data", "info", checkpoint, "--json").stdout)
    assert said["sequence"] == 7 and said["version"] == 1 and said["metadata"] == {"config.lattice_width": "50"}
    weights = {section["name"]: section for section in said["sections"]}["parameters/0"]
    assert weights["shape"] == [1, 4001] and weights["bytes"] == 16004 and weights["stored"] < 15000
    assert "all checksums right" in warm.run("data", "info", checkpoint).stdout


def test_damage_is_named(checkpoint):
    whole = checkpoint.read_bytes()
    checkpoint.write_bytes(whole[:100] + bytes([whole[100] ^ 1]) + whole[101:])
    told = warm.run("data", "info", checkpoint)
    assert told.returncode == 2 and "checkpoint section" in told.stderr and "checksum mismatch" in told.stderr
    checkpoint.write_bytes(whole[:-1])
    told = warm.run("data", "info", checkpoint)
    assert told.returncode == 2 and "truncated" in told.stderr


def test_two_of_a_kind_are_refused(checkpoint, tmp_path):
    told = warm.run("data", "convert", checkpoint, "--out", tmp_path / "other.efck")
    assert told.returncode == 2 and "safetensors" in told.stderr and not (tmp_path / "other.efck").exists()
