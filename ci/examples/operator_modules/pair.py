"""What a pair of an operator and a user's modules is."""

from dataclasses import dataclass
from typing import Callable

import torch


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
