"""Modules a user would write for Trainer2."""

import torch

from operator_modules.pair import Pair


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
