"""A recorded call computes its forward pass once: what its backward half reads is kept by the graph. Every check also
meets a planted operator, in Python over the same two halves, that handles what is kept wrongly, and must fire."""

import pytest
import torch
from test_operators import CASES, as_tuple, backward_of, differentiable, flat, made, operator_of
from torch.utils.checkpoint import checkpoint

IN_HALVES = ["embedding_mapper", "energy_carrier", "carrier_heads", "carrier_heads gate"]


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(20)


def half(case, name):
    return getattr(torch.ops.twinbench, f"energy_flow_{case.split()[0]}_{name}").default


def packed(case, tensors):
    """The tensors in the operator's arguments, lists as lists."""
    rest, counts = iter(tensors), {n: len(v) for n, v in made(case).items() if isinstance(v, list)}
    return [[next(rest) for _ in range(counts[n])] if n in counts else next(rest) for n in made(case)]


class Planted(torch.autograd.Function):
    """The two halves with a fault: "" none, "last" takes what the last call kept, "spent" leaves nothing for a second
    pass, "unwatched" keeps the arguments where no version is checked, "stale" takes other values than those kept."""

    last = None

    @staticmethod
    def forward(ctx, case, fault, *tensors):
        with torch._C._AutoDispatchBelowAutograd():
            *results, kept = half(case, "keeping")(*packed(case, tensors), **CASES[case][2])
        ctx.case, ctx.fault, ctx.count, Planted.last = case, fault, len(tensors), kept
        ctx.unwatched = [t.detach() for t in tensors]
        ctx.save_for_backward(*([] if fault == "unwatched" else tensors), *kept)
        names = [result.name for result in operator_of(case)._schema.returns]
        taken = {argument.name for argument in backward_of(case)._schema.arguments}
        ctx.trained = ["grad_" + name in taken for name in names]
        ctx.mark_non_differentiable(*[r for r, trained in zip(results, ctx.trained) if not trained])
        return tuple(results)

    @staticmethod
    def backward(ctx, *gradients):
        saved = list(ctx.saved_tensors)
        given = ctx.unwatched if ctx.fault == "unwatched" else saved[: ctx.count]
        kept = saved[len(saved) if ctx.fault == "unwatched" else ctx.count :] or Planted.last
        if ctx.fault == "last":
            kept = Planted.last
        if ctx.fault == "stale":
            kept = [t + 1 for t in kept]
        gradients = [g for g, trained in zip(gradients, ctx.trained) if trained]
        results = half(ctx.case, "backward_kept")(*gradients, kept, *packed(ctx.case, given), **CASES[ctx.case][2])
        if ctx.fault == "spent":
            for tensor in kept:
                tensor.data.zero_()
        by_name = dict(zip([r.name for r in backward_of(ctx.case)._schema.returns], as_tuple(results)))
        none = [None, None]
        for name, value in made(ctx.case).items():
            count = len(value) if isinstance(value, list) else 1
            gradient = by_name.get("grad_" + name, [None] * count if isinstance(value, list) else None)
            none += gradient if isinstance(value, list) else [gradient]
        return tuple(none)


class Recorded:
    """A case called with a tape: our operator, or a planted one."""

    def __init__(self, case, fault=None):
        self.case, self.fault = case, fault

    def arguments(self):
        return made(self.case, torch.float32)

    def __call__(self, arguments):
        if self.fault is None:
            results = operator_of(self.case)(*arguments.values(), **CASES[self.case][2])
        else:
            results = Planted.apply(self.case, self.fault, *flat(arguments))
        return differentiable(self.case, results)


def leaves_of(arguments):
    return [tensor for tensor in flat(arguments) if tensor.requires_grad]


def gradients_of(results, arguments, **how):
    given = [2 * result.detach() for result in results]
    return torch.autograd.grad(results, leaves_of(arguments), given, allow_unused=True, **how)


def expected(case, arguments, settings):
    """By the backward operator that computes the forward pass again, from tensors that nobody has seen."""
    copy = lambda value: [t.detach().clone() for t in value] if isinstance(value, list) else value.detach().clone()
    fresh = {name: copy(value) for name, value in arguments.items()}
    results = differentiable(case, operator_of(case)(*fresh.values(), **settings))
    found = as_tuple(backward_of(case)(*[2 * r for r in results], *fresh.values(), **settings))
    by_name = dict(zip([result.name for result in backward_of(case)._schema.returns], found))
    listed = [(tensor, by_name.get("grad_" + name, [None] * len(value) if isinstance(value, list) else None))
              for name, value in arguments.items() for tensor in [value]]
    pairs = [pair for given, gradient in listed
             for pair in (zip(given, gradient) if isinstance(given, list) else [(given, gradient)])]
    return [gradient for tensor, gradient in pairs if tensor.requires_grad]


def agree(case, arguments, gradients, **settings):
    for one, other in zip(gradients, expected(case, arguments, {**CASES[case][2], **settings}), strict=True):
        assert torch.equal(one, other), (one - other).abs().max()


# ---- checks ----------------------------------------------------------------------------------------------------------


def forward_then_backward(call):
    arguments = call.arguments()
    for _ in range(2):
        agree(call.case, arguments, gradients_of(call(arguments), arguments))


def two_live_graphs(call):
    """One set of weights, data of their own; the older graph last."""
    first = call.arguments()
    data = ("embedding", "features", "carried", "position", "energy", "hidden")
    moved = lambda value: (value.detach() + 0.25).requires_grad_(value.requires_grad)
    second = {name: moved(value) if name in data else value for name, value in first.items()}
    one, other = call(first), call(second)
    agree(call.case, second, gradients_of(other, second))
    agree(call.case, first, gradients_of(one, first))


def twice_through_one_graph(call):
    arguments = call.arguments()
    results = call(arguments)
    for last in (False, False, True):
        agree(call.case, arguments, gradients_of(results, arguments, retain_graph=not last))


def changed_between(call):
    """A write that torch's own modules refuse is refused; the graph made after it is right."""
    arguments = call.arguments()
    for tensor in leaves_of(arguments):
        results = call(arguments)
        with torch.no_grad():
            tensor.mul_(1.5)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            gradients_of(results, arguments)
    agree(call.case, arguments, gradients_of(call(arguments), arguments))


CHECKS = {
    forward_then_backward: "stale",
    two_live_graphs: "last",
    twice_through_one_graph: "spent",
    changed_between: "unwatched",
}


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("case", list(CASES))
def test_gradients_are_those_of_a_whole_pass(case, check):
    check(Recorded(case))


@pytest.mark.parametrize("check", CHECKS)
def test_what_is_kept_wrongly_is_found(check):
    check(Recorded("energy_carrier", ""))
    with pytest.raises((AssertionError, RuntimeError, pytest.fail.Exception)):
        check(Recorded("energy_carrier", CHECKS[check]))


def called(case, arguments):
    """Our operators in one call with a tape and its way back."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        gradients_of(Recorded(case)(arguments), arguments)
    names = {event.name for event in profile.events() if event.name.startswith("twinbench::")}
    return {name.removeprefix(f"twinbench::energy_flow_{case.split()[0]}") for name in names}


@pytest.mark.parametrize("case", IN_HALVES)
def test_the_forward_pass_is_computed_once(case):
    assert called(case, made(case, torch.float32)) == {"", "_keeping", "_backward_kept"}


def test_where_computing_again_costs_less_nothing_is_kept():
    arguments = made("simple_neuron", torch.float32)
    assert half("simple_neuron", "keeping")(*arguments.values())[-1] == []
    assert called("simple_neuron", arguments) == {"", "_keeping", "_backward"}


@pytest.mark.parametrize("case", IN_HALVES)
def test_bf16_products(case):
    arguments = made(case, torch.float32)
    results = operator_of(case)(*arguments.values(), **CASES[case][2], bf16_products=True)
    agree(case, arguments, gradients_of(differentiable(case, results), arguments), bf16_products=True)


@pytest.mark.parametrize("case", IN_HALVES)
def test_checkpointed(case):
    arguments = made(case, torch.float32)
    results = checkpoint(lambda given: Recorded(case)(given), arguments, use_reentrant=False)
    agree(case, arguments, gradients_of(results, arguments))


def test_what_others_give_as_kept_is_refused():
    arguments = made("energy_carrier", torch.float32)
    *results, kept = half("energy_carrier", "keeping")(*arguments.values())
    given = [torch.ones_like(r) for r in results[:2]]
    for wrong in ([], kept[:-1], [t[..., :-1] for t in kept], [t.double() for t in kept]):
        with pytest.raises(ValueError, match="kept"):
            half("energy_carrier", "backward_kept")(*given, wrong, *arguments.values())
    with pytest.raises(ValueError, match="kept"):
        case = made("simple_neuron", torch.float32)
        half("simple_neuron", "backward_kept")(torch.ones(5, 4), [], *case.values())
