"""Attention as torch has it."""

import torch
from operator_modules.pair import Pair


def attention_pairs(sizes, options, device):
    batch, heads, width = sizes["batch"], sizes["heads"], sizes["width"]
    data = [torch.randn(batch, heads, sizes[rows], width, device=device).requires_grad_()
            for rows in ("queries", "keys", "keys")]
    padding = torch.zeros(batch, sizes["keys"], dtype=torch.bool, device=device)
    for length in range(1, batch):  # shorter and shorter texts
        padding[length, sizes["keys"] - length * sizes["keys"] // (2 * batch):] = options.get("padding", 0) > 0
    taken = ~padding[:, None, None, :]
    operator = torch.ops.twinbench.energy_flow_fused_attention.default

    def module(query, key, value):
        return (torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=taken),)

    yield Pair("scaled_dot_product_attention", data, [], module, lambda *given: (operator(*given, padding),))
