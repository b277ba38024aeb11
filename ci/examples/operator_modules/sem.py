"""Modules a user would write for SEM."""

import torch
from torch import nn

from operator_modules.pair import Pair, trained_state


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
