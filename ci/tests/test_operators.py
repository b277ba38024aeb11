"""libtwinbench_ops.so from Python: values and gradients against plain torch, opcheck, gradcheck, training, compile,
errors."""
import os
import runpy
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = os.environ["TWINBENCH_OPERATORS"]
torch.ops.load_library(LIBRARY)
torch.set_num_threads(1)  # tiny tensors, and other tests run beside this one
OPERATORS = torch.ops.twinbench


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(20)


def drawn(*shape, scale=0.5):
    return torch.randn(*shape, dtype=torch.float64) * scale


# ---- the operators: named arguments in fp64, and the same in plain torch ---------------------------------------------


def mapper_arguments(rows=3, embedding=5, inner=7, middle=6, height=2, width=2):
    cells = height * width
    return dict(embedding=drawn(rows, embedding), weight_1=drawn(inner, embedding), bias_1=drawn(inner),
                gain_1=1 + drawn(inner), shift_1=drawn(inner), weight_2=drawn(middle, inner), bias_2=drawn(middle),
                gain_2=1 + drawn(middle), shift_2=drawn(middle), weight_3=drawn(cells, middle), bias_3=drawn(cells),
                scale=1 + drawn(1), offset=drawn(1), cell_offset=drawn(height, width))


def plain_mapper(a):
    x = a["embedding"]
    for layer in "12":
        x = F.gelu(F.linear(x, a[f"weight_{layer}"], a[f"bias_{layer}"]))
        x = F.layer_norm(x, x.shape[1:], a[f"gain_{layer}"], a[f"shift_{layer}"])
    return (torch.tanh(F.linear(x, a["weight_3"], a["bias_3"])) * a["scale"] + a["offset"]
            + a["cell_offset"].reshape(1, -1), )


def neuron_arguments(flows=5, hidden=6, outputs=4):
    return dict(position=drawn(flows, 3), energy=drawn(flows, 1), coordinate_weight=drawn(3, 3),
                coordinate_bias=drawn(3), weight_1=drawn(hidden, 4), bias_1=drawn(hidden), gain_1=1 + drawn(hidden),
                shift_1=drawn(hidden), weight_2=drawn(hidden, hidden), bias_2=drawn(hidden), gain_2=1 + drawn(hidden),
                shift_2=drawn(hidden), weight_3=drawn(outputs, hidden), bias_3=drawn(outputs))


def plain_neuron(a):
    x = torch.cat([F.linear(a["position"], a["coordinate_weight"], a["coordinate_bias"]), a["energy"]], 1)
    for layer in "12":
        x = F.linear(x, a[f"weight_{layer}"], a[f"bias_{layer}"])
        x = F.gelu(F.layer_norm(x, x.shape[1:], a[f"gain_{layer}"], a[f"shift_{layer}"]))
    return (F.linear(x, a["weight_3"], a["bias_3"]),)


def carrier_arguments(flows=3, features=2, hidden=4, layers=2):
    wide = 3 * hidden
    return dict(features=drawn(flows, features), energy=drawn(flows), hidden=drawn(layers, flows, hidden),
                weight_input=[drawn(wide, features + 1 if layer == 0 else hidden) for layer in range(layers)],
                weight_hidden=[drawn(wide, hidden) for _ in range(layers)],
                bias_input=[drawn(wide) for _ in range(layers)], bias_hidden=[drawn(wide) for _ in range(layers)])


def plain_carrier(a):
    """torch.nn.GRU, one time step; its parameters replaced, so that gradients reach ours."""
    layers, _, hidden = a["hidden"].shape
    x = torch.cat([a["features"], a["energy"][:, None]], 1)
    gru = torch.nn.GRU(x.shape[1], hidden, layers, dtype=x.dtype)
    stems = dict(weight_ih="weight_input", weight_hh="weight_hidden", bias_ih="bias_input", bias_hh="bias_hidden")
    weights = {f"{theirs}_l{layer}": a[ours][layer] for theirs, ours in stems.items() for layer in range(layers)}
    output, following = torch.func.functional_call(gru, weights, (x[None], a["hidden"]))
    return output[0], following, torch.zeros(x.shape[0], dtype=torch.int32)  # no NaN met


def heads_arguments(flows=4, hidden=5, energy_width=3, head_width=4):
    arguments = dict(carried=drawn(flows, hidden), position=drawn(flows, 3), sample_key=torch.arange(flows) // 2,
                     local_id=torch.arange(flows))
    for head, width, out in (("energy", energy_width, 1), ("displacement", head_width, 3), ("gate", head_width, 1)):
        arguments |= {f"{head}_hidden_weight": drawn(width, hidden), f"{head}_hidden_bias": drawn(width),
                      f"{head}_out_weight": drawn(out, width), f"{head}_out_bias": drawn(out)}
    return arguments | dict(child_weight=drawn(1, hidden), child_bias=drawn(1))


def plain_heads(a, scale=1.0, gate=False):
    head = lambda name: F.linear(F.gelu(F.linear(a["carried"], a[f"{name}_hidden_weight"], a[f"{name}_hidden_bias"])),
                                 a[f"{name}_out_weight"], a[f"{name}_out_bias"])
    energy, displacement = torch.tanh(head("energy")).squeeze(1), head("displacement")
    delta = (scale * displacement).clamp(-0.5, 0.5)
    raw = a["position"] + delta
    if not gate:
        length = delta.norm(dim=1).detach()
        count = torch.where(length > 0.15, (length / 0.15).floor() - 1, 0).clamp(0, 3).int()
        return energy, displacement, delta, raw, length, count, energy
    opened = torch.sigmoid(head("gate")).squeeze(1).detach()
    count = torch.where(opened > 0.6, ((opened - 0.6) / 0.4 * 3).floor() + 1, 0).clamp(0, 3).int()
    child = torch.tanh(F.linear(a["carried"], a["child_weight"], a["child_bias"])).squeeze(1) / (count + 1)
    return energy, displacement, delta, raw, opened, count, child


# name: arguments, plain version, scalar settings, arguments without a gradient
CASES = {
    "embedding_mapper": (mapper_arguments, plain_mapper, {}, ()),
    "simple_neuron": (neuron_arguments, plain_neuron, {}, ()),
    "energy_carrier": (carrier_arguments, plain_carrier, {}, ()),
    "carrier_heads": (heads_arguments, plain_heads, dict(scale=2.0), ("gate", "child")),
    "carrier_heads gate": (heads_arguments, plain_heads, dict(scale=2.0, gate=True), ("gate",)),
}


def operator_of(case):
    return getattr(OPERATORS, "energy_flow_" + case.split()[0]).default


def made(case, dtype=torch.float64, **sizes):
    """The case's arguments as leaves; those the spawn decision alone reads take no gradient."""
    make, _, _, constant = CASES[case]

    def leaf(name, tensor):
        if not tensor.is_floating_point():
            return tensor
        return tensor.to(dtype).requires_grad_(not name.startswith(constant or "-"))

    return {
        name: [leaf(name, t) for t in value] if isinstance(value, list) else leaf(name, value)
        for name, value in make(**sizes).items()}


def flat(arguments):
    return [tensor for value in arguments.values() for tensor in (value if isinstance(value, list) else [value])]


def as_tuple(results):
    return results if isinstance(results, tuple) else (results,)


def backward_of(case):
    return getattr(OPERATORS, f"energy_flow_{case.split()[0]}_backward").default


def differentiable(case, results):
    """Those whose gradients the backward operator takes."""
    taken = [argument.name for argument in backward_of(case)._schema.arguments]
    names = [result.name for result in operator_of(case)._schema.returns]
    return tuple(result for result, name in zip(as_tuple(results), names) if "grad_" + name in taken)


# ---- tests -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype, tolerance", [(torch.float64, 1e-11), (torch.float32, 2e-5)])
@pytest.mark.parametrize("case", CASES)
def test_values_and_gradients_equal_plain_torch(case, dtype, tolerance):
    arguments, settings = made(case, dtype), CASES[case][2]
    ours = as_tuple(operator_of(case)(*arguments.values(), **settings))
    theirs = CASES[case][1](arguments, **settings)
    leaves = [t for t in flat(arguments) if t.requires_grad]
    weights = [torch.randn_like(t) if t.requires_grad else None for t in theirs]
    gradients = []
    for results in (ours, theirs):
        loss = sum((r * w).sum() for r, w in zip(results, weights) if w is not None)
        gradients.append(torch.autograd.grad(loss, leaves, allow_unused=True, materialize_grads=True))
    for mine, other in zip((*ours, *gradients[0]), (*theirs, *gradients[1])):
        torch.testing.assert_close(mine, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("case", CASES)
def test_gradcheck(case):
    arguments = made(case)
    names, settings = list(arguments), CASES[case][2]
    counts = {name: len(value) for name, value in arguments.items() if isinstance(value, list)}

    def call(*tensors):
        rest = iter(tensors)
        values = [[next(rest) for _ in range(counts[name])] if name in counts else next(rest) for name in names]
        return differentiable(case, operator_of(case)(*values, **settings))

    assert torch.autograd.gradcheck(call, flat(arguments), fast_mode=True)


@pytest.mark.parametrize("case", list(CASES)[:4])
def test_opcheck(case):
    arguments = made(case, torch.float32)
    outcome = torch.library.opcheck(operator_of(case), tuple(arguments.values()), CASES[case][2])
    assert set(outcome.values()) == {"SUCCESS"}, outcome


def test_whole_step_compiles_without_a_break():
    """Neuron, carrier and heads in one graph, traced through their Meta implementations, forward and back."""
    neuron, carrier, heads = (made(name, torch.float32)
                              for name in ("simple_neuron", "energy_carrier", "carrier_heads"))
    position, energy = neuron.pop("position"), neuron.pop("energy")
    flows = position.shape[0]
    carrier = made("energy_carrier", torch.float32, flows=flows, features=4, hidden=5)
    heads = made("carrier_heads", torch.float32, flows=flows)
    carrier.pop("features"), heads.pop("carried")

    def loss(position, energy):
        features = OPERATORS.energy_flow_simple_neuron(position, energy, *neuron.values())
        given = {**carrier, "energy": energy.squeeze(1)}
        carried, _, _ = OPERATORS.energy_flow_energy_carrier(features, *given.values())
        new_energy, _, _, raw, _, _, _ = OPERATORS.energy_flow_carrier_heads(carried, *{
            **heads, "position": position}.values(), noise=0.05)
        return new_energy.square().sum() + raw.square().sum()

    eager = torch.autograd.grad(loss(position, energy), (position, energy))
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(torch.autograd.grad(compiled(position, energy), (position, energy)), eager)


def test_the_noise_is_an_argument():
    """Zero weights leave position + noise: the generator's documented normals, whatever was drawn before."""
    arguments = {
        name: torch.zeros_like(t, dtype=torch.float32 if t.is_floating_point() else None)
        for name, t in heads_arguments(flows=2).items()}
    arguments["local_id"] = torch.tensor([0, 1])
    raw = OPERATORS.energy_flow_carrier_heads(*arguments.values(), noise=1.0, seed=1234)[3]
    expected = torch.tensor([[0.0783465, 0.1982568, -0.0405787], [1.9910079, -0.0578598, 0.6379464]])
    torch.testing.assert_close(raw, expected, rtol=0, atol=2e-6)


def test_bf16_products_round_the_operands_only():
    """One bf16 rounding of each operand, products in fp32: a carrier of one layer against the same by hand."""
    a = made("energy_carrier", torch.float32, layers=1, flows=9, hidden=16)
    rounded = lambda t: t.detach().bfloat16().float()
    ours, _, _ = OPERATORS.energy_flow_energy_carrier(*a.values(), bf16_products=True)
    x = torch.cat([a["features"], a["energy"][:, None]], 1).detach()
    i = F.linear(rounded(x), rounded(a["weight_input"][0]), a["bias_input"][0]).chunk(3, 1)
    h = F.linear(rounded(a["hidden"][0]), rounded(a["weight_hidden"][0]), a["bias_hidden"][0]).chunk(3, 1)
    reset, update = torch.sigmoid(i[0] + h[0]), torch.sigmoid(i[1] + h[1])
    candidate = torch.tanh(i[2] + reset * h[2])
    torch.testing.assert_close(ours, candidate + update * (a["hidden"][0] - candidate), rtol=2e-5, atol=2e-6)
    assert not torch.equal(ours, OPERATORS.energy_flow_energy_carrier(*a.values())[0])


def test_autocast_widens_what_comes_before_and_leaves_the_operator_alone():
    """In a region of autocast a linear layer gives bf16: the operator takes it as fp32, whatever it multiplies inside
    stays fp32, and gradients flow back through both."""
    a = made("simple_neuron", torch.float32, flows=9)
    before = torch.nn.Linear(3, 3)
    with torch.autocast("cpu", torch.bfloat16):
        position = before(a["position"])
        assert position.dtype == torch.bfloat16
        ours = OPERATORS.energy_flow_simple_neuron(*(a | dict(position=position)).values())
        unchanged = OPERATORS.energy_flow_simple_neuron(*a.values())
    assert ours.dtype == torch.float32
    assert torch.equal(unchanged, OPERATORS.energy_flow_simple_neuron(*a.values()))
    plain, = plain_neuron(a | dict(position=position.float()))
    torch.testing.assert_close(ours, plain, rtol=1e-5, atol=1e-6)
    weights = torch.randn_like(ours)
    mine, other = (torch.autograd.grad(result, [before.weight, a["weight_1"]], weights, retain_graph=True)
                   for result in (ours, plain))
    for one, two in zip(mine, other, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-5)
    lists = made("energy_carrier", torch.float32, flows=5)
    with torch.autocast("cpu", torch.bfloat16):
        low = {name: [t.bfloat16() for t in value] if isinstance(value, list) else value.bfloat16()
               for name, value in lists.items()}
        assert OPERATORS.energy_flow_energy_carrier(*low.values())[0].dtype == torch.float32
    with pytest.raises(TypeError, match="position is 'BFloat16': give Float"):  # nobody has asked for a conversion
        OPERATORS.energy_flow_simple_neuron(*(a | dict(position=position)).values())


class Recurrent(torch.nn.Module):
    """A GRU cell and a readout; `step` is how the cell is computed."""

    def __init__(self, step):
        super().__init__()
        self.cell, self.readout, self.step = torch.nn.GRUCell(3, 16), torch.nn.Linear(16, 1), step

    def forward(self, x):
        state = x.new_zeros(x.shape[0], 16)
        for t in range(x.shape[1]):
            state = self.step(self.cell, x[:, t], state)
        return self.readout(state).squeeze(1)


def our_cell(cell, x, state):
    return OPERATORS.energy_flow_energy_carrier(x[:, :2], x[:, 2], state[None], [cell.weight_ih], [cell.weight_hh],
                                                [cell.bias_ih], [cell.bias_hh])[0]


def losses_of(step, steps=30):
    torch.manual_seed(7)
    model = Recurrent(step)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    curve = []
    for _ in range(steps):
        x = torch.rand(32, 6, 3)
        loss = F.mse_loss(model(x), x.mean(dim=(1, 2)) * 4 - 2)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        curve.append(loss.item())
    return torch.tensor(curve)


def test_training_follows_the_plain_model():
    ours, theirs = losses_of(our_cell), losses_of(lambda cell, x, state: cell(x, state))
    torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)
    assert ours[-5:].mean() < 0.5 * ours[:5].mean(), ours


def test_the_example_learns(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["train_with_operators.py", LIBRARY])
    runpy.run_path(str(ROOT / "ci/examples/train_with_operators.py"), run_name="__main__")
    losses = [float(line.split()[-1]) for line in capsys.readouterr().out.splitlines()]
    assert len(losses) > 2 and losses[-1] < 0.2 * losses[0], losses


@pytest.mark.parametrize("case, name, change, error", [
    ("energy_carrier", "energy", lambda t: t[:-1], ValueError),
    ("energy_carrier", "features", lambda t: t[0], ValueError),
    ("energy_carrier", "weight_hidden", lambda ts: [ts[0], ts[1][:, :-1]], ValueError),
    ("energy_carrier", "features", lambda t: t.half(), TypeError),
    ("energy_carrier", "hidden", lambda t: t.double(), TypeError),
    ("simple_neuron", "weight_3", lambda t: t.flatten(), ValueError),
    ("simple_neuron", "gain_2", lambda t: t[:-1], ValueError),
    ("simple_neuron", "bias_3", lambda t: t.int(), TypeError),
    ("embedding_mapper", "weight_1", lambda t: t[0], ValueError),
    ("embedding_mapper", "embedding", lambda t: t[:, :-1], ValueError),
    ("embedding_mapper", "cell_offset", lambda t: t[0], ValueError),
    ("carrier_heads", "local_id", lambda t: t.float(), TypeError),
    ("carrier_heads", "displacement_out_weight", lambda t: t[:2], ValueError),
])
def test_bad_tensors_are_named(case, name, change, error):
    arguments = {
        key: [t.detach() for t in value] if isinstance(value, list) else value.detach()
        for key, value in made(case, torch.float32).items()}
    arguments[name] = change(arguments[name])
    with pytest.raises(error, match=name):
        operator_of(case)(*arguments.values())


def test_bad_settings_are_named():
    with pytest.raises(ValueError, match="gate_threshold"):
        OPERATORS.energy_flow_carrier_heads(*made("carrier_heads").values(), gate_threshold=2.0)
    with pytest.raises(ValueError, match="bf16_products"):
        OPERATORS.energy_flow_simple_neuron(*made("simple_neuron").values(), bf16_products=True)


def test_gradients_of_gradients_are_refused():
    arguments = made("simple_neuron")
    (gradient, ) = torch.autograd.grad(
        operator_of("simple_neuron")(*arguments.values()).sum(), arguments["weight_1"], create_graph=True)
    with pytest.raises(RuntimeError, match="energy_flow_simple_neuron_backward.*not implemented"):
        gradient.sum().backward()


@pytest.mark.parametrize("case", list(CASES)[:4])
def test_results_share_no_memory(case):
    """Not even gradients that the kernels write as parts of one matrix."""
    arguments, settings = made(case, torch.float32), CASES[case][2]
    given = as_tuple(operator_of(case)(*arguments.values(), **settings))
    gradients = [torch.ones_like(r) for r in differentiable(case, given)]
    results = flat(dict(enumerate(as_tuple(backward_of(case)(*gradients, *arguments.values(), **settings)))))
    storages = [t.untyped_storage().data_ptr() for t in [*given, *gradients, *flat(arguments), *results]]
    assert len(set(storages)) == len(storages) and all(t.untyped_storage().nbytes() == t.nbytes for t in results)


@pytest.mark.parametrize("case", list(CASES)[:4])
def test_other_devices_get_pytorchs_own_answer(case):
    """Without CUDA kernels in the build, CUDA tensors meet the dispatcher's usual error; here seen on another
    backend."""
    arguments = {
        key: value if isinstance(value, list) else value.detach() for key, value in made(case, torch.float32).items()}
    first = next(iter(arguments))
    arguments[first] = arguments[first].to_mkldnn()
    with pytest.raises(NotImplementedError, match=f"energy_flow_{case}.*'MkldnnCPU' backend"):
        operator_of(case)(*arguments.values())
    built_with_cuda = os.environ["TWINBENCH_OPERATORS_WITH_CUDA"] == "1"
    assert torch._C._dispatch_has_kernel_for_dispatch_key(operator_of(case)._name, "CUDA") == built_with_cuda
