// energy_flow.flow_storage (C12): all flows of a forward in one structure of arrays, and of forward after forward.
#include <ATen/ATen.h>

#include <algorithm>
#include <bit>
#include <vector>

#include "src/common/philox.h"
#include "src/spec_parts.h"

namespace twinbench::energy_flow::flow_storage {
namespace {

// A flow's slot is its number in the sample. In every step a flow that is born or active takes what is given for it;
// the dump is that of the last forward, slots that are free empty.
Signature signature() {
  const auto given = [](const char* name, const char* each, Draw draw, std::int64_t axis) {
    return data(name, std::string("forwards, steps, ") + each, draw).batch(axis).without_gradient();
  };
  const auto whole = [](const char* name, const char* shape, Element element, std::int64_t axis) {
    return keys(name, shape).of(element).batch(axis);
  };
  const auto field = [](const char* name, Element element) { return exact_output(name, "samples, slots", element); };
  return {
      .options = {choice_option("hidden_dtype", {"fp32", "bf16"}, "fp32", "how hidden states are stored")},
      .inputs = {state("generation", "1", not_drawn()).of(Element::kInt32).batch(std::nullopt),
                 whole("birth", "forwards, samples, slots", Element::kInt32, 1),
                 given("position", "3, samples, slots", uniform(1, -1, 1), 3),
                 given("energy", "samples, slots", from_case(2, 0.5), 2),
                 given("hidden", "layers, samples, slots, hidden", uniform(3, -1, 1), 3),
                 whole("status", "forwards, steps, samples, slots", Element::kByte, 2),
                 given("distance", "samples, slots", uniform(4, 0, 1), 2),
                 whole("cell", "forwards, steps, samples, slots", Element::kInt32, 2)},
      .outputs = {exact_output("stored_position", "3, samples, slots").batch(1),
                  exact_output("stored_energy", "samples, slots").with_nan(),
                  exact_output("stored_hidden", "layers, samples, slots, hidden").batch(1).with_nan(),
                  field("sample", Element::kInt32).batch(std::nullopt), field("local_id", Element::kInt32),
                  field("age", Element::kInt32), field("stored_status", Element::kByte),
                  exact_output("stored_distance", "samples, slots"), field("stored_cell", Element::kInt32),
                  field("forward_id", Element::kInt32),
                  exact_output("slots_free_after", "1", Element::kInt64).batch(std::nullopt),
                  exact_output("bytes", "1", Element::kInt64).batch(std::nullopt),
                  exact_output("generation", "1", Element::kInt32).batch(std::nullopt)},
  };
}

// What a slot goes through in a forward, the same for every seed: five flows in eight are placed, two are born in some
// step, one slot stays free; in a step an active flow ends with one chance in five.
PhiloxWords words_of(std::int64_t forward, std::int64_t step, std::int64_t sample, std::int64_t slot) {
  return philox(12, static_cast<std::uint32_t>(slot), static_cast<std::uint32_t>(sample),
                static_cast<std::uint32_t>(forward), static_cast<std::uint32_t>(step));
}
std::int32_t birth_of(const Setting& s, std::int64_t forward, std::int64_t sample, std::int64_t slot) {
  const PhiloxWords words = words_of(forward, 65535, sample, slot);
  if (words.w[0] % 8 == 7) return -1;
  return words.w[0] % 8 < 5 ? 0 : static_cast<std::int32_t>(words.w[1] % static_cast<std::uint32_t>(s.size("steps")));
}
std::uint8_t status_of(std::int64_t forward, std::int64_t step, std::int64_t sample, std::int64_t slot) {
  const PhiloxWords words = words_of(forward, step, sample, slot);
  return static_cast<std::uint8_t>(words.w[0] % 5 == 0 ? 2 + words.w[1] % 3 : 1);
}

template <class Body>
void over_slots(const Setting& s, Body body) {
  for (std::int64_t forward = 0; forward < s.size("forwards"); ++forward)
    for (std::int64_t sample = 0; sample < s.size("samples"); ++sample)
      for (std::int64_t slot = 0; slot < s.size("slots"); ++slot) body(forward, sample, slot);
}

void finish_inputs(NamedTensors& inputs, const Setting& s, std::uint64_t seed) {
  const std::int64_t steps = s.size("steps"), samples = s.size("samples"), slots = s.size("slots");
  inputs.set("generation", at::full({1}, static_cast<std::int64_t>(seed % 1000), at::kInt));
  auto* const birth = inputs["birth"].mutable_data_ptr<std::int32_t>();
  auto* const status = inputs["status"].mutable_data_ptr<std::uint8_t>();
  auto* const cell = inputs["cell"].mutable_data_ptr<std::int32_t>();
  // The patterns that rounding to two bytes could carry into a number, and those that it keeps.
  const std::vector<float> awkward = {std::bit_cast<float>(0x7fffffffu), std::bit_cast<float>(0xffffffffu),
                                      std::bit_cast<float>(0x7f800001u), std::bit_cast<float>(0x7f800000u),
                                      std::bit_cast<float>(0xff800000u), std::bit_cast<float>(0x7f7fffffu)};
  if (s.on("nan_states")) plant(inputs["hidden"], 3, awkward);
  over_slots(s, [&](std::int64_t forward, std::int64_t sample, std::int64_t slot) {
    birth[(forward * samples + sample) * slots + slot] = birth_of(s, forward, sample, slot);
    for (std::int64_t step = 0; step < steps; ++step) {
      const std::int64_t at = ((forward * steps + step) * samples + sample) * slots + slot;
      status[at] = status_of(forward, step, sample, slot);
      cell[at] = static_cast<std::int32_t>((seed + static_cast<std::uint64_t>(at) * 7919) % 2500);
    }
  });
}

// Births and updates, each of one flow.
std::int64_t stores(const Setting& s) {
  std::int64_t count = 0;
  over_slots(s, [&](std::int64_t forward, std::int64_t sample, std::int64_t slot) {
    const std::int32_t birth = birth_of(s, forward, sample, slot);
    if (birth < 0 || static_cast<double>(forward) < s.option("first")) return;
    ++count;
    for (std::int64_t step = birth + 1; step < s.size("steps"); ++step, ++count)
      if (status_of(forward, step, sample, slot) != 1) {
        ++count;
        break;
      }
  });
  return count;
}
std::int64_t steps_run(const Setting& s) {
  return std::max<std::int64_t>(s.size("forwards") - static_cast<std::int64_t>(s.option("first")), 0) * s.size("steps");
}
std::int64_t allocations(const Setting& s) { return 3 * stores(s); }
std::int64_t copies(const Setting& s) { return 3 * stores(s) + 3 * steps_run(s); }

// Births of every forward, what each stored flow is given, and the last forward's fields.
Cost cost(const Setting& s) {
  const auto [forwards, samples, slots, layers, hidden] =
      real_sizes<5>(s, {"forwards", "samples", "slots", "layers", "hidden"});
  const double state = 4 * layers * hidden;
  return {4 * forwards * samples * slots + static_cast<double>(stores(s)) * (17 + state) +
              samples * slots * (37 + (s.on("hidden_dtype") ? 0.5 : 1) * state),
          0};
}

std::string misplaced(const NamedTensors&, const NamedTensors& outputs, const Setting& s) {
  const std::int64_t samples = s.size("samples"), slots = s.size("slots");
  if (outputs["slots_free_after"].item<std::int64_t>() != samples * slots) return "a forward has kept slots";
  const at::Tensor here = outputs["stored_status"].cpu().ne(0), local = outputs["local_id"].cpu();
  const at::Tensor sample = outputs["sample"].cpu();
  const at::Tensor own = at::where(here, at::arange(slots, at::kInt), -1);
  if (!local.eq(own).all().item<bool>()) return "a slot's flow has another slot's number";
  if (!sample.eq(at::where(here, at::arange(samples, at::kInt).unsqueeze(1), -1)).all().item<bool>())
    return "a slot's flow belongs to another sample";
  const at::Tensor completed = outputs["stored_status"].cpu().eq(2).logical_or(outputs["stored_status"].cpu().eq(3));
  if (!outputs["stored_cell"].cpu().ge(0).eq(completed).all().item<bool>())
    return "a flow has a cell that has not completed, or none that has";
  return "";
}

}  // namespace

ComponentSpec make_spec() {
  ComponentSpec spec;
  spec.signature = signature();
  spec.finish_inputs = finish_inputs;
  spec.proof = {{"allocations", "", allocations, nothing}, {"copies", "", copies, nothing}};
  spec.cost = cost;
  spec.most_launches = [](const Setting& s) { return steps_run(s); };
  spec.invariants = {{"numbers, cells and free slots", misplaced}};
  spec.relations = {{"the last forward alone", [](Setting s) {
                       double& first = s.input_case.options["first"];  // where none is left, none is the last
                       first = std::max(first, static_cast<double>(s.size("forwards") - 1));
                       return s;
                     }}};
  return spec;
}

}  // namespace twinbench::energy_flow::flow_storage
