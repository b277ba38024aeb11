"""Writes the torch.save files that torch_file_test.cpp reads. Run by hand with torch 2.11 when a format question
arises."""
import collections
import pathlib

import torch

HERE = pathlib.Path(__file__).parent
ROWS, WIDTH = 3, 4
PAIRS = [("first input", "first target"), ("", "\u00e9t\u00e9"), ("x" * 300, "y")]


def values(sign):
    return sign * (torch.arange(ROWS * WIDTH, dtype=torch.float32).reshape(ROWS, WIDTH) + 0.5)


def dataset(inputs, targets, pairs=PAIRS, **more):
    return {"text_pairs": pairs, "input_embeddings": inputs, "target_embeddings": targets, **more}


def save(name, data, **options):
    torch.save(data, HERE / f"{name}.pt", **options)


class Custom:
    """Not on any allow-list."""


save("plain", dataset(values(1), values(-1), metadata=[{"row": i, "score": 0.25} for i in range(ROWS)],
                      generation_info={"model": "teacher", "pairs": 2**40, "loss": -3, "ok": True, "none": None,
                                       "sizes": (1, 2, 3, 4)}))
# Views: a transpose, a slice with an offset, and two tensors that share one storage.
table = torch.stack([values(1), values(-1)], dim=2)
save("strided", dataset(table[:, :, 0], table[:, :, 1]))
save("transposed", dataset(values(1).t().contiguous().t(), torch.cat([torch.zeros(2, WIDTH), values(-1)])[2:]))
save("bf16", dataset(values(1).bfloat16(), values(-1).bfloat16()))
save("half_bf16", dataset(values(1).bfloat16(), values(-1)))
save("half_double", dataset(values(1).half(), values(-1).double()))
save("protocol4", dataset(values(1), values(-1)), pickle_protocol=4)
save("ordered", collections.OrderedDict(dataset(values(1), values(-1))))
save("empty", dataset(torch.zeros(0, WIDTH), torch.zeros(0, WIDTH), []))
save("requires_grad", dataset(values(1).requires_grad_(), values(-1)))
save("legacy", dataset(values(1), values(-1)), _use_new_zipfile_serialization=False)
save("not_a_number", dataset(values(1) / torch.tensor([[1.0], [0.0], [1.0]]), values(-1)))
save("custom_class", dataset(values(1), values(-1), generation_info=Custom()))
save("integers", dataset(values(1).long(), values(-1)))
save("expanded", dataset(torch.ones(1, WIDTH).expand(ROWS, WIDTH), values(-1)))
save("short", dataset(values(1)[:2].clone(), values(-1)))
save("narrow", dataset(values(1)[:, :2].clone(), values(-1)))
save("no_targets", {"text_pairs": PAIRS, "input_embeddings": values(1)})
save("texts_only", PAIRS)
