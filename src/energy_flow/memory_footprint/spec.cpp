// energy_flow.memory_footprint (C34): flows, parameters and bytes of a training step, from a configuration and from how
// many flows start each step.
#include <algorithm>

#include "src/energy_flow/common/footprint.h"
#include "src/energy_flow/common/footprint_setting.h"
#include "src/spec_parts.h"

namespace twinbench::energy_flow::memory_footprint {
namespace {

// bytes: weights, gradients, moments, storage, batches, tapes of the baseline and of the optimized build, and all that
// either holds.
Signature signature() {
  const auto exact = [](const char* name, const char* shape, Element element) {
    return exact_output(name, shape, element).batch(std::nullopt);
  };
  return {
      .derived = {{"batch", Expression("micro_batches * micro_batch")},
                  {"most_active", Expression("micro_batches * micro_batch * quota + spare_slots")}},
      .options = {choice_option("hidden_dtype", {"fp32", "bf16"}, "fp32", "how hidden states are stored"),
                  of_inputs(choice_option("course", {"constant", "falling", "spawning"}, "constant",
                                          "how many flows start each step"))},
      .inputs = {keys("active", "steps").batch(std::nullopt)},
      .outputs = {exact("population", "4", Element::kInt64), exact("parameters", "8", Element::kInt64),
                  exact("saved", "2", Element::kInt64), exact("operations", "1", Element::kInt64),
                  exact("bytes", "9", Element::kDouble)},
  };
}

void finish_inputs(NamedTensors& inputs, const Setting& s, std::uint64_t seed) {
  const ModelSizes m = model_sizes(s);
  const auto constant = constant_population(m);
  auto* const active = inputs["active"].mutable_data_ptr<std::int64_t>();
  const std::int64_t most = m.micro_batch * population_of(m).quota;
  for (std::size_t t = 0; t < constant.size(); ++t) {
    const auto step = static_cast<std::int64_t>(t);
    const std::int64_t falling = constant[t] *
                                 std::max<std::int64_t>(0, 100 - static_cast<std::int64_t>(seed % 13) - 7 * step) / 100,
                       spawning = std::min(most, constant[t] + step * static_cast<std::int64_t>(1 + seed % 7));
    const std::int64_t by_course[] = {constant[t], falling, spawning};
    active[t] = by_course[static_cast<std::size_t>(s.option("course"))];
  }
}

// A tensor for each parameter, three more where it is trained; fields of the storage; two batches; of a step what both
// builds save, once more for a single flow, and where states are kept, two of them.
std::int64_t tensors_made(const Setting& s) {
  const ModelSizes m = model_sizes(s);
  const std::int64_t mapper = 13, collector = 11, neuron = 12, carrier = 4 * m.layers, heads = m.gate ? 14 : 8;
  const std::int64_t encoder = m.text_bridge ? 8 + 12 * m.encoder_layers : 0, adapter = m.text_bridge ? 8 : 0,
                     decoder = m.text_bridge ? 2 + 13 * m.decoder_layers : 0;
  const std::int64_t trained = neuron + carrier + heads + encoder + (m.train_mapper ? mapper : 0);
  const std::int64_t every = m.keep_state_every, kept = every == 0 ? 0 : 2 * ((m.steps + every - 1) / every);
  return mapper + collector + neuron + carrier + heads + encoder + adapter + decoder + 3 * trained + 10 + 4 +
         (m.steps + 1) * (20 + 7 * m.layers + 5 + 5 * m.layers) + kept;
}

// The populations in, the figures out; an addition a step and tape.
Cost cost(const Setting& s) {
  const auto steps = static_cast<double>(s.size("steps"));
  return {8 * steps + 8 * (4 + 8 + 2 + 1 + 9), 2 * steps};
}

std::string sums_broken(const NamedTensors&, const NamedTensors& outputs, const Setting&) {
  const at::Tensor population = outputs["population"].cpu().contiguous(), bytes = outputs["bytes"].cpu().contiguous();
  const auto* const flows = population.const_data_ptr<std::int64_t>();
  const auto* const of = bytes.const_data_ptr<double>();
  if (flows[2] + flows[3] != flows[0]) return "admitted and dropped flows are not those requested";
  const double held = of[0] + of[1] + of[2] + of[3] + of[4];
  if (of[7] != held + of[5] || of[8] != held + of[6]) return "the parts do not add up to the whole";
  if (of[2] != 2 * of[1]) return "the optimizer's moments are not twice the gradients";
  return "";
}

Refusal fewer_than_no_flow() {
  return {"flows below 0",
          [](NamedTensors& inputs, Setting&) { inputs["active"].mutable_data_ptr<std::int64_t>()[0] = -1; },
          ErrorKind::kOutOfRange, "active"};
}

}  // namespace

ComponentSpec make_spec() {
  ComponentSpec spec;
  spec.signature = signature();
  spec.finish_inputs = finish_inputs;
  spec.check_inputs = [](const NamedTensors& inputs, const Setting&) {
    const at::Tensor active = inputs["active"].contiguous();
    check_population({active.const_data_ptr<std::int64_t>(), static_cast<std::size_t>(active.numel())});
  };
  spec.proof = {{"dispatches", "", tensors_made, nothing}};
  spec.cost = cost;
  spec.invariants = {{"the parts add up", sums_broken}};
  spec.refusals = {fewer_than_no_flow()};
  return spec;
}

}  // namespace twinbench::energy_flow::memory_footprint
