"""Modules a user would write for the networks of Energy Flow."""

import torch
from torch import nn

from operator_modules.pair import Pair, trained_state


class Mapper(nn.Module):
    def __init__(self, embedding, height, width, **_):
        super().__init__()
        cells = height * width
        inner, middle = max(embedding // 2, 2 * cells), 2 * cells
        self.layers = nn.Sequential(
            *(nn.Linear(embedding, inner), nn.GELU(), nn.LayerNorm(inner)),
            *(nn.Linear(inner, middle), nn.GELU(), nn.LayerNorm(middle)),
            *(nn.Linear(middle, cells), nn.Tanh()),
        )
        self.scale, self.offset = nn.Parameter(torch.ones(1)), nn.Parameter(torch.zeros(1))
        self.cell_offset = nn.Parameter(0.02 * torch.randn(height, width))

    def forward(self, embedding):
        return (self.layers(embedding) * self.scale + self.offset + self.cell_offset.flatten(),)


def mapper_pairs(sizes, options, device):
    module = Mapper(**sizes).to(device)
    names = [f"layers.{layer}.{part}" for layer in (0, 2, 3, 5, 6) for part in ("weight", "bias")]
    state = trained_state(module, [*names, "scale", "offset", "cell_offset"])
    operator = torch.ops.twinbench.energy_flow_embedding_mapper.default
    data = [torch.randn(sizes["rows"], sizes["embedding"], device=device)]
    yield Pair("nn.Sequential", data, state, module, lambda embedding: (operator(embedding, *state),))


class Neuron(nn.Module):
    def __init__(self, hidden, outputs, **_):
        super().__init__()
        self.coordinates = nn.Linear(3, 3)
        self.layers = nn.Sequential(
            *(nn.Linear(4, hidden), nn.LayerNorm(hidden), nn.GELU()),
            *(nn.Linear(hidden, hidden), nn.LayerNorm(hidden), nn.GELU()),
            nn.Linear(hidden, outputs),
        )

    def forward(self, position, energy):
        return (self.layers(torch.cat([self.coordinates(position), energy], 1)),)


def neuron_pairs(sizes, options, device):
    module = Neuron(**sizes).to(device)
    names = [f"layers.{layer}.{part}" for layer in (0, 1, 3, 4, 6) for part in ("weight", "bias")]
    state = trained_state(module, ["coordinates.weight", "coordinates.bias", *names])
    operator = torch.ops.twinbench.energy_flow_simple_neuron.default
    flows = sizes["flows"]
    data = [torch.randn(flows, 3, device=device), torch.randn(flows, 1, device=device)]
    yield Pair("nn.Sequential", data, state, module, lambda *given: (operator(*given, *state),))


class CellStack(nn.Module):
    """GRUCells on the parameters of a GRU."""

    def __init__(self, gru):
        super().__init__()
        self.cells = nn.ModuleList(
            nn.GRUCell(gru.input_size if layer == 0 else gru.hidden_size, gru.hidden_size)
            for layer in range(gru.num_layers)
        )
        for layer, cell in enumerate(self.cells):
            for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
                setattr(cell, part, getattr(gru, f"{part}_l{layer}"))

    def forward(self, features, energy, hidden):
        x, following = torch.cat([features, energy[:, None]], 1), []
        for cell, state in zip(self.cells, hidden):
            x = cell(x, state)
            following.append(x)
        return x, torch.stack(following)


def carrier_pairs(sizes, options, device):
    flows, features, hidden, layers = (sizes[name] for name in ("flows", "features", "hidden", "layers"))
    gru = nn.GRU(features + 1, hidden, layers).to(device)
    parts = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    state = [[getattr(gru, f"{part}_l{layer}") for layer in range(layers)] for part in parts]
    operator = torch.ops.twinbench.energy_flow_energy_carrier.default

    def recurrent(features, energy, hidden):
        output, following = gru(torch.cat([features, energy[:, None]], 1)[None], hidden)
        return output[0], following

    shapes = ((flows, features), (flows,), (layers, flows, hidden))
    data = [0.5 * torch.randn(*shape, device=device) for shape in shapes]
    trained = [tensor for group in state for tensor in group]
    for name, module in (("nn.GRU", recurrent), ("nn.GRUCell", CellStack(gru))):
        yield Pair(name, data, trained, module, lambda *given: operator(*given, *state)[:2])


class Heads(nn.Module):
    """Energy, displacement and spawn heads. The gate decides a count and is not trained."""

    def __init__(self, hidden, energy_width, head_width, options):
        super().__init__()
        self.energy = nn.Sequential(nn.Linear(hidden, energy_width), nn.GELU(), nn.Linear(energy_width, 1))
        self.displacement = nn.Sequential(nn.Linear(hidden, head_width), nn.GELU(), nn.Linear(head_width, 3))
        self.gate = nn.Sequential(nn.Linear(hidden, head_width), nn.GELU(), nn.Linear(head_width, 1))
        self.child = nn.Linear(hidden, 1)
        self.gate.requires_grad_(False)
        self.gated, self.noise = options.get("gate", 0) != 0, options.get("noise", 0)
        self.most = options.get("most_spawned", 3)
        self.movement, self.threshold = options.get("movement_threshold", 0.15), options.get("gate_threshold", 0.6)

    def forward(self, carried, position, sample_key, local_id):
        energy, displacement = torch.tanh(self.energy(carried)).squeeze(1), self.displacement(carried)
        delta = displacement.clamp(-0.5, 0.5)
        raw = position + delta
        if self.noise:
            raw = raw + self.noise * torch.randn_like(raw)
        if not self.gated:
            length = (raw - position).detach().norm(dim=1)
            self.count = (length / self.movement).floor().sub(1).clamp(0, self.most).int()
            return energy, displacement, delta, raw, energy
        opened = torch.sigmoid(self.gate(carried)).squeeze(1)
        share = (opened - self.threshold) / (1 - self.threshold) * self.most
        self.count = torch.where(opened > self.threshold, share.floor() + 1, 0).clamp(0, self.most).int()
        child = torch.tanh(self.child(carried)).squeeze(1) / (self.count + 1)
        return energy, displacement, delta, raw, child


def heads_pairs(sizes, options, device):
    flows = sizes["flows"]
    module = Heads(sizes["hidden"], sizes["energy_width"], sizes["head_width"], options).to(device)
    layers = [f"{head}.{layer}" for head in ("energy", "displacement", "gate") for layer in (0, 2)]
    state = trained_state(module, [f"{layer}.{part}" for layer in (*layers, "child") for part in ("weight", "bias")])
    operator = torch.ops.twinbench.energy_flow_carrier_heads.default
    given = {"gate": bool(options.get("gate", 0)), "most_spawned": int(options.get("most_spawned", 3))}
    given |= {name: options[name] for name in ("noise", "movement_threshold", "gate_threshold") if name in options}

    def ours(*data):
        energy, displacement, delta, raw, _, _, child = operator(*data, *state, **given)
        return energy, displacement, delta, raw, child

    data = [0.5 * torch.randn(flows, sizes["hidden"], device=device), torch.rand(flows, 3, device=device)]
    keys = torch.arange(flows, device=device)
    trained = [tensor for tensor in state if tensor.requires_grad]
    if not given["gate"]:
        trained = trained[:-2]  # no child head
    yield Pair("nn.Sequential", [*data, keys // 4, keys], trained, module, ours)


class Collector(nn.Module):
    def __init__(self, embedding, height, width, **_):
        super().__init__()
        cells = height * width
        inner, middle = max(embedding // 2, 2 * cells), 2 * cells
        self.layers = nn.Sequential(
            *(nn.Linear(cells, middle), nn.GELU(), nn.LayerNorm(middle)),
            *(nn.Linear(middle, inner), nn.GELU(), nn.LayerNorm(inner)),
            nn.Linear(inner, embedding),
        )
        self.cell_weight = nn.Parameter(1 + 0.1 * torch.randn(height, width))

    def forward(self, energy, cell):
        surface = energy.new_zeros(len(energy), self.cell_weight.numel()).scatter(1, cell, energy)
        return (self.layers(surface * self.cell_weight.flatten()),)


def collector_pairs(sizes, options, device):
    batch, cells = sizes["batch"], sizes["width"] * sizes["height"]
    module = Collector(**sizes).to(device).requires_grad_(False)  # used in evaluation and export: it has no gradient
    names = [f"layers.{layer}.{part}" for layer in (0, 2, 3, 5, 6) for part in ("weight", "bias")]
    state = trained_state(module, ["cell_weight", *names])
    operator = torch.ops.twinbench.energy_flow_output_collector.default
    cell = torch.stack([torch.randperm(cells, device=device)[: sizes["entries"]] for _ in range(batch)])
    data = [torch.randn(batch, sizes["entries"], device=device), cell]
    yield Pair("nn.Sequential", data, [], module, lambda *given: (operator(*given, *state),))
