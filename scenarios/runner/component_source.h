// A component as a training run: what a scenario may say of it is its signature, a step is one run of a variant.
#pragma once

#include <string>
#include <vector>

#include "scenarios/runner/training_run.h"

namespace twinbench {

// A component's sizes and options as keys of a scenario file; an option that a file leaves out has its default.
std::vector<Key> size_keys(const ComponentSpec& spec);
std::vector<Key> option_keys(const ComponentSpec& spec);

// Sizes and options as the component's own tables declare them; an option that a file leaves out has its default there.
// Every run begins with the inputs that the scenario's seed draws. A component that has state goes on from where its
// last step left it, the others do the same again. Items are the component's batch items, counters the sums of
// the outputs that are measurements, rules its invariants (of the forward pass), readings what `read` finds in inputs
// and results, on the CPU. Throws kUnknownName where there is no such component.
using ReadResults = Readings (*)(const NamedTensors& inputs, const NamedTensors& results, const Setting& setting);
RunSource component_source(const std::string& id, std::string summary, const Tolerance& step_tolerance,
                           Pass pass = Pass::kForward, ReadResults read = nullptr);

// One whose variants are Stepwise: a step is one of theirs, its state theirs, and so are its outputs, beside those that
// the component returns.
RunSource stepwise_source(const std::string& id, std::string summary, const Tolerance& step_tolerance,
                          ReadResults read = nullptr);

}  // namespace twinbench
