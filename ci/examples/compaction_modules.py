"""The compaction of active flows in torch, and data for it: the peer of energy_flow.flow_compaction's operator."""

import torch
from torch import nn


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
