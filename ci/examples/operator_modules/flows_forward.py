"""The whole forward pass of a batch's flows in plain torch: all live flows at once, a loop over steps on the host."""
import torch
import torch.nn.functional as F

from operator_modules.pair import Pair

CREATED, DONE_Z0, DONE_ZD, BY_AGE, AT_STOP, NON_FINITE = 0, 1, 2, 3, 4, 7
DROPPED_INITIAL, DROPPED_SPAWN, REQUESTS, CELLS, STEPS, REASON = 8, 9, 10, 11, 12, 13


def mapped(a):
    x = a["embedding"]
    for layer in "12":
        x = F.gelu(F.linear(x, a[f"mapper_weight_{layer}"], a[f"mapper_bias_{layer}"]))
        x = F.layer_norm(x, x.shape[1:], a[f"mapper_gain_{layer}"], a[f"mapper_shift_{layer}"])
    bounded = torch.tanh(F.linear(x, a["mapper_weight_3"], a["mapper_bias_3"]))
    return bounded * a["mapper_scale"] + a["mapper_offset"] + a["mapper_cell_offset"].reshape(1, -1)


def features(a, position, energy):
    x = torch.cat([F.linear(position, a["coordinate_weight"], a["coordinate_bias"]), energy[:, None]], 1)
    for layer in "12":
        x = F.linear(x, a[f"neuron_weight_{layer}"], a[f"neuron_bias_{layer}"])
        x = F.gelu(F.layer_norm(x, x.shape[1:], a[f"neuron_gain_{layer}"], a[f"neuron_shift_{layer}"]))
    return F.linear(x, a["neuron_weight_3"], a["neuron_bias_3"])


def guarded(x):
    return torch.nan_to_num(x, nan=0.0, posinf=10.0, neginf=-10.0).clamp(-10, 10)


def head(a, name, x):
    for part in ("hidden", "out"):
        x = F.linear(x, a[f"{name}_{part}_weight"], a[f"{name}_{part}_bias"])
        x = F.gelu(x) if part == "hidden" else x
    return x


def carried(a, position, energy, hidden):
    """Energy, displacement and next state of every flow; hidden: [layers, flows, width]."""
    x = guarded(torch.cat([features(a, position, energy), energy[:, None]], 1))
    states = []
    for layer, state in enumerate(guarded(hidden)):
        x = torch.gru_cell(x, state, a["weight_input"][layer], a["weight_hidden"][layer], a["bias_input"][layer],
                           a["bias_hidden"][layer])
        states.append(x)
    x = guarded(x)
    return torch.nan_to_num(torch.tanh(head(a, "energy", x))[:, 0]), head(a, "displacement", x), torch.stack(states)


def decided(step, stats, counts, best, stall, max_steps, o):
    """The stop's rule: reasons of all samples, 0 where one goes on."""
    completed, reason = stats[:, [DONE_Z0, DONE_ZD, BY_AGE]].sum(1), stats[:, REASON]
    going = reason == 0
    reason = torch.where(going & (counts == 0), 1, reason)
    if step == max_steps:
        return torch.where(going & (counts > 0), 2, reason)
    asked = going & (counts > 0)
    if not o["convergence_enabled"] or step < o["convergence_min_steps"]:
        return reason
    enough = asked & (completed.double() / stats[:, CREATED].double() >= o["convergence_threshold"])
    more = asked & ~enough & (completed > best)
    stalled = asked & ~enough & ~more & (best > 0)
    best[:] = torch.where(more, completed, best)
    stall[:] = torch.where(more, 0, stall + stalled)
    return torch.where(enough, 3, torch.where(stalled & (stall >= o["convergence_patience"]), 4, reason))


def collected(ended, samples, height, width):
    sample, position, energy, distance, age = (torch.cat(parts) for parts in zip(*ended, strict=True))
    across, along = ((position[:, axis] + 1) * 0.5 * (extent - 1) for axis, extent in enumerate((width, height)))
    across, along = across.round().clamp(0, width - 1).long(), along.round().clamp(0, height - 1).long()
    key = (sample * height + along) * width + across
    weight = energy.abs() / (1 + distance) * (1 + 0.1 * age)
    cells = samples * height * width
    largest = weight.new_full((cells,), -torch.inf).scatter_reduce(0, key, weight, "amax")
    share = torch.exp(weight - largest[key])
    total = weight.new_zeros(cells).index_add(0, key, share)
    surface = weight.new_zeros(cells).index_add(0, key, share * energy) / torch.where(total > 0, total, 1)
    reached = torch.bincount(key, minlength=cells).reshape(samples, -1) > 0
    return surface.reshape(samples, -1), reached.sum(1)


DEFAULTS = dict(projection_age=4, depth=8, most_spawned=1, movement_threshold=0.15, scale=1.0, spawn="movement",
                convergence_enabled=True, convergence_threshold=0.95, convergence_min_steps=5, convergence_patience=10)


def flowed(a, quota, max_steps, **options):
    """Surface, stats and active of the tensors `a`, by name; without noise, reflecting, projecting at the stop."""
    o = DEFAULTS | options
    surface, (height, width) = mapped(a), a["mapper_cell_offset"].shape
    samples, placed, device = len(surface), min(quota, height * width), surface.device
    stats = torch.zeros(samples, 14, dtype=torch.long, device=device)
    stats[:, CREATED], stats[:, DROPPED_INITIAL] = placed, height * width - placed
    active = torch.zeros(samples, max_steps, dtype=torch.long, device=device)
    best, stall = torch.zeros(2, samples, dtype=torch.long, device=device)
    sample = torch.arange(samples, device=device).repeat_interleave(placed)
    cell = torch.arange(placed, device=device).repeat(samples)
    level = torch.full_like(cell, o["depth"] // 2)
    position = torch.stack([2.0 * index / last - 1 for index, last in
                            ((cell % width, width - 1), (cell // width, height - 1), (level, o["depth"]))], 1)
    energy, age = surface[:, :placed].reshape(-1), torch.zeros_like(cell)
    hidden = surface.new_zeros(len(a["weight_hidden"]), len(cell), a["energy_hidden_weight"].shape[1])
    count = lambda which: torch.bincount(which, minlength=samples)  # noqa: E731
    ended = [(sample[:0], position[:0], energy[:0], energy[:0], age[:0])]
    for step in range(max_steps + 1):
        reason = decided(step, stats, count(sample), best, stall, max_steps, o)
        stops = (reason != 0) & (stats[:, REASON] == 0)
        stats[:, REASON], stats[:, STEPS] = reason, torch.where(stops, step, stats[:, STEPS])
        rests, goes = stops[sample], ~stops[sample]
        stats[:, AT_STOP] += count(sample[rests])
        ended.append((sample[rests], position[rests], energy[rests], 1 - position[rests, 2].abs(), age[rests]))
        sample, position, energy, age, hidden = sample[goes], position[goes], energy[goes], age[goes], hidden[:, goes]
        if not len(sample):
            break
        active[:, step] = count(sample)
        before = position
        energy, displacement, hidden = carried(a, position, energy, hidden)
        moved = (o["scale"] * displacement).clamp(-0.5, 0.5)
        raw = position + moved
        finite, z, age = raw.isfinite().all(1), raw[:, 2], age + 1
        folded = torch.where(raw > 1, 2 - raw, torch.where(raw < -1, -2 - raw, raw)).clamp(-1, 1)
        low, high = finite & (z <= -1), finite & (z >= 1)
        aged = finite & ~low & ~high & (o["projection_age"] > 0) & (age >= o["projection_age"])
        for column, which in ((DONE_Z0, low), (DONE_ZD, high), (BY_AGE, aged), (NON_FINITE, ~finite)):
            stats[:, column] += count(sample[which])
        done, stays = low | high | aged, finite & ~(low | high | aged)
        distance = torch.where(aged, 1 - z.abs(), 0)
        ended.append((sample[done], folded[done], energy[done], distance[done], age[done]))
        length = moved.norm(dim=1)
        wanted = ((length / o["movement_threshold"]).floor() - 1).clamp(0, o["most_spawned"]).long()
        wanted = wanted * stays * (length > o["movement_threshold"]) * (o["spawn"] == "movement")
        parent = torch.arange(len(sample), device=device).repeat_interleave(wanted)
        asked = count(sample[parent])
        rank = torch.arange(len(parent), device=device) - (asked.cumsum(0) - asked)[sample[parent]]
        born = parent[stats[sample[parent], CREATED] + rank < quota]
        stats[:, REQUESTS] += asked
        stats[:, DROPPED_SPAWN] += asked - count(sample[born])
        stats[:, CREATED] += count(sample[born])
        order = torch.argsort(torch.cat([sample[stays], sample[born]]), stable=True)
        position = torch.cat([torch.cat([folded[stays, :2], raw[stays, 2:]], 1), before[born]])[order]
        energy = torch.cat([energy[stays], energy[born]])[order]
        age = torch.cat([age[stays], torch.zeros_like(born)])[order]
        hidden = torch.cat([hidden[:, stays], hidden[:, born]], 1)[:, order]
        sample = torch.cat([sample[stays], sample[born]])[order]
    surface, stats[:, CELLS] = collected(ended, samples, height, width)
    return surface, stats.int(), active.int()


def forward_data(sizes, device="cpu"):
    """Tensors by the names of the operator's arguments, in its order."""
    s, cells = sizes, sizes["height"] * sizes["width"]
    inner, hidden, layers = max(s["embedding"] // 2, 2 * cells), s["hidden"], range(s["layers"])
    a = dict(embedding=torch.randn(s["samples"], s["embedding"], device=device),
             sample_key=torch.arange(s["samples"], device=device) * 7)

    def add(prefix, suffix, out, into, norm=False):
        a[f"{prefix}_weight{suffix}"] = torch.randn(out, into, device=device) / into**0.5
        a[f"{prefix}_bias{suffix}"] = 0.1 * torch.randn(out, device=device)
        if norm:
            a[f"{prefix}_gain{suffix}"] = 1 + 0.1 * torch.randn(out, device=device)
            a[f"{prefix}_shift{suffix}"] = 0.1 * torch.randn(out, device=device)

    add("mapper", "_1", inner, s["embedding"], True)
    add("mapper", "_2", 2 * cells, inner, True)
    add("mapper", "_3", cells, 2 * cells)
    a |= dict(mapper_scale=torch.ones(1, device=device), mapper_offset=torch.zeros(1, device=device),
              mapper_cell_offset=0.02 * torch.randn(s["height"], s["width"], device=device))
    add("coordinate", "", 3, 3)
    add("neuron", "_1", s["neuron_width"], 4, True)
    add("neuron", "_2", s["neuron_width"], s["neuron_width"], True)
    add("neuron", "_3", s["features"], s["neuron_width"])
    wide = 3 * hidden
    into = [s["features"] + 1] + [hidden] * (s["layers"] - 1)
    a |= dict(weight_input=[torch.randn(wide, into[layer], device=device) / into[layer]**0.5 for layer in layers],
              weight_hidden=[torch.randn(wide, hidden, device=device) / hidden**0.5 for _ in layers],
              bias_input=[0.1 * torch.randn(wide, device=device) for _ in layers],
              bias_hidden=[0.1 * torch.randn(wide, device=device) for _ in layers])
    heads = (("energy", "energy_width", 1), ("displacement", "head_width", 3), ("gate", "head_width", 1))
    for name, width, out in heads:
        add(f"{name}_hidden", "", s[width], hidden)
        add(f"{name}_out", "", out, s[width])
    add("child", "", 1, hidden)
    return a


def forward_pairs(sizes, options, device):
    """Without the noise, which torch's own generators would draw otherwise."""
    kinds = dict(projection_age=int, depth=int, movement_threshold=float, scale=float)
    given = {name: kind(options[name]) for name, kind in kinds.items() if name in options}
    a = forward_data(sizes, device)
    names = [name for name, value in a.items() if torch.is_tensor(value)]
    layers = {name: value for name, value in a.items() if name not in names}
    operator, quota, steps = torch.ops.twinbench.energy_flow_flow_forward.default, sizes["quota"], sizes["max_steps"]
    named = lambda data: layers | dict(zip(names, data, strict=True))  # noqa: E731
    yield Pair("masks", [a[name] for name in names], [],
               lambda *data: flowed(named(data), quota, steps, **given),
               lambda *data: operator(**named(data), quota=quota, max_steps=steps, **given)[:3])
