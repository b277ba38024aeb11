"""Checks the GRU twin against torch.nn.GRUCell: dump a cell, compute its outputs with another implementation, check."""
import argparse, subprocess, sys, tempfile, torch
from safetensors.torch import load_file, safe_open, save_file

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("program", help="build/<preset>/bin/twinbench")
program, cell = parser.parse_args().program, "energy_flow.energy_carrier/optimized/cpu/fp32/train"
folder = tempfile.TemporaryDirectory()  # for both files, of 4 MB each: gone with the program
dumped, computed = f"{folder.name}/gru.safetensors", f"{folder.name}/theirs.safetensors"
subprocess.run([program, "dump", cell, "--size", "layers=1", "--size", "flows=100",
                "--out", dumped], check=True)
tensors, metadata = load_file(dumped), safe_open(dumped, "pt").metadata()
gru = torch.nn.GRUCell(65, 512)
for ours, theirs in zip(("weight_input_0", "weight_hidden_0", "bias_input_0", "bias_hidden_0"), gru.parameters()):
    theirs.data = tensors["input." + ours]
inputs = torch.cat([tensors["input.features"], tensors["input.energy"].reshape(-1, 1)], dim=1)
hidden = gru(inputs, tensors["input.hidden"][0]).detach()
tensors |= {"output.output": hidden, "output.next_hidden": hidden[None].clone()}
save_file(tensors, computed, metadata)
sys.exit(subprocess.run([program, "check", cell, "--from", computed]).returncode)
