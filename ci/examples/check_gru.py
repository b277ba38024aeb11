"""Checks the GRU twin against torch.nn.GRUCell: dump a cell, compute its outputs with another implementation, check."""
import subprocess, sys, torch
from safetensors.torch import load_file, safe_open, save_file

program, cell = sys.argv[1], "energy_flow.energy_carrier/optimized/cpu/fp32/train"
subprocess.run([program, "dump", cell, "--size", "layers=1", "--size", "flows=100",
                "--out", "gru.safetensors"], check=True)
tensors, metadata = load_file("gru.safetensors"), safe_open("gru.safetensors", "pt").metadata()
gru = torch.nn.GRUCell(65, 512)
for ours, theirs in zip(("weight_input_0", "weight_hidden_0", "bias_input_0", "bias_hidden_0"), gru.parameters()):
    theirs.data = tensors["input." + ours]
inputs = torch.cat([tensors["input.features"], tensors["input.energy"].reshape(-1, 1)], dim=1)
hidden = gru(inputs, tensors["input.hidden"][0]).detach()
tensors |= {"output.output": hidden, "output.next_hidden": hidden[None].clone()}
save_file(tensors, "theirs.safetensors", metadata)
sys.exit(subprocess.run([program, "check", cell, "--from", "theirs.safetensors"]).returncode)
