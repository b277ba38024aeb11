"""Trains a small recurrent model whose GRU is the optimized energy carrier."""
import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import waiting_threads  # noqa: E402

waiting_threads.settle()  # before torch loads
import torch  # noqa: E402

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("library", help="build/<preset>/lib/libtwinbench_ops.so")
parser.add_argument("device", nargs="?", choices=("cpu", "cuda"), default="cpu")
arguments = parser.parse_args()
torch.ops.load_library(arguments.library)
device = arguments.device


class EnergyCarrier(torch.nn.Module):
    """One step of a multi-layer GRU over all flows. torch.nn.GRU only holds (and initialises) the weights."""

    def __init__(self, features, hidden, layers):
        super().__init__()
        self.weights, self.layers = torch.nn.GRU(features + 1, hidden, layers), layers

    def forward(self, features, energy, hidden):
        stems = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        weights = [[getattr(self.weights, f"{stem}_l{layer}") for layer in range(self.layers)] for stem in stems]
        output, next_hidden, _ = torch.ops.twinbench.energy_flow_energy_carrier(features, energy, hidden, *weights)
        return output, next_hidden


torch.manual_seed(0)
carrier, readout = EnergyCarrier(features=2, hidden=32, layers=2).to(device), torch.nn.Linear(32, 1).to(device)
optimizer = torch.optim.AdamW([*carrier.parameters(), *readout.parameters()], lr=1e-2)

# Every flow's energy swings at a frequency of its own; predict it one step ahead.
times = torch.arange(12, device=device)
for step in range(61):
    frequency, phase = 0.2 + 0.6 * torch.rand(64, 1, device=device), 6.3 * torch.rand(64, 1, device=device)
    energy = torch.sin(frequency * times + phase)  # [flows, times]
    features, hidden, loss = torch.cat([frequency, phase / 6.3], 1), torch.zeros(2, 64, 32, device=device), 0
    for t in range(len(times) - 1):
        output, hidden = carrier(features, energy[:, t], hidden)
        loss = loss + torch.nn.functional.mse_loss(readout(output).squeeze(1), energy[:, t + 1]) / (len(times) - 1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 15 == 0:
        print(f"step {step:3d}  loss {loss.item():.5f}")
