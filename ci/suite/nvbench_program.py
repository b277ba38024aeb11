"""Times one operator of libtwinbench_ops.so by nvbench: run by second_timer.py, where torch, a card and cuda.bench are.

usage: nvbench_program.py OPERATORS.so INPUTS.safetensors OPERATOR NVBENCH_OUT.json
"""

from __future__ import annotations

import sys
from typing import Any


def main(operators: str, inputs: str, operator: str, out: str) -> None:
    """Runs where torch, a card and cuda.bench are."""
    import cuda.bench as nvbench
    import torch
    from safetensors.torch import load_file

    torch.ops.load_library(operators)
    call = getattr(torch.ops.twinbench, operator)
    tensors = {name.split(".", 1)[-1]: value.cuda() for name, value in load_file(inputs).items()
               if name.startswith("input")}
    known = {argument.name for argument in call.default._schema.arguments}
    arguments: dict[str, Any] = {name: value for name, value in tensors.items() if name in known}

    def measure(state: Any) -> None:
        def launch(launch: Any) -> None:
            with torch.cuda.stream(torch.cuda.ExternalStream(launch.get_stream().addressof())):
                call(**arguments)

        state.exec(launch, sync=True)

    nvbench.register(measure)
    nvbench.run_all_benchmarks(["second_timer", "--json", out])


if __name__ == "__main__":
    main(*sys.argv[1:])
