// energy_flow.checkpoint (C30): training that saves its whole state, resumes from it bit for bit, and cleans up.
#include <algorithm>
#include <limits>

#include "src/energy_flow/common/saved_state.h"
#include "src/spec_parts.h"

namespace twinbench::energy_flow::checkpoint {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();
constexpr std::int64_t kFirstSecond = 1'700'000'000;  // 2023-11-14 22:13:20 UTC

Signature signature() {
  const auto given = [](const char* name, const char* shape, Element element) {
    return data(name, shape, not_drawn()).batch(std::nullopt).without_gradient().of(element);
  };
  const auto exact = [](const char* name, const char* shape, Element element = Element::kFloating) {
    return exact_output(name, shape, element).batch(std::nullopt).with_nan();
  };
  const Tolerance measured{Tolerance::Kind::kMeasured, {}, {}, "measured"};
  return {
      .options = {of_inputs(
          choice_option("course", {"falling", "rising", "not_finite"}, "falling", "the losses of the saves"))},
      .inputs = {state("parameters", "elements", normal(1, 0.05)), state("first_moment", "elements", normal(2, 3e-3)),
                 state("second_moment", "elements", uniform(3, 1e-9, 1e-5)),
                 state("counts", "5", not_drawn()).of(Element::kInt64),
                 state("schedule", "4", not_drawn()).of(Element::kDouble),
                 data("frozen", "frozen_elements", from_case(4, 0.1)).batch(std::nullopt).without_gradient(),
                 given("metrics", "7", Element::kDouble), given("loss", "saves", Element::kDouble),
                 keys("time", "saves").batch(std::nullopt), keys("offsets", "tensors + 1").batch(std::nullopt),
                 keys("critical", "7").batch(std::nullopt), given("behaviour", "4", Element::kDouble),
                 keys("restore_critical", "7").batch(std::nullopt), given("restore_behaviour", "4", Element::kDouble)},
      .outputs = {exact("parameters", "elements"), exact("first_moment", "elements"),
                  exact("second_moment", "elements"), exact("counts", "5", Element::kInt64),
                  exact("schedule", "4", Element::kDouble), exact("saved_parameters", "saves, elements"),
                  exact("saved_first_moment", "saves, elements"), exact("saved_second_moment", "saves, elements"),
                  exact("saved_counts", "saves, 5", Element::kInt64),
                  exact("saved_schedule", "saves, 4", Element::kDouble),
                  exact("saved_frozen", "saves, frozen_elements"), exact("saved_metrics", "saves, 7", Element::kDouble),
                  exact("saved_history", "saves, saves", Element::kDouble), exact("retained", "saves", Element::kBool),
                  exact("names", "any", Element::kByte), exact("warnings", "1", Element::kInt64),
                  exact("failed", "1", Element::kInt64),
                  output("stall_seconds", "saves", measured).batch(std::nullopt).of(Element::kDouble),
                  output("files_left", "1", measured).batch(std::nullopt).of(Element::kDouble)},
  };
}

std::int64_t* integers(const at::Tensor& tensor) { return tensor.mutable_data_ptr<std::int64_t>(); }
double* doubles(const at::Tensor& tensor) { return tensor.mutable_data_ptr<double>(); }
std::int64_t whole(const Setting& setting, const char* option) {
  return static_cast<std::int64_t>(setting.option(option));
}

double loss_of(const Setting& setting, std::int64_t save, std::uint64_t seed) {
  const double falling = 0.9 / static_cast<double>(save + 1) + static_cast<double>(seed % 7) / 1000,
               rising = 0.1 + 0.01 * static_cast<double>((save + static_cast<std::int64_t>(seed % 3)) % 5 + save),
               broken = save % 3 == 0   ? kNan
                        : save % 3 == 1 ? kInfinity
                                        : falling;
  const double by_course[] = {falling, rising, broken};
  return by_course[whole(setting, "course")];
}

// Tensors of very different lengths, some empty, no length a round one.
void finish_inputs(NamedTensors& inputs, const Setting& setting, std::uint64_t seed) {
  const std::int64_t elements = setting.size("elements"), tensors = setting.size("tensors");
  for (std::int64_t i = 0; i <= tensors; ++i) {
    const double part = static_cast<double>(i) / static_cast<double>(tensors);
    integers(inputs["offsets"])[i] =
        i == tensors ? elements : static_cast<std::int64_t>(static_cast<double>(elements) * part * part);
  }
  const std::int64_t counts[kSavedCounts] = {static_cast<std::int64_t>(seed % 90), 700, 680, 12, 680};
  std::copy_n(counts, kSavedCounts, integers(inputs["counts"]));
  const double schedule[kSavedSchedule] = {2.5e-5, setting.on("first_epoch") ? kInfinity : 0.5, 3, 65536};
  std::copy_n(schedule, kSavedSchedule, doubles(inputs["schedule"]));
  for (std::int64_t i = 0; i < 7; ++i) doubles(inputs["metrics"])[i] = 1.5 * static_cast<double>(i) + 0.1;
  for (std::int64_t save = 0; save < setting.size("saves"); ++save) {
    doubles(inputs["loss"])[save] = loss_of(setting, save, seed);
    integers(inputs["time"])[save] = kFirstSecond + (setting.on("same_second") ? 0 : 61 * save);
  }
  const std::int64_t critical[] = {50, 50, whole(setting, "lattice_depth"), 256, 2, 32, 64};
  const double behaviour[] = {0.05, 0.5, 1e-4, 0.1};
  for (const char* prefix : {"", "restore_"}) {
    std::copy_n(critical, 7, integers(inputs[std::string(prefix) + "critical"]));
    std::copy_n(behaviour, 4, doubles(inputs[std::string(prefix) + "behaviour"]));
  }
  for (std::int64_t i = 0; i < whole(setting, "changed_behaviours"); ++i) doubles(inputs["restore_behaviour"])[i] *= 2;
}

// A blocking read for every tensor's parameters and moments, for the frozen ones, counts, schedule, history, metrics.
std::int64_t baseline_reads(const Setting& setting) {
  return setting.size("saves") * (3 * setting.size("tensors") + 5);
}

// The state comes and goes; of each save what the file must hold.
Cost cost(const Setting& setting) {
  const auto [elements, frozen, saves] = real_sizes<3>(setting, {"elements", "frozen_elements", "saves"});
  const double state =
                   12 * elements + 8.0 * static_cast<double>(kSavedCounts) + 8.0 * static_cast<double>(kSavedSchedule),
               rest = 4 * frozen + 8 * 7;
  return {2 * state + rest + saves * (state + rest + 8 * saves), 0};
}

// Saved while the training went on: every saved state must be one that there was, whole.
std::string torn(const NamedTensors& inputs, const NamedTensors& outputs, const Setting& setting) {
  for (const char* name : {"parameters", "first_moment", "second_moment"})
    for (std::int64_t save = 0; save < setting.size("saves"); ++save) {
      if (!outputs["retained"][save].item<bool>()) continue;
      const bool odd = (save + 1) * setting.size("windows") % 2 != 0;
      const at::Tensor then = odd ? inputs[name].neg() : inputs[name],
                       got = outputs[std::string("saved_") + name][save];
      if (!at::equal(then.to(got.scalar_type()).nan_to_num(), got.nan_to_num()))
        return c10::str("saved_", name, " of save ", save, " is no state that there was");
    }
  return "";
}

std::string badly_retained(const NamedTensors&, const NamedTensors& outputs, const Setting& setting) {
  const at::Tensor kept = outputs["retained"];
  const std::int64_t saves = setting.size("saves"), latest = std::max<std::int64_t>(1, whole(setting, "keep_latest"));
  for (std::int64_t save = std::max<std::int64_t>(0, saves - latest); save < saves; ++save)
    if (!kept[save].item<bool>()) return c10::str("save ", save, " is gone, one of the latest ", latest);
  const std::int64_t most = latest + whole(setting, "keep_best");
  return kept.sum().item<std::int64_t>() > most ? c10::str("more than ", most, " files are kept") : "";
}

std::vector<Refusal> refusals() {
  const auto other = [](const char* name, std::int64_t field) {
    return Refusal{name, [=](NamedTensors& inputs, Setting&) { ++integers(inputs["restore_critical"])[field]; },
                   ErrorKind::kDimensionMismatch, kCriticalFields[static_cast<std::size_t>(field)]};
  };
  return {other("another lattice", 0),
          other("another hidden size", 3),
          {"another noise where restoring is strict",
           [](NamedTensors& inputs, Setting& setting) {
             setting.input_case.options["strict_restore"] = 1;
             doubles(inputs["restore_behaviour"])[0] += 0.5;
           },
           ErrorKind::kBadArgument, kBehaviourFields[0]},
          {"a count below 0", [](NamedTensors& inputs, Setting&) { integers(inputs["counts"])[kEpoch] = -1; },
           ErrorKind::kOutOfRange, "counts"},
          {"a count that no training reaches",
           [](NamedTensors& inputs, Setting&) { integers(inputs["counts"])[kAttempt] = kMostUpdates + 1; },
           ErrorKind::kOutOfRange, "counts"},
          {"offsets that begin late", [](NamedTensors& inputs, Setting&) { ++integers(inputs["offsets"])[0]; },
           ErrorKind::kOutOfRange, "offsets"}};
}

}  // namespace

ComponentSpec make_spec() {
  ComponentSpec spec;
  spec.signature = signature();
  spec.finish_inputs = finish_inputs;
  spec.check_inputs = [](const NamedTensors& inputs, const Setting&) { check_update_counts(inputs["counts"]); };
  spec.proof = {{"copies", "", baseline_reads, nothing}};
  spec.cost = cost;
  spec.invariants = {{"what is saved is a state that there was", torn},
                     {"the latest files stay, and no more than the rule says", badly_retained}};
  spec.relations = {{"compressed or not, the same is read back", [](Setting setting) {
                       setting.input_case.options["compress"] = setting.on("compress") ? 0 : 1;
                       return setting;
                     }}};
  spec.refusals = refusals();
  return spec;
}

}  // namespace twinbench::energy_flow::checkpoint
