// A window's rows are staged where the component reads them anew; its results are read once, when it has ended.
#include "scenarios/energy_flow/training_model.h"

#include <ATen/ATen.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "harness/compare/inputs.h"
#include "scenarios/energy_flow/training_texts.h"
#include "scenarios/runner/carried_state.h"
#include "scenarios/runner/component_source.h"
#include "src/common/error.h"
#include "src/energy_flow/common/training_window.h"
#include "src/energy_flow/common/window_texts.h"
#include "src/formats/batch_order.h"
#include "src/registry.h"

namespace twinbench::energy_flow {
namespace {

using namespace train_step;

constexpr const char* kMoments[] = {"first_moment", "second_moment"};

// What a window told: in one copy where the results lie on a card.
struct WindowResults {
  float loss = 0;
  std::vector<float> encoder_losses;  // of the micro-steps, where there are texts
  double norm = 0;
  std::int64_t record[kRecord] = {}, counts[kCounts] = {}, work[kWorkColumns] = {};

  void read(const NamedTensors& outputs) {
    encoder_losses.resize(static_cast<std::size_t>(outputs["encoder_losses"].numel()));
    const std::span<std::uint8_t> of_texts(reinterpret_cast<std::uint8_t*>(encoder_losses.data()),
                                           encoder_losses.size() * sizeof(float));
    const std::pair<const char*, std::span<std::uint8_t>> parts[] = {
        {"loss", bytes(&loss)},     {"encoder_losses", of_texts}, {"norm", bytes(&norm)},
        {"record", bytes(&record)}, {"counts", bytes(&counts)},   {"work", bytes(&work)}};
    const bool here = outputs["loss"].device().is_cpu();
    std::vector<at::Tensor> flat;
    for (const auto& [name, to] : parts) {
      const auto& tensor = outputs[name];
      // The oracle's loss is fp64.
      const auto whole = tensor.nbytes() == to.size() ? tensor : tensor.to(at::kFloat);
      flat.push_back(here ? whole.contiguous() : whole.contiguous().view(at::kByte));
    }
    const at::Tensor joined = here ? at::Tensor() : at::cat(flat).cpu();
    const auto* from = here ? nullptr : joined.const_data_ptr<std::uint8_t>();
    for (std::size_t i = 0; i < flat.size(); ++i) {
      const auto& to = parts[i].second;
      if (to.empty()) continue;
      std::memcpy(to.data(), here ? flat[i].const_data_ptr() : from, to.size());
      if (!here) from += to.size();
    }
  }

 private:
  template <class T>
  static std::span<std::uint8_t> bytes(T* of) {
    return {reinterpret_cast<std::uint8_t*>(of), sizeof(T)};
  }
};

class TrainStepRun final : public TrainingRun {
 public:
  TrainStepRun(const ScenarioConfig& config, const RunSetting& run, const DatasetPairs& pairs)
      : run_(run), seed_(config.seed), shuffled_(config.options.at("shuffled") != 0) {
    const Component& component = find_component("energy_flow.train_step");
    Setting setting{{}, run.dtype, run.device};
    setting.input_case.name = config.name;
    setting.input_case.sizes = training_sizes(config);
    setting.input_case.options = config.options;
    for (const char* own : {"shuffled", "baseline_sanitises"}) setting.input_case.options.erase(own);
    if (run.variant == Variant::kBaseline && config.options.at("baseline_sanitises") == 0)
      setting.input_case.options["sanitise"] = 0;
    // Of fewer pairs than a window's rows, windows are as small: first of fewer micro-steps, then of smaller ones.
    if (run.items > 0 && config.sizes.at("micro_batch") > 0) {
      Sizes& sizes = setting.input_case.sizes;
      sizes["micro_batch"] = std::min(config.sizes.at("micro_batch"), run.items);
      sizes["micro_steps"] = std::min(config.sizes.at("micro_steps"), run.items / sizes["micro_batch"]);
    }
    given_ = setting;
    setting_ = completed(component.spec.signature, setting);
    pairs_ = run.items == 0 ? config.sizes.at("pairs") : std::min(run.items, config.sizes.at("pairs"));
    rows_ = rows_of_window(config, setting_, pairs_);
    inputs_ = placed_inputs(generated_inputs(component.spec, given_, seed_), run.dtype, run.device);
    for (const char* moment : kMoments) inputs_[moment].zero_();
    inputs_["counts"].zero_();
    inputs_["counts"].narrow(0, kScaleExponent, 1).fill_(kFirstExponent);
    if (setting_.on("text_bridge")) {
      texts_.emplace(pairs, pairs_, setting_);
      for (const auto& [name, tensor] : texts_->inputs(setting_.size("rows")))
        inputs_.set(name, tensor.to(run.device.tensors()));
    }
    for (std::int64_t pair = 0; pair < pairs_; ++pair) numbers_.push_back(pairs.row(pair));
    input_ = pairs.input.narrow(0, 0, pairs_).to(inputs_["input"].scalar_type()).clone();
    target_ = pairs.target.narrow(0, 0, pairs_).to(inputs_["target"].scalar_type()).clone();
    make();
  }

  void step() override {
    stage();
    runnable_->run();
    results_.read(runnable_->outputs());
    skipped_micro_ += results_.record[train_step::kSkippedMicro];
    sanitised_ += results_.record[kSanitisedRows];
    ++window_;
  }

  NamedTensors state() override {
    NamedTensors copies;
    const NamedTensors now = runnable_->outputs();
    for (const char* name : {"parameters", "first_moment", "second_moment", "counts"})
      copies.set(name, (stepped()                           ? now[name]
                        : name == std::string("parameters") ? trained_of(inputs_, setting_)
                                                            : inputs_[name])
                           .clone());
    copies.set("input", input_.clone());
    copies.set("target", target_.clone());
    copies.set("window", at::full({1}, window_, at::kLong));
    return copies;
  }
  void set_state(const NamedTensors& given) override {
    const NamedTensors next = state();
    put_in_place(next, given);
    bool anew = false;
    for (const auto& [name, tensor] : given) anew |= name != "input" && name != "target" && name != "window";
    input_ = next["input"], target_ = next["target"];
    window_ = next["window"].item<std::int64_t>();
    if (!anew) return;
    set_trained(inputs_, setting_, next["parameters"]);
    for (const char* name : {"first_moment", "second_moment", "counts"}) at::Tensor(inputs_[name]).copy_(next[name]);
    make();
  }

  NamedTensors outputs() override {
    const NamedTensors all = runnable_->outputs();
    return {{"loss", all["loss"]}, {"losses", all["losses"]}, {"gradients", all["gradients"]}};
  }
  std::optional<std::int64_t> item_axis(const std::string& tensor) const override {
    const bool of_pairs = tensor == "losses" && !shuffled_ && rows_ == pairs_ && setting_.size("micro_batch") == 1;
    if (tensor == "input" || tensor == "target" || of_pairs) return 0;
    return std::nullopt;
  }
  std::int64_t items() const override { return pairs_; }
  std::int64_t items_of_step() const override { return rows_; }

  Readings losses() override {
    Readings all = {{"loss", results_.loss}};
    const auto& losses = results_.encoder_losses;
    if (texts_) all[kLossOfTexts] = std::accumulate(losses.begin(), losses.end(), 0.0) / std::ssize(losses);
    return all;
  }
  Readings counters() override {
    return {{"applied", static_cast<double>(results_.counts[kApplied])},
            {"skipped_steps", static_cast<double>(results_.counts[train_step::kSkippedSteps])},
            {"attempts", static_cast<double>(results_.counts[kAttempts])},
            {"skipped_micro", static_cast<double>(skipped_micro_)},
            {"input_sanitised", static_cast<double>(sanitised_)}};
  }
  // Norms of all gradients: as the window summed them up, and as the update took them.
  Readings readings() override {
    const at::Tensor applied = runnable_->outputs()["gradients"].to(at::kCPU, at::kDouble);
    return {{"gradient_norm", results_.norm},
            {"clipped_norm", at::linalg_vector_norm(applied).item<double>()},
            {"effective_batch", static_cast<double>(rows_)},
            {"tape_peak", static_cast<double>(results_.work[kTapePeak])},
            {"tape_left", static_cast<double>(results_.work[kTapeLeft])},
            {"trims", static_cast<double>(results_.work[kTrims])}};
  }

 private:
  bool stepped() const { return made_at_ != window_; }
  void make() {
    runnable_ = find_component("energy_flow.train_step").make(run_.variant, inputs_, given_);
    made_at_ = window_;
  }
  // Rows of the window, and as their keys their numbers in the dataset.
  void stage() {
    const std::int64_t of_epoch = pairs_ / rows_, epoch = window_ / of_epoch, first = window_ % of_epoch * rows_;
    if (shuffled_ && epoch != epoch_) order_ = epoch_permutation(pairs_, epoch, seed_), epoch_ = epoch;
    const bool here = run_.device.tensors().is_cpu();
    const std::int64_t places = setting_.size("rows");  // the component's, which missing rows leave empty
    if (!here && staged_.empty())
      staged_ = {{"input", at::zeros({places, input_.size(1)}, input_.options())},
                 {"target", at::zeros({places, target_.size(1)}, target_.options())},
                 {"sample_key", at::zeros({places}, at::kLong)}};
    if (!here && texts_ && !staged_.contains("token"))
      for (const auto& [name, tensor] : texts_->inputs(places))
        if (!name.starts_with("word_")) staged_.set(name, tensor);
    const NamedTensors& to = here ? inputs_ : staged_;
    auto* const key = to["sample_key"].mutable_data_ptr<std::int64_t>();
    std::vector<std::int64_t> pair(static_cast<std::size_t>(rows_));
    for (std::int64_t row = 0; row < rows_; ++row) {
      auto& of = pair[static_cast<std::size_t>(row)];
      of = shuffled_ ? order_[static_cast<std::size_t>(first + row)] : first + row;
      key[row] = numbers_[static_cast<std::size_t>(of)];
    }
    if (texts_) texts_->stage(pair.data(), rows_, to);
    for (const auto& [name, from] : {std::pair<const char*, const at::Tensor&>{"input", input_}, {"target", target_}}) {
      const auto bytes = static_cast<std::size_t>(from.size(1) * from.element_size());
      auto* const into = static_cast<char*>(to[name].mutable_data_ptr());
      const auto* const source = static_cast<const char*>(from.const_data_ptr());
      for (std::int64_t row = 0; row < rows_; ++row)
        std::memcpy(into + static_cast<std::size_t>(row) * bytes,
                    source + static_cast<std::size_t>(pair[static_cast<std::size_t>(row)]) * bytes, bytes);
    }
    for (const auto& [name, tensor] : staged_) at::Tensor(inputs_[name]).copy_(tensor);
  }

  const RunSetting run_;
  const std::uint64_t seed_;
  const bool shuffled_;
  Setting given_, setting_;  // as the scenario gives it, and completed
  std::int64_t pairs_ = 0, rows_ = 0;
  NamedTensors inputs_, staged_;
  at::Tensor input_, target_;          // [pairs, embedding], on the CPU
  std::vector<std::int64_t> numbers_;  // of the pairs' rows in the dataset
  std::optional<TrainingTexts> texts_;
  std::unique_ptr<Runnable> runnable_;
  WindowResults results_;
  std::vector<std::uint32_t> order_;
  std::int64_t epoch_ = -1, window_ = 0, made_at_ = 0, skipped_micro_ = 0, sanitised_ = 0;
};

// What the keys of a run without texts allow.
void check_sizes_of_texts(const ScenarioConfig& config) {
  const Signature& signature = find_component("energy_flow.train_step").spec.signature;
  Setting setting;
  setting.input_case.sizes = training_sizes(config);
  setting.input_case.options["text_bridge"] = config.options.at("text_bridge");
  try {
    (void)completed(signature, setting);
  } catch (const Error& error) {
    throw Error(error.kind(), config.file + ": sizes: " + error.field(), error.value(), error.remedy());
  }
}

}  // namespace

void take_training_keys(RunSource& source) {
  const ComponentSpec& spec = find_component("energy_flow.train_step").spec;
  source.sizes = size_keys(spec);
  source.sizes.push_back(count_key("pairs", 1, 1e9, "the first so many of the dataset: whole windows"));
  // A run starts at its first window, on the dataset's own rows.
  for (Key& key : option_keys(spec))
    if (!spec.signature.find_option(key.name)->of_inputs) source.options.push_back(std::move(key));
  source.losses = {"loss"};
  source.outputs = {"loss", "losses", "gradients"};
  source.check = [](const ScenarioConfig& config) {
    Setting setting;
    setting.input_case.sizes = config.sizes, setting.input_case.options = config.options;
    rows_of_window(config, setting, config.sizes.at("pairs"));
    check_sizes_of_texts(config);
    check_dataset(config, "pairs", "embedding");
  };
  source.remark = rows_left_out;
  source.step_tolerance = {Tolerance::Kind::kBound, {1e-4, 1e-5}, {6e-2, 3e-2}, "C24"};
}

Sizes training_sizes(const ScenarioConfig& config) {
  Sizes sizes = config.sizes;
  sizes.erase("pairs");
  for (const SizeSpec& one : find_component("energy_flow.train_step").spec.signature.sizes)
    if (!one.part_of.empty()) sizes.emplace(one.name, 0);
  return sizes;
}

std::int64_t rows_of_window(const ScenarioConfig& config, const Setting& setting, std::int64_t pairs) {
  const std::int64_t rows = Window(setting).rows();
  if (rows <= 0)
    throw Error(ErrorKind::kOutOfRange, config.file + ": sizes.micro_batch",
                std::to_string(config.sizes.at("micro_batch")),
                "a window without a row teaches nothing: give 1 or more");
  if (pairs % rows != 0)
    throw Error(ErrorKind::kOutOfRange, config.file + ": sizes.pairs", std::to_string(pairs),
                "give a multiple of a window's " + std::to_string(rows) + " rows: an epoch is whole windows");
  return rows;
}

at::Tensor trained_of(const NamedTensors& inputs, const Setting& setting) {
  std::vector<at::Tensor> parts;
  for (const InputSpec& one : trained_parameters(setting)) parts.push_back(inputs[one.name].reshape({-1}));
  return at::cat(parts);
}

void set_trained(const NamedTensors& inputs, const Setting& setting, const at::Tensor& parameters) {
  std::int64_t from = 0;
  for (const InputSpec& one : trained_parameters(setting)) {
    const at::Tensor& to = inputs[one.name];
    to.copy_(parameters.narrow(0, from, to.numel()).view(to.sizes()));
    from += to.numel();
  }
}

std::unique_ptr<TrainingRun> make_training_run(const ScenarioConfig& config, const RunSetting& setting,
                                               const DatasetPairs& pairs) {
  return std::make_unique<TrainStepRun>(config, setting, pairs);
}

}  // namespace twinbench::energy_flow
