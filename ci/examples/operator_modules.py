"""Every operator beside the torch modules a user would write, on the same parameters: what operator_table.py times.

A pair is made from the sizes and options of a case: `data` (the tensors of one call), `parameters` (trained ones),
`module(*data)` and `operator(*data)`, which both return the trained results in the same order."""

from dataclasses import dataclass
from typing import Callable

import torch
from compaction_modules import compacted, compaction_data
from torch import nn


@dataclass
class Pair:
    name: str  # of the modules
    data: list[torch.Tensor]
    parameters: list[torch.Tensor]
    module: Callable
    operator: Callable


def trained_state(module, names):
    """Parameters in the order of the operator's arguments."""
    by_name = dict(module.named_parameters())
    return [by_name[name] for name in names]


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


def retrieved(query, curvature, token_coordinates, token_states, mask, bank_coordinates, bank_states, filled, metric,
              theta, plane_axes, beta=5.0):
    """Soft-min over geometric costs of tokens and filled bank slots: distances by torch.cdist, one softmax, one bmm."""
    axes = query.shape[1]
    frame = torch.eye(axes, device=query.device)
    for (a, b), angle in zip(plane_axes.tolist(), theta):
        turn = torch.eye(axes, device=query.device)
        turn[a, a] = turn[b, b] = torch.cos(angle)
        turn[a, b], turn[b, a] = -torch.sin(angle), torch.sin(angle)
        frame = turn @ frame
    frame = frame.T * metric.sqrt()
    coordinates = torch.cat([token_coordinates, bank_coordinates.expand(len(query), -1, -1)], 1) @ frame
    states = torch.cat([token_states, bank_states.expand(len(query), -1, -1)], 1)
    slots = torch.arange(len(bank_states), device=query.device) < filled
    valid = torch.cat([mask == 1, slots.expand(len(query), -1)], 1)
    distance = torch.cdist((query @ frame)[:, None], coordinates, compute_mode="donot_use_mm_for_euclid_dist")[:, 0]
    cost = curvature[:, None] * torch.sqrt(distance**2 + 1e-8)
    weights = torch.softmax(torch.where(valid, -beta * cost, -torch.inf), 1)
    return torch.bmm(weights[:, None], states).squeeze(1), weights


def retrieval_pairs(sizes, options, device):
    batch, tokens, capacity, width, axes = (sizes[name] for name in ("batch", "tokens", "capacity", "width", "axes"))
    planes, layer = sizes["planes"], axes // 2
    slots = -(-planes // layer) * layer  # whole layers, of which the planes are the first
    data = [torch.randn(batch, axes), 0.2 + torch.rand(batch), torch.randn(batch, tokens, axes),
            torch.randn(batch, tokens, width), torch.ones(batch, tokens), torch.randn(capacity, axes),
            torch.randn(capacity, width), torch.tensor([capacity]), 0.5 + torch.rand(axes), torch.randn(planes),
            torch.tensor([[2 * plane % axes, (2 * plane + 1) % axes] for plane in range(slots)])]
    data = [tensor.to(device) for tensor in data]
    inspected = torch.arange(3, device=device)
    operator = torch.ops.twinbench.trainer2_fused_retrieval.default

    def theirs(*given):
        mix, weights = retrieved(*given)
        return mix, weights[:, :3]

    yield Pair("torch.cdist", data, [], theirs, lambda *given: operator(*given, inspected))


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


def placed_flows(quota, depth, surface, key):
    """What energy_flow.flow_placement gives: position, energy, sample, local_id, uid, dropped."""
    batch, height, width = surface.shape
    count, device = min(height * width, quota), surface.device
    cell = torch.arange(count, device=device)
    level = torch.full((count,), depth // 2, device=device)
    place = torch.stack([2.0 * at / last - 1 for at, last in
                         ((cell % width, width - 1), (cell // width, height - 1), (level, depth))], 1)
    uid = (key.to(torch.int64) << 32).repeat_interleave(count) | cell.repeat(batch)
    sample = torch.arange(batch, dtype=torch.int32, device=device).repeat_interleave(count)
    dropped = torch.tensor([batch * (height * width - count)], device=device)
    energy = surface.reshape(batch, -1)[:, :count].flatten()
    return place.to(surface.dtype).repeat(batch, 1), energy, sample, cell.to(torch.int32).repeat(batch), uid, dropped


def placement_pairs(sizes, options, device):
    surface = torch.randn(sizes["samples"], sizes["height"], sizes["width"], device=device)
    key = torch.arange(sizes["samples"], device=device)
    own = dict(quota=sizes["quota"], depth=int(options.get("depth", 20)))
    operator = torch.ops.twinbench.energy_flow_flow_placement.default
    yield Pair("torch.arange", [surface, key], [], lambda *given: placed_flows(own["quota"], own["depth"], *given)[:2],
               lambda *given: operator(*given, **own)[:2])


def admitted(position, child_energy, status, spawn_count, created):
    """What energy_flow.spawn_admission gives: born_position, born_energy, parent, new_created, dropped."""
    slots = status.shape[1]
    requests = torch.where(status == 1, spawn_count, 0)
    up_to = requests.cumsum(1, dtype=torch.int32)
    total = up_to[:, -1]
    born = torch.minimum(total, slots - created)
    ordinal = torch.arange(slots, dtype=torch.int32, device=status.device) - created[:, None]
    there = (ordinal >= 0) & (ordinal < born[:, None])
    parent = torch.searchsorted(up_to, ordinal, right=True, out_int32=True)
    row = torch.where(there, parent, 0).long()
    place = torch.where(there[:, :, None], position.gather(1, row[:, :, None].expand(-1, -1, 3)), 0)
    energy = torch.where(there, child_energy.gather(1, row), 0)
    return place, energy, torch.where(there, parent, -1), created + born, total - born


def admission_data(samples, slots, device="cpu", dtype=torch.float32):
    """Half of the slots hold flows, most of them active; each asks for at most three children."""
    whole = lambda low, high: torch.randint(low, high, (samples, slots), dtype=torch.int32, device=device)
    created = torch.full((samples,), slots // 2, dtype=torch.int32, device=device)
    status = torch.where(torch.arange(slots, device=device) < slots // 2, whole(0, 4).clamp_min(1), 0)
    floats = [torch.randn(samples, slots, *rest, device=device, dtype=dtype) for rest in ((3,), ())]
    return [*floats, status.to(torch.uint8), whole(0, 4), created]


def admission_pairs(sizes, options, device):
    operator = torch.ops.twinbench.energy_flow_spawn_admission.default
    yield Pair("torch.searchsorted", admission_data(sizes["samples"], sizes["slots"], device), [],
               lambda *given: admitted(*given)[:2], lambda *given: operator(*given)[:2])


def collected(width, height, forward, energy, position, distance, age, status, forward_id):
    """Energies averaged by cell: maxima by scatter_reduce, sums by index_add. Distance and age are constants."""
    batch, cells = len(energy), width * height
    x, y = (((position.detach()[:, axis] + 1) * 0.5 * (extent - 1)).round().long().clamp(0, extent - 1)
            for axis, extent in ((0, width), (1, height)))
    done = ((status == 2) | (status == 3)) & (forward_id == forward)
    key = torch.where(done, torch.arange(batch, device=energy.device)[:, None] * cells + y * width + x, batch * cells)
    key, energy = key.flatten(), torch.where(done, energy, 0).flatten()
    factor = torch.where(done, 1 / (1 + distance.detach()) * (1 + 0.1 * age), 0).flatten()
    weight = energy.abs() * factor
    empty = energy.new_zeros(batch * cells + 1)
    largest = empty.scatter_reduce(0, key, weight.detach(), "amax")
    share = torch.exp(weight - largest[key])
    shares, energies = empty.index_add(0, key, share), empty.index_add(0, key, share * energy)
    return (energies / shares.clamp_min(1e-30))[:-1].view(batch, cells)


def collection_pairs(sizes, options, device):
    batch, width, height, slots = (sizes[name] for name in ("batch", "width", "height", "slots"))
    forward = int(options.get("forward", 1))
    shape, placed = (batch, slots), lambda *extents: 2 * torch.rand(*extents, device=device) - 1
    whole = lambda low, high: torch.randint(low, high, shape, dtype=torch.int32, device=device)
    data = [0.5 * torch.randn(shape, device=device), placed(batch, 3, slots), torch.rand(shape, device=device),
            whole(0, 51), torch.randint(1, 5, shape, dtype=torch.uint8, device=device), whole(forward, forward + 1)]
    operator = torch.ops.twinbench.energy_flow_surface_collection.default
    own = dict(width=width, height=height, forward=forward)
    yield Pair("torch.index_add", data, [], lambda *given: (collected(width, height, forward, *given),),
               lambda *given: operator(*given, **own)[:1])


def compaction_pairs(sizes, options, device):
    data = compaction_data(sizes, device)
    operator = torch.ops.twinbench.energy_flow_flow_compaction.default
    yield Pair("torch.nonzero", data, [], lambda *given: compacted(*given)[4:7], lambda *given: operator(*given)[4:7])


def ring_graph(dim, edges, scales):
    """Nested rings whose half-widths double from scale to scale, as the documents' sparsities give them."""
    for half in range(1, dim + 1):
        rings = [
            sorted({tuple(sorted((i, (i + o) % dim))) for i in range(dim)
                    for o in range(1, (half << scale) + 1) if (i + o) % dim != i}) for scale in range(scales)
        ]
        if sum(map(len, rings)) == edges:
            starts = [sum(map(len, rings[:scale])) for scale in range(scales + 1)]
            return torch.tensor([edge for ring in rings for edge in ring]), torch.tensor(starts)
    raise ValueError(f"no rings of {dim} nodes have {edges} edges in {scales} scales")


class CayleyStep(nn.Module):
    """A soliton layer in complex numbers: rotation, then torch.linalg.solve for what the documents iterate for."""

    def __init__(self, dim, edges, scales, dt=0.1, **_):
        super().__init__()
        self.alpha, self.dt = nn.Parameter(torch.full((dim,), 0.1)), dt
        self.theta, self.mix = nn.Parameter(0.1 * torch.randn(edges)), nn.Parameter(torch.full((scales,), 1 / 3))
        nodes, starts = ring_graph(dim, edges, scales)
        self.register_buffer("nodes", nodes), self.register_buffer("starts", starts)
        self.register_buffer("scale", torch.repeat_interleave(starts.diff()))

    def forward(self, psi):
        dim = psi.shape[2]
        weights = nn.functional.softplus(self.theta) * torch.softmax(self.mix, 0)[self.scale]
        i, j = self.nodes.T
        off = torch.zeros(dim, dim, dtype=psi.dtype, device=psi.device).index_put((i, j), weights, accumulate=True)
        shift = self.dt / 2 * (torch.diag((off + off.T).sum(1)) - off - off.T)
        one = torch.eye(dim, dtype=psi.dtype, device=psi.device)
        unitary = torch.linalg.solve(torch.complex(one, shift), torch.complex(one, -shift))
        field = torch.complex(psi[0], psi[1])
        intensity = field.real**2 + field.imag**2
        phase = self.alpha * intensity / (intensity.mean(1, keepdim=True) + 1e-8)
        x = torch.polar(torch.ones_like(phase), phase) * field @ unitary.T
        return (torch.stack([x.real, x.imag]),)


def cayley_pairs(sizes, options, device):
    module = CayleyStep(**sizes, **{name: options[name] for name in ("dt",) if name in options}).to(device)
    state = trained_state(module, ["alpha", "theta", "mix"])
    operator = torch.ops.twinbench.sem_cayley.default
    given = {name: options[name] for name in ("dt", "tolerance") if name in options}
    data = [torch.randn(2, sizes["rows"], sizes["dim"], device=device)]
    yield Pair("torch.linalg", data, state, module,
               lambda psi: operator(psi, *state, module.nodes, module.starts, **given)[:1])


def scanned(input, a_raw, a_phase, input_projection, output_projection, dt_weight, dt_bias):
    """Complex selective scan: planes of real and imaginary parts, one step of the host's loop after the other."""
    u = torch.complex(input[0], input[1])
    step = torch.exp(torch.cat([input[0], input[1]], -1) @ dt_weight.T + dt_bias).clamp(1e-4, 2)
    length, turn = step[..., :1], step[..., 1:]
    decay = torch.polar(torch.exp(-length * nn.functional.softplus(a_raw)), turn * a_phase)
    added = length * (u @ torch.complex(input_projection[0], input_projection[1]).T)
    state, states = torch.zeros_like(decay[:, 0]), []
    for t in range(u.shape[1]):
        state = decay[:, t] * state + added[:, t]
        states.append(state)
    output = torch.stack(states, 1) @ torch.complex(output_projection[0], output_projection[1]).T
    return torch.stack([output.real, output.imag])


def scan_pairs(sizes, options, device):
    batch, steps, groups, width, states = (sizes[name] for name in ("batch", "steps", "groups", "width", "states"))
    data = [torch.randn(2, batch, steps, groups, width, device=device)]
    state = [0.5 + 0.5 * torch.rand(groups, states), 0.1 * torch.randn(groups, states),
             torch.randn(2, states, width) / (2 * width)**0.5, torch.randn(2, width, states) / (2 * states)**0.5,
             torch.randn(2, 2 * width) / (2 * width)**0.5, torch.zeros(2)]
    state = [tensor.to(device).requires_grad_() for tensor in state]
    operator = torch.ops.twinbench.sem_selective_scan.default
    yield Pair("a loop over time", data, state, lambda given: (scanned(given, *state),),
               lambda given: (operator(given, *state)[0],))


def flow_step(raw, position, energy, next_energy, age, sample, stopped, boundary="reflect", projection_age=3,
              on_stop="project"):
    """One step of every flow by masks: new position and energy, age, status, distance, and counts of each sample."""
    rests = stopped[sample]
    moves, place = ~rests, torch.where(rests[:, None], position, raw)
    z = place[:, 2]
    broken = ~raw.isfinite().all(1) & moves
    outside = (raw[:, :2].abs() > 1).any(1) & moves & ~broken & (boundary == "kill")
    gone = broken | outside | (rests & (on_stop == "drop"))
    low, high = (z <= -1) & moves & ~gone, (z >= 1) & moves & ~gone
    inside = ~(gone | low | high)
    aged = (age + 1 >= projection_age) & moves & inside & (projection_age > 0)
    projected = aged | (rests & ~gone)
    active = inside & ~projected
    folded = torch.where(raw > 1, 2 - raw, torch.where(raw < -1, -2 - raw, raw)).clamp(-1, 1)
    across = torch.where(rests[:, None], position, folded)[:, :2]
    plane = torch.where(low | (projected & (z <= 0)), -1.0, 1.0).to(raw.dtype)
    new_position = torch.cat([across, torch.where(active, z, plane)[:, None]], 1)
    column = 7 * broken + 6 * outside + 5 * (rests & gone) + 4 * (rests & ~gone) + 3 * aged + 2 * high + low.int()
    counts = torch.zeros(len(stopped), 8, dtype=torch.int32, device=raw.device)
    counts.index_put_((sample, column), torch.ones_like(age), accumulate=True)
    status = torch.where(gone, 4, torch.where(active, 1, torch.where(plane < 0, 2, 3))).byte()
    distance = torch.where(projected, 1 - z.abs(), 0)
    return (torch.where(gone[:, None], 0, new_position), torch.where(gone, 0, torch.where(rests, energy, next_energy)),
            torch.where(gone, 0, age + moves), status, distance, counts)


def flow_step_data(flows, samples, device="cpu", dtype=torch.float32):
    keys = torch.arange(flows, device=device, dtype=torch.int32)
    return [torch.randn(flows, 3, device=device, dtype=dtype), 2 * torch.rand(flows, 3, device=device, dtype=dtype) - 1,
            torch.randn(flows, device=device, dtype=dtype), torch.randn(flows, device=device, dtype=dtype), keys % 5,
            keys * samples // flows, torch.arange(samples, device=device) % 3 == 1]


def flow_step_pairs(sizes, options, device):
    given = {}
    if "projection_age" in options:
        given["projection_age"] = int(options["projection_age"])
    operator = torch.ops.twinbench.energy_flow_flow_movement.default
    # Only the results that the caller's loss can reach: the others carry no gradient.
    yield Pair("masks", flow_step_data(sizes["flows"], sizes["samples"], device), [],
               lambda *data: flow_step(*data, **given)[:2], lambda *data: operator(*data, **given)[:2])


PAIRS = {
    "energy_flow.flow_placement": placement_pairs,
    "energy_flow.flow_movement": flow_step_pairs,
    "energy_flow.spawn_admission": admission_pairs,
    "sem.cayley": cayley_pairs,
    "sem.selective_scan": scan_pairs,
    "trainer2.fused_retrieval": retrieval_pairs,
    "energy_flow.embedding_mapper": mapper_pairs,
    "energy_flow.simple_neuron": neuron_pairs,
    "energy_flow.energy_carrier": carrier_pairs,
    "energy_flow.carrier_heads": heads_pairs,
    "energy_flow.surface_collection": collection_pairs,
    "energy_flow.output_collector": collector_pairs,
    "energy_flow.flow_compaction": compaction_pairs,
}
# Sizes that users have beside the cases of `twinbench list`.
ALSO = {
    "energy_flow.energy_carrier": [
        {
            "name": "flows_64",
            "pass": "forward",
            "options": {},
            "sizes": {"flows": 64, "features": 64, "hidden": 512, "layers": 2},
        }
    ]
}
