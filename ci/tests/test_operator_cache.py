"""Set-ups that operators keep between calls change no value, whatever happens to the weights in between. Every check
also meets a planted cache, in Python, whose key or hand-over forgets one thing, and must fire."""

import os
import threading
import time

import pytest
import torch
from test_operators import CASES, as_tuple, backward_of, flat, made, operator_of

DATA = ("embedding", "position", "energy", "features", "hidden", "carried", "sample_key", "local_id")
FIRST = {
    "embedding_mapper": "weight_1",
    "simple_neuron": "weight_1",
    "energy_carrier": "weight_hidden",
    "carrier_heads": "energy_hidden_weight",
}


def is_data(name):
    return name in DATA or name.startswith("grad_")


def mapped(change, arguments):
    each = lambda name, value: [change(name, t) for t in value] if isinstance(value, list) else change(name, value)
    return {name: each(name, value) for name, value in arguments.items()}


def copies(arguments):
    """The same values in tensors that nobody has seen."""
    return mapped(lambda name, t: t.detach().clone(), arguments)


class Operator:
    """A case's operator, or its backward operator, called by named arguments."""

    def __init__(self, case, backward=False):
        self.case, self.backward = case, backward
        self.function = (backward_of if backward else operator_of)(case)
        self.settings = dict(CASES[case][2])
        self.weight = FIRST[case.split()[0]]

    def arguments(self, dtype=torch.float32, **sizes):
        arguments = copies(made(self.case, dtype, **sizes))
        if not self.backward:
            return arguments
        results = as_tuple(operator_of(self.case)(*arguments.values(), **self.settings))
        names = [result.name for result in operator_of(self.case)._schema.returns]
        taken = [argument.name for argument in self.function._schema.arguments]
        gradients = {"grad_" + n: torch.randn_like(r) for n, r in zip(names, results) if "grad_" + n in taken}
        return gradients | arguments

    def __call__(self, arguments, **settings):
        results = self.function(*arguments.values(), **{**self.settings, **settings})
        return flat(dict(enumerate(as_tuple(results))))


class Forgetful(Operator):
    """The operator behind a cache that forgets: a part of the key, to take the data, to copy results, to lend a set-up
    to one caller at a time. Without anything forgotten it is right."""

    def __init__(self, case, *forgotten, backward=False):
        super().__init__(case, backward)
        self.forgotten, self.kept = forgotten, {}

    def key(self, arguments, settings):
        parts = {"settings": tuple(sorted(settings.items()))}
        parameters = flat({name: value for name, value in arguments.items() if not is_data(name)})
        data = flat({name: value for name, value in arguments.items() if is_data(name)})
        parts["sizes"] = tuple(tuple(t.shape) for t in data)
        parts["object"] = tuple(id(t) for t in parameters)
        parts["place"] = tuple(t.data_ptr() for t in parameters)
        parts["version"] = tuple(0 if t.is_inference() else t._version for t in parameters)
        parts["values"] = tuple(float(t.flatten()[0]) for t in parameters)
        return tuple(part for name, part in parts.items() if name not in self.forgotten)

    def __call__(self, arguments, **settings):
        if "inference" not in self.forgotten and any(t.is_inference() for t in flat(arguments)):
            return super().__call__(arguments, **settings)
        key = self.key(arguments, settings)
        if key not in self.kept:
            holds = None
            if "object" not in self.forgotten:  # alive, tensors and storages keep their addresses to themselves
                holds = arguments, [t.detach() for t in flat(arguments)]
            self.kept[key] = [copies(arguments), settings, holds, None]
        own, settings, _, last = entry = self.kept[key]
        if "lending" not in self.forgotten:
            own = dict(own)
        for name, value in arguments.items():
            if is_data(name) and "data" not in self.forgotten:
                if {"lending", "sizes"} & set(self.forgotten):
                    own[name].copy_(value)
                    time.sleep(0.002)
                else:
                    own[name] = value.detach().clone()
        results = super().__call__(own, **settings)
        if "results" in self.forgotten and last:
            return [old.copy_(new) for old, new in zip(last, results)]
        entry[3] = results
        return results


def agree(operator, arguments, **settings):
    """What the call gives equals, bit for bit, what tensors give that nobody has seen."""
    given = operator(arguments, **settings)
    expected = Operator(operator.case, operator.backward)(copies(arguments), **settings)
    for one, other in zip(given, expected, strict=True):
        assert torch.equal(one, other), (one - other).abs().max()


def weight_of(operator, arguments):
    value = arguments[operator.weight]
    return value[0] if isinstance(value, list) else value


def with_weight(operator, arguments, weight):
    value = arguments[operator.weight]
    return {**arguments, operator.weight: [weight, *value[1:]] if isinstance(value, list) else weight}


# ---- checks: each calls an operator twice and more, with a change in between -----------------------------------------


def other_data(operator):
    arguments = operator.arguments()
    agree(operator, arguments)
    again = copies({name: value for name, value in operator.arguments().items() if is_data(name)})
    agree(operator, {**arguments, **again})
    agree(operator, arguments)


def update_in_place(operator):
    arguments = operator.arguments()
    for _ in range(3):
        agree(operator, arguments)
        agree(operator, arguments)
        with torch.no_grad():
            weight_of(operator, arguments).flatten()[-1:].add_(0.5)  # one value, through a view


def replaced_weight(operator):
    arguments = operator.arguments()
    agree(operator, arguments)
    agree(operator, with_weight(operator, arguments, weight_of(operator, arguments) * 2))
    agree(operator, arguments)


def freed_and_reallocated(operator):
    """New weights in the place of freed ones, of the same version, with the same values where samples are taken."""
    arguments = operator.arguments()
    values, places = weight_of(operator, arguments), set()
    for attempt in range(20):
        weight = values.clone()
        weight.flatten()[weight.numel() // 2] += attempt  # between the samples
        places.add(weight.data_ptr())
        agree(operator, with_weight(operator, arguments, weight))
        del weight
    return places


def swapped_storage(operator):
    """`p.data = other`, as module.to() does: the same tensor of the same version elsewhere, or, when the memory has
    been given back in between, where it was, in another storage. Returns how often that was."""
    arguments, back = operator.arguments(), 0
    weight = weight_of(operator, arguments)
    for again in range(6):
        agree(operator, arguments)
        place = weight.data_ptr()
        values = weight.data.clone()
        values.flatten()[values.numel() // 2] += 1
        if again % 2:
            weight.data = values.clone()  # gives the place back
            held = [torch.empty_like(values) for _ in range(64)]
            values = next((free for free in held if free.data_ptr() == place), held[0]).copy_(values)
            back += values.data_ptr() == place
            del held
        weight.data = values
    agree(operator, arguments)
    return back


def written_past_autograd(operator):
    """All of `p.data`, as hand-written optimizers do."""
    arguments = operator.arguments()
    for _ in range(3):
        agree(operator, arguments)
        weight_of(operator, arguments).data.mul_(1.5)


def options_alternate(operator):
    arguments = operator.arguments()
    for seed in (3, 4, 3):
        agree(operator, arguments, noise=0.5, seed=seed)
    agree(operator, arguments)


def sizes_alternate(operator):
    few, many = operator.arguments(), operator.arguments()
    doubled = lambda name, t: torch.cat([t, t], t.dim() - 2 if name == "hidden" or name.endswith("_hidden") else 0)
    many = {name: doubled(name, value) if is_data(name) else few[name] for name, value in many.items()}
    for arguments in (few, many, few, many):
        agree(operator, arguments)


def results_stay(operator):
    arguments = operator.arguments()
    operator(arguments)
    before = operator(arguments)
    kept = [t.clone() for t in before]
    operator(mapped(lambda name, t: t * 2 if is_data(name) and t.is_floating_point() else t, arguments))
    for one, other in zip(before, kept):
        assert torch.equal(one, other)


def inference_tensors(operator):
    with torch.inference_mode():
        arguments = copies(operator.arguments())
        for _ in range(3):
            agree(operator, arguments)
            weight_of(operator, arguments).flatten()[-1:].add_(0.5)


def threads_at_once(operator):
    """Two threads, one set of weights, data of their own."""
    arguments = operator.arguments()
    moved = lambda i: lambda name, t: t + i if is_data(name) and t.is_floating_point() else t
    mine = [mapped(moved(i), arguments) for i in range(4)]
    expected = [Operator(operator.case, operator.backward)(copies(given)) for given in mine]
    operator(arguments)
    wrong = []

    def call(i):
        for _ in range(50):
            if not all(map(torch.equal, operator(mine[i]), expected[i])):
                wrong.append(i)
                break

    threads = [threading.Thread(target=call, args=(i,)) for i in range(len(mine))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# check: what a cache must have forgotten for it to fire
CHECKS = {
    other_data: ["data"],
    update_in_place: ["version"],
    replaced_weight: ["object", "place", "values"],
    freed_and_reallocated: ["object"],
    swapped_storage: ["place"],
    written_past_autograd: ["values"],
    sizes_alternate: ["sizes"],
    results_stay: ["results"],
    inference_tensors: ["inference"],
    threads_at_once: ["lending"],
}


SANITIZED = "libasan" in os.environ.get("LD_PRELOAD", "")  # holds freed memory back
needs_freed_memory = pytest.mark.skipif(SANITIZED, reason="the address sanitizer gives no freed memory out again")


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(20)


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("backward", [False, True], ids=["forward", "backward"])
@pytest.mark.parametrize("case", list(CASES)[:4])
def test_values_are_those_of_a_first_call(case, backward, check):
    check(Operator(case, backward))


@pytest.mark.parametrize(
    "check", [pytest.param(check, marks=needs_freed_memory if CHECKS[check] == ["object"] else ()) for check in CHECKS]
)
def test_a_cache_that_forgets_is_found(check):
    check(Forgetful("simple_neuron"))
    with pytest.raises((AssertionError, RuntimeError)):
        for _ in range(10):  # whether memory just freed is given out again is chance
            check(Forgetful("simple_neuron", *CHECKS[check]))


def test_options_are_part_of_the_key():
    options_alternate(Operator("carrier_heads"))
    options_alternate(Forgetful("carrier_heads"))
    with pytest.raises(AssertionError):
        options_alternate(Forgetful("carrier_heads", "settings"))


@needs_freed_memory
def test_freed_memory_is_reused_here():
    """Else `freed_and_reallocated` would show nothing, and `swapped_storage` not all."""
    assert len(freed_and_reallocated(Operator("simple_neuron"))) < 20
    assert any(swapped_storage(Operator("energy_carrier")) for _ in range(20))


def test_every_operator_is_among_the_cases():
    everything = torch._C._dispatch_get_all_op_names()
    names = {name.split("::")[1] for name in everything if name.startswith("twinbench::")}
    derived = ("_backward", "_keeping", "_backward_kept")
    forward = {name.removeprefix("energy_flow_") for name in names if not name.endswith(derived)}
    # Those with a file of their own, ci/tests/test_*_operator.py or test_*_operators.py.
    elsewhere = {
        "trainer2_fused_retrieval", "sem_cayley", "sem_selective_scan", "flow_placement", "flow_movement",
        "surface_collection", "output_collector", "spawn_admission", "adaptive_stop", "flow_compaction",
        "fused_attention", "text_encoder"}
    assert forward - elsewhere == {case.split()[0] for case in CASES} and len(names) == 4 * len(forward)


def test_modes_alternate():
    """A set-up made in inference mode serves no call outside, where its tensors could not be written to."""
    arguments = made("energy_carrier", torch.float32)
    operator = operator_of("energy_carrier")
    plain = operator(*arguments.values())[0]
    for _ in range(2):
        with torch.inference_mode():
            assert torch.equal(operator(*arguments.values())[0], plain)
        with torch.no_grad():
            assert torch.equal(operator(*arguments.values())[0], plain)
        assert torch.equal(operator(*arguments.values())[0], plain)
        (gradient,) = torch.autograd.grad(operator(*arguments.values())[0].sum(), arguments["features"])
        assert gradient.abs().max() > 0


def test_more_weights_than_are_kept():
    operator = Operator("energy_carrier")
    many = [operator.arguments() for _ in range(40)]
    for arguments in many + many:
        agree(operator, arguments)


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def kept_bytes(operator):
    """What 40 sets of weights of 4 MB leave behind, each freed, and 40 updates of one."""
    arguments = copies(made("simple_neuron", torch.float32, hidden=1024))
    operator(arguments)
    before = resident()
    for _ in range(40):
        operator(copies(arguments))
    for _ in range(40):
        operator(arguments)
        arguments["weight_2"].add_(0.001)
    return resident() - before


@needs_freed_memory
def test_weights_that_died_or_changed_are_let_go():
    assert kept_bytes(Operator("simple_neuron")) < 60e6
    assert kept_bytes(Forgetful("simple_neuron")) > 200e6  # lets nothing go
