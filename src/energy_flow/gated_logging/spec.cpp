// energy_flow.gated_logging (C28): the messages of training steps, of which categories and rates let few through.
#include <ATen/ATen.h>

#include <string>

#include "src/energy_flow/common/log_categories.h"
#include "src/energy_flow/common/text_list.h"
#include "src/spec_parts.h"

namespace twinbench::energy_flow::gated_logging {
namespace {

Signature signature() {
  const Tolerance measured{Tolerance::Kind::kMeasured, {}, {}, "measured"};
  const auto whole = [](InputSpec input) { return input.batch(std::nullopt).without_gradient(); };
  return {
      .options = {choice_option("log_profile", log_profiles(), "production", "which categories are on")},
      .inputs = {whole(data("values", "steps, messages", from_case(1))),
                 whole(keys("fails", "steps, messages").of(Element::kBool)), whole(keys("category", "messages")),
                 whole(keys("advance", "steps")), whole(state("last_step", "1", not_drawn()).of(Element::kInt64))},
      .outputs = {exact_output("text_bytes", "any", Element::kByte).batch(std::nullopt),
                  exact_output("text_offsets", "any", Element::kInt64).batch(std::nullopt),
                  exact_output("emitted", "steps, messages", Element::kBool).batch(std::nullopt),
                  exact_output("last_step", "1", Element::kInt64).batch(std::nullopt),
                  // Of a variant's own: the baseline makes all, the optimized version what it says.
                  output("formatted", "1", measured).of(Element::kInt64).batch(std::nullopt)},
  };
}

// Categories in turn, the first message being the basic metrics' where these have an interval.
std::int64_t category_of(std::int64_t message, const Setting& setting) {
  return message == 0 && setting.on("log_interval") ? kBasicMetrics : 11 + (message + 4) % 16;
}

void finish_inputs(NamedTensors& inputs, const Setting& setting, std::uint64_t) {
  const auto integers = [&](const char* name) { return inputs[name].mutable_data_ptr<std::int64_t>(); };
  const std::int64_t messages = setting.size("messages"), calls = setting.size("steps") * messages;
  const auto every = static_cast<std::int64_t>(setting.option("failing_every"));
  for (std::int64_t m = 0; m < messages; ++m) integers("category")[m] = category_of(m, setting);
  for (std::int64_t i = 0; i < calls; ++i)
    inputs["fails"].mutable_data_ptr<bool>()[i] = every > 0 && i % every == every - 1;
  // Micro-steps of a window have its number: the step stays twice before it rises.
  for (std::int64_t i = 0; i < setting.size("steps"); ++i)
    integers("advance")[i] = setting.on("micro_steps") ? i % 3 == 0 : 1;
  integers("last_step")[0] = static_cast<std::int64_t>(setting.option("steps_before")) - 1;
}

std::int64_t baseline_reads(const Setting& s) { return s.size("steps") * s.size("messages"); }

bool is_on(std::int64_t category, const Setting& setting) {
  const auto profile = log_profiles()[static_cast<std::size_t>(setting.option("log_profile"))];
  for (const std::int64_t id : categories_of_profile(profile))
    if (id == category) return true;
  return false;
}

// Lines are of categories that are on, begin with their step, and lie one behind the other.
std::string wrong_lines(const NamedTensors& inputs, const NamedTensors& outputs, const Setting& setting) {
  const std::int64_t steps = setting.size("steps"), messages = setting.size("messages");
  const auto *const category = inputs["category"].const_data_ptr<std::int64_t>(),
                    *const advance = inputs["advance"].const_data_ptr<std::int64_t>();
  const auto* const emitted = outputs["emitted"].const_data_ptr<bool>();
  const TextList lines(outputs, "text");
  std::int64_t step = *inputs["last_step"].const_data_ptr<std::int64_t>(), line = 0;
  for (std::int64_t i = 0; i < steps; ++i) {
    step += advance[i];
    for (std::int64_t m = 0; m < messages; ++m) {
      if (!emitted[i * messages + m]) continue;
      if (line == lines.size()) return "fewer lines than were emitted";
      if (!is_on(category[m], setting)) return c10::str("a line of category ", category[m], ", which is off");
      const std::string start = c10::str("step ", step, " ", category_name(category[m]), " ");
      if (lines[line].substr(0, start.size()) != start || lines[line].size() > static_cast<std::size_t>(kLineBytes))
        return c10::str("line '", lines[line], "' does not begin '", start, "', or is too long");
      ++line;
    }
  }
  if (line != lines.size()) return "more lines than were emitted";
  if (outputs["last_step"].item<std::int64_t>() != step) return "the last step is another one";
  return outputs["formatted"].item<std::int64_t>() < line ? "more lines than were made" : "";
}

// How many lines there are, in steps that rise by one.
double lines_of(const Setting& s) {
  const auto count = [&](const char* name) { return static_cast<std::int64_t>(s.option(name)); };
  double lines = 0;
  for (std::int64_t i = 0; i < s.size("steps"); ++i) {
    const std::int64_t step = count("steps_before") + (s.on("micro_steps") ? i / 3 : i);
    for (std::int64_t m = 0; m < s.size("messages"); ++m) {
      const std::int64_t category = category_of(m, s);
      if (!is_on(category, s)) continue;
      const std::int64_t first = category == kBasicMetrics ? 0 : count("first_n"),
                         every = count(category == kBasicMetrics ? "log_interval" : "every");
      lines += (first == 0 && every == 0) || step < first || (every > 0 && step % every == 0);
    }
  }
  return lines;
}

// A category and a step number each are read once; whether it was said is told of every call; a line is 30 bytes and
// more, and has an offset.
Cost cost(const Setting& s) {
  const auto [steps, messages] = real_sizes<2>(s, {"steps", "messages"});
  return {8 * (steps + messages) + steps * messages + 35 * lines_of(s), 0};
}

}  // namespace

ComponentSpec make_spec() {
  ComponentSpec spec;
  spec.signature = signature();
  spec.finish_inputs = finish_inputs;
  spec.proof = {{"scalar_reads", "", baseline_reads, nothing}};
  spec.cost = cost;
  spec.invariants = {{"lines of categories that are on", wrong_lines}};
  const auto with = [](const char* name, const char* input, std::int64_t value, ErrorKind kind) {
    return Refusal{name,
                   [=](NamedTensors& inputs, Setting& setting) {
                     setting.input_case.options["log_profile"] = 3;
                     inputs["category"].mutable_data_ptr<std::int64_t>()[0] = 16;
                     inputs[input].mutable_data_ptr<std::int64_t>()[0] = value;
                   },
                   kind, input};
  };
  spec.refusals = {with("a step that falls", "advance", -1, ErrorKind::kOutOfRange),
                   with("a step that is missing", "advance", kStepMissing, ErrorKind::kOutOfRange),
                   with("a category that there is not", "category", 27, ErrorKind::kUnknownName)};
  return spec;
}

}  // namespace twinbench::energy_flow::gated_logging
