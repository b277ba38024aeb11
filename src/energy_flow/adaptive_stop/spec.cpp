// energy_flow.adaptive_stop (C15): before each step, whether enough of a sample's flows have completed.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "src/common/philox.h"
#include "src/energy_flow/common/flow_counts.h"
#include "src/spec_parts.h"

namespace twinbench::energy_flow::adaptive_stop {
namespace {

// What the generated samples do. "mixed": one each in turn. No global: the operators ask before those are there.
const std::vector<std::string>& courses() {
  static const std::vector<std::string> names = {"mixed",    "fast",      "slow", "stuck", "still",
                                                 "spawning", "just_even", "dead", "none",  "wild"};
  return names;
}

Signature signature() {
  const Tolerance measured{Tolerance::Kind::kMeasured, {}, {}, "measured"};
  const auto history = [](const char* name) { return keys(name, "decisions, samples").of(Element::kInt32).batch(1); };
  const auto result = [](const char* name, Element element) { return exact_output(name, "samples", element); };
  // How far the host ran ahead of the device hangs on time where the two run side by side.
  const auto number = [&](const char* name) {
    return output(name, "1", measured).of(Element::kInt64).batch(std::nullopt);
  };
  return {
      .options = {of_inputs(choice_option("course", courses(), "mixed", "how the flows of the samples complete"))},
      .inputs = {history("completed"), history("created"), history("active")},
      .outputs = {result("steps", Element::kInt32), result("reason", Element::kInt32), result("best", Element::kInt32),
                  result("stall", Element::kInt32), result("flow_steps", Element::kInt64), number("steps_issued"),
                  number("host_polls")},
  };
}

struct Counts {
  std::int64_t completed = 0, created = 0, active = 0;
};

// After `step` steps of a sample of that course. `word`: the sample's random bits.
Counts counts_of(const std::string& course, std::int64_t step, std::uint32_t word) {
  std::int64_t created = 20 * (1 + word % 12), completed = 0, died = 0;  // shares of twentieths are whole numbers
  const std::int64_t late = step - static_cast<std::int64_t>(word >> 8) % 4;
  const auto part = [&](std::int64_t of, std::int64_t steps) {
    return created * std::clamp<std::int64_t>(of, 0, steps) / steps;
  };
  if (course == "fast")  // 50 steps become 5 or 6, as documented
    completed = std::min(part(step - static_cast<std::int64_t>(word >> 8) % 2, 5), created - created / 40);
  if (course == "slow") completed = part(late, 30);
  if (course == "stuck") completed = part(late, 8) / 2;
  if (course == "spawning") created += created * step / 4, completed = part(late - 2, 25);
  if (course == "just_even") completed = late < 4 ? 0 : created - created / 20;
  if (course == "dead") completed = part(late, 20), died = part(late - 2, 10) - completed;
  if (course == "none") created = 0;
  if (course == "wild") {  // what no flows do: the rule is defined all the same
    const PhiloxWords words = philox(word, static_cast<std::uint32_t>(step), 0, 0, 0);
    return {words.w[0] % 40, words.w[1] % 41, words.w[2] % 23};
  }
  died = std::clamp<std::int64_t>(died, 0, created - completed);
  return {completed, created, created - completed - died};
}

void finish_inputs(NamedTensors& inputs, const Setting& setting, std::uint64_t seed) {
  const std::int64_t decisions = setting.size("decisions"), samples = setting.size("samples");
  const auto course = static_cast<std::size_t>(setting.option("course"));
  const auto history = [&](const char* name) { return inputs[name].mutable_data_ptr<std::int32_t>(); };
  std::int32_t *const completed = history("completed"), *const created = history("created");
  std::int32_t* const active = history("active");
  const auto times = static_cast<std::int64_t>(setting.option("times"));
  const auto many = [&](std::int64_t count) {  // long courses have created more than can be counted
    return static_cast<std::int32_t>(std::min<std::int64_t>(count * times, std::numeric_limits<std::int32_t>::max()));
  };
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    const std::uint32_t tag = philox_tag(PhiloxStream::kSyntheticData, 0);
    const std::uint32_t word = philox(seed, static_cast<std::uint32_t>(sample), 0, 0, tag).w[0];
    const auto own = static_cast<std::size_t>((static_cast<std::uint64_t>(sample) + seed) % (courses().size() - 1)) + 1;
    for (std::int64_t step = 0; step < decisions; ++step) {
      const Counts counts = counts_of(courses()[course == 0 ? own : course], step, word);
      const std::int64_t at = step * samples + sample;
      completed[at] = many(counts.completed);
      created[at] = many(counts.created);
      active[at] = many(counts.active);
    }
  }
}

// Each sample is asked once more than it has steps.
std::int64_t reads(Variant variant, const NamedTensors& outputs, const Setting& s) {
  if (variant == Variant::kOptimized || !s.on("convergence") || s.on("fixed_steps")) return 0;
  return outputs["steps"].sum().item<std::int64_t>() + s.size("samples");
}

// How much of the histories is read hangs on the data; of what is recorded here a quarter is.
Cost cost(const Setting& s) {
  const auto [decisions, samples] = real_sizes<2>(s, {"decisions", "samples"});
  return {samples * (decisions * 3 * 4 / 4 + 4 * 4 + 8) + 16, 0};
}

std::int64_t at(const NamedTensors& tensors, const char* name, std::int64_t place) {
  return tensors[name].cpu().to(at::kLong).contiguous().const_data_ptr<std::int64_t>()[place];
}

// The last look at each sample allows what its reason says.
std::string unfounded(const NamedTensors& inputs, const NamedTensors& outputs, const Setting& s) {
  const std::int64_t samples = s.size("samples"), last = s.size("decisions") - 1;
  for (std::int64_t b = 0; b < samples && !s.on("fixed_steps"); ++b) {
    const std::int64_t steps = at(outputs, "steps", b), reason = at(outputs, "reason", b), here = steps * samples + b;
    const std::string name = "sample " + std::to_string(b) + " ";
    if (steps < 0 || steps > last) return name + "took a number of steps that there are not";
    const std::int64_t active = at(inputs, "active", here);
    const double share =
        static_cast<double>(at(inputs, "completed", here)) / static_cast<double>(at(inputs, "created", here));
    const bool asked = s.on("convergence") && active > 0 && steps < last && steps >= s.option("min_steps");
    const bool enough = share >= s.option("threshold"), stalled = at(outputs, "stall", b) == s.option("patience");
    const bool founded[] = {false, active == 0, active > 0 && steps == last, asked && enough,
                            asked && !enough && stalled};
    if (reason < 0 || reason > 4 || !founded[reason]) return name + "has finished for another reason than it says";
    const at::Tensor executed = inputs["active"].cpu().select(1, b).narrow(0, 0, steps);
    if (executed.sum().item<std::int64_t>() != at(outputs, "flow_steps", b)) return name + "has other flow-steps";
  }
  return "";
}

// K, K issued and polls, as the specification bounds them; a card may be further behind its host.
std::string issued_in_vain(const NamedTensors&, const NamedTensors& outputs, const Setting& s) {
  const std::int64_t last = s.size("decisions") - 1;
  const std::int64_t executed = s.size("samples") > 0 ? outputs["steps"].max().item<std::int64_t>() : 0;
  const std::int64_t issued = at(outputs, "steps_issued", 0), polls = at(outputs, "host_polls", 0);
  const std::int64_t most = s.device.is_cuda() ? last : std::min(last, 8 * (executed / 8 + 1));
  if (issued < executed || issued > most)
    return c10::str(issued, " steps were issued for ", executed, "; at most ", most, " may be");
  return polls <= (issued + 7) / 8 ? "" : c10::str(polls, " polls for ", issued, " steps");
}

}  // namespace

ComponentSpec make_spec() {
  ComponentSpec spec;
  spec.signature = signature();
  spec.finish_inputs = finish_inputs;
  spec.check_inputs = [](const NamedTensors& inputs, const Setting&) { check_counts(inputs); };
  spec.proof = {{"scalar_reads", "", nullptr, nullptr, reads}, {"dispatches", "", nothing, nothing}};
  spec.cost = cost;
  spec.most_launches = [](const Setting& s) { return s.size("decisions"); };
  spec.invariants = {{"reasons", unfounded}, {"steps issued", issued_in_vain}};
  const auto negative = [](const char* name) {
    return [name](NamedTensors& inputs, Setting&) { inputs[name][0][0].fill_(-1); };
  };
  spec.refusals = {{"fewer than no flows completed", negative("completed"), ErrorKind::kOutOfRange, "completed"},
                   {"fewer than no flows active", negative("active"), ErrorKind::kOutOfRange, "active"},
                   {"no patience", [](NamedTensors&, Setting& setting) { setting.input_case.options["patience"] = 0; },
                    ErrorKind::kOutOfRange, "patience"}};
  return spec;
}

}  // namespace twinbench::energy_flow::adaptive_stop
