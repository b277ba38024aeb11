"""A text encoder of torch's layers."""

import torch
from operator_modules.pair import Pair
from torch import nn


def encoder_pairs(sizes, options, device):
    batch, cells, layers, heads, ff = (sizes[name] for name in ("batch", "cells", "layers", "heads", "ff"))
    vocabulary, longest, model = sizes["vocabulary"], sizes["max_length"], heads * sizes["head_width"]
    length = (3 + torch.arange(batch, device=device) * 37 % (longest - 2)).int()
    token = torch.randint(3, vocabulary, (batch, longest), device=device)
    padding = torch.arange(longest, device=device)[None] >= length[:, None]
    token = token.masked_fill(padding, 0)
    embedding, position = nn.Embedding(vocabulary, model).to(device), nn.Embedding(4 * longest, model).to(device)
    stack = [nn.TransformerEncoderLayer(model, heads, ff, 0.0, "gelu", batch_first=True).to(device)
             for _ in range(layers)]
    projection, last = nn.Linear(model, model).to(device), nn.LayerNorm(model).to(device)
    surface = nn.Linear(model, cells).to(device)

    def module():
        x = embedding(token) + position.weight[:longest]
        for layer in stack:
            x = layer(x, src_key_padding_mask=padding)
        mean = x.masked_fill(padding[..., None], 0).sum(1) / length[:, None]
        return (torch.tanh(surface(last(nn.functional.gelu(projection(mean))))),)

    def each(*names):
        found = []
        for layer in stack:
            of = dict(layer.named_parameters())
            found.append([of[name] for name in names])
        return [list(group) for group in zip(*found, strict=True)]

    of_layers = each("self_attn.in_proj_weight", "self_attn.in_proj_bias", "self_attn.out_proj.weight",
                     "self_attn.out_proj.bias", "norm1.weight", "norm1.bias", "linear1.weight", "linear1.bias",
                     "linear2.weight", "linear2.bias", "norm2.weight", "norm2.bias")
    ends = [projection.weight, projection.bias, last.weight, last.bias, surface.weight, surface.bias]
    tables = [embedding.weight, position.weight]
    key = torch.arange(batch, device=device)
    operator = torch.ops.twinbench.energy_flow_text_encoder.default
    trained = tables + [one for group in of_layers for one in group] + ends

    def called():
        return (operator(*tables, token.int(), length, key, *of_layers, *ends, heads=heads,
                         head_width=sizes["head_width"]),)

    yield Pair("nn.TransformerEncoderLayer", [], trained, module, called)
