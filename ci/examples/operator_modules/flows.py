"""Functions a user would write for the steps of Energy Flow's flows: masks, sums and index operations."""

import torch
from torch import nn

from operator_modules.pair import Pair


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


def compacted(list_, extent, status, stopped, sample, local_id, age, position, energy, hidden, parent, child_local_id,
              child_position, child_energy, gate, candidate):
    """The flows that are still active, children after the survivors of their sample: order, sample, local_id, age,
    energy, position, hidden state after a step, counts."""
    listed, span = extent.tolist()
    most = min(len(list_) + len(parent), len(status))
    place, born = list_[:listed].long(), int((parent >= 0).sum())
    kept = ((status[place] == 1) & ~stopped[sample[place]]).nonzero().flatten()
    slot, of = place[kept], place[parent[:born].long()]
    turn = torch.argsort(torch.cat([sample[slot], sample[of]]), stable=True)
    rows = lambda flows, children: torch.cat([flows, children], -1)[..., turn]
    padded = lambda row, value=0: nn.functional.pad(row, (0, most - row.shape[-1]), value=value)
    state = hidden[:, torch.cat([slot, of])[turn]]
    fresh = torch.tanh(candidate[:, None] * state)
    state = fresh + torch.sigmoid(gate[:, None] * state) * (state - fresh)
    active = len(turn)
    order = rows(kept, listed + torch.arange(born, device=kept.device)).int()
    counts = [active, len(kept), -active % 128, int(2 * active < span + born)]
    return (padded(order, -1), padded(rows(sample[slot], sample[of])),
            padded(rows(local_id[slot], child_local_id[:born])), padded(rows(age[slot], torch.zeros_like(of).int())),
            padded(rows(energy[slot], child_energy[:born])), padded(rows(position[:, slot], child_position[:, :born])),
            nn.functional.pad(state, (0, 0, 0, most - active)), torch.tensor(counts, dtype=torch.int32))


def compaction_data(sizes, device="cpu"):
    samples, slots, flows, children = (sizes[name] for name in ("samples", "slots", "flows", "children"))
    listed, span = min(flows, slots - children), slots - children
    place, slot = torch.arange(listed, device=device), torch.randperm(span, device=device)[:listed]
    whole = lambda values: torch.as_tensor(values, device=device).int()
    stored = lambda values, otherwise: torch.full((slots,), otherwise, device=device).index_copy(0, slot, values)
    status = stored(torch.where(place % 10 == 3, 2, 1), 0)
    alive = (place % 10 != 3).nonzero().flatten()
    parent = torch.full((children,), -1, device=device)
    if len(alive) > 0:
        parent = alive[torch.arange(children, device=device) * len(alive) // max(children, 1)]
    normal = lambda *shape: torch.randn(*shape, device=device)
    uniform = lambda *shape: torch.rand(*shape, device=device)
    return [whole(nn.functional.pad(slot, (0, flows - listed), value=-1)), whole([listed, span]), status.byte(),
            torch.arange(samples, device=device) % 5 == 4, whole(stored(place * samples // max(listed, 1), 0)),
            whole(stored(place, 0)), whole(torch.arange(slots, device=device) % 51), uniform(3, slots), normal(slots),
            0.5 * normal(sizes["layers"], slots, sizes["hidden"]), whole(parent),
            whole(listed + torch.arange(children, device=device)), uniform(3, children), normal(children),
            normal(sizes["layers"], sizes["hidden"]), normal(sizes["layers"], sizes["hidden"])]


def compaction_pairs(sizes, options, device):
    data = compaction_data(sizes, device)
    operator = torch.ops.twinbench.energy_flow_flow_compaction.default
    yield Pair("torch.nonzero", data, [], lambda *given: compacted(*given)[4:7], lambda *given: operator(*given)[4:7])


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


def stopped(completed, created, active, convergence=True, threshold=0.95, min_steps=5, patience=3):
    """When each sample ends, by masks, one step after the other: steps, reason, best, stall and flow-steps."""
    steps, reason, best, stall = (torch.zeros_like(active[0]) for _ in range(4))
    flow_steps = torch.zeros_like(active[0], dtype=torch.int64)
    for step, (done, all_flows, left) in enumerate(zip(completed, created, active)):
        going = reason == 0
        steps = torch.where(going, step, steps)
        reason = torch.where(going & (left == 0), 1, reason)
        asked = going & (left > 0)
        if step == len(completed) - 1:
            reason = torch.where(asked, 2, reason)
        elif convergence and step >= min_steps:
            enough = asked & (done.double() / all_flows.double() >= threshold)
            more = asked & ~enough & (done > best)
            stalled = asked & ~enough & ~more & (best > 0)
            best, stall = torch.where(more, done, best), torch.where(more, 0, stall + stalled)
            reason = torch.where(enough, 3, torch.where(stalled & (stall >= patience), 4, reason))
        flow_steps = flow_steps + torch.where(reason == 0, left, 0)
    return steps, reason, best, stall, flow_steps


def stop_data(decisions, samples, device="cpu"):
    """Flows that complete at a rate of their sample's own, some never; every fifth sample's die."""
    sample = torch.arange(samples, device=device)
    step = torch.arange(decisions, device=device)[:, None]
    created = (20 + 20 * (sample % 4)).expand(decisions, samples)
    completed = torch.minimum(created * step * (sample % 7) // 40, created * (sample % 3 + 8) // 10)
    died = torch.where(sample % 5 == 4, torch.minimum(created - completed, created * step // 12), 0)
    return [counts.to(torch.int32).contiguous() for counts in (completed, created, created - completed - died)]


def stop_pairs(sizes, options, device):
    kinds = dict(convergence=bool, threshold=float, min_steps=int, patience=int)
    given = {name: kind(options[name]) for name, kind in kinds.items() if name in options}
    operator = torch.ops.twinbench.energy_flow_adaptive_stop.default
    yield Pair("masks", stop_data(sizes["decisions"], sizes["samples"], device), [],
               lambda *data: stopped(*data, **given), lambda *data: operator(*data, **given)[:5])
