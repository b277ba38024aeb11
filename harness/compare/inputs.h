// A cell's inputs as its variants take them: generated once on the CPU, then cast and moved.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "src/component.h"

namespace twinbench {

// fp32, complex64 or integer tensors on the CPU, as the component generates them, checked: defined, on the CPU, fp64
// only where the signature declares it.
NamedTensors generated_inputs(const ComponentSpec& spec, const Setting& setting, std::uint64_t seed);

// Copies of their own: floating and complex tensors in fp64 where the dtype is kFp64, on that device.
NamedTensors placed_inputs(const NamedTensors& generated, Dtype dtype, c10::Device device);

// Other contents for placed inputs, in place: of those that `generated` holds.
void overwrite_inputs(const NamedTensors& inputs, const NamedTensors& generated, const Setting& setting);

// Has the state among the inputs go on from a run's outputs; false where it does not come out, or in another shape.
bool go_on_from(NamedTensors& inputs, const std::string& state, const NamedTensors& outputs);

// The inputs whose contents a run reads anew, so that they may change between runs of one runnable: data along a batch
// axis; and in a component with a state but without batch items, which takes one step a run, all floating data. The
// rest, weights and tables, may be prepared at set-up.
std::set<std::string> inputs_read_by_run(const ComponentSpec& spec, const Setting& setting);

// The setting of the oracle: fp64 on the CPU, rounding what the setting rounds.
Setting oracle_setting(const Setting& setting);
// The same without any rounding: what worked examples and slopes are of.
Setting exact_setting(const Setting& setting);

}  // namespace twinbench
