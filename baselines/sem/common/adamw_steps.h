// What the plain versions of the SEM optimizer (C17) share: the decision of a step on the host, its counts, the noise.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "src/component.h"
#include "src/sem/common/adamw_rule.h"
#include "src/sem/common/parameter_table.h"
#include "src/sem/common/random.h"

namespace twinbench::sem {

// Of the state: parameters, moments and gradients as one arena each, and the tensors in them.
struct Arena {
  struct Parameter {
    ParameterEntry entry;
    std::uint32_t ordinal = 0;
    at::Tensor value, first, second;
    std::vector<at::Tensor> gradients;  // one a step
  };

  at::Tensor values, firsts, seconds, gradients;
  std::vector<Parameter> parameters;  // those with a gradient

  Arena() = default;
  Arena(const NamedTensors& inputs, const std::vector<ParameterEntry>& table)
      : values(copied(inputs["parameters"])),
        firsts(copied(inputs["first_moment"])),
        seconds(copied(inputs["second_moment"])),
        gradients(copied(inputs["gradients"])) {
    for (std::size_t tensor = 0; tensor < table.size(); ++tensor) {
      const ParameterEntry& entry = table[tensor];
      if (!entry.has_gradient()) continue;
      Parameter one{entry,
                    static_cast<std::uint32_t>(tensor),
                    values.narrow(0, entry.first, entry.count),
                    firsts.narrow(0, entry.first, entry.count),
                    seconds.narrow(0, entry.second, entry.count),
                    {}};
      for (std::int64_t step = 0; step < gradients.size(0); ++step)
        one.gradients.push_back(gradients.select(0, step).narrow(0, entry.first, entry.count));
      parameters.push_back(std::move(one));
    }
  }

 private:
  static at::Tensor copied(const at::Tensor& given) { return given.clone(at::MemoryFormat::Contiguous); }
};

// A run of steps whose decisions the host makes: it reads one number a step.
class HostDecidedSteps : public Runnable {
 public:
  HostDecidedSteps(const NamedTensors& inputs, const Setting& setting)
      : inputs_(inputs),
        table_(parameter_table(inputs["offsets"], inputs["kinds"], setting.size("elements"), setting.size("seconds"))),
        seed_(static_cast<std::uint64_t>(inputs["seed"].item<std::int64_t>())),
        clip_(setting.option("clip")),
        weight_decay_(setting.option("weight_decay")),
        temperature_(setting.option("temperature")),
        clears_(setting.on("clear_gradients")),
        floor_(setting.on("unfloored_noise") ? 0 : kNoiseFloor) {}

  void reset() override {
    arena_ = Arena(inputs_, table_);
    const at::Tensor counts = inputs_["counts"].cpu().contiguous();
    const auto* const count = counts.const_data_ptr<std::int64_t>();
    applied_ = count[0], suppressed_ = count[1], in_a_row_ = count[2];
    arranged();
  }

  void run() override {
    status_.clear(), norms_.clear(), coefficients_.clear();
    // The schedule's values lie on the host in the documents; they are an input here.
    const at::Tensor rates = inputs_["learning_rate"].to(at::kCPU, at::kDouble).contiguous();
    for (std::int64_t step = 0; step < rates.numel(); ++step) {
      const bool any = !arena_.parameters.empty();
      const at::Tensor norm = any ? norm_of(step) : at::zeros({}, inputs_["loss"].options().dtype(at::kDouble)),
                       loss = inputs_["loss"].select(0, step);
      norms_.push_back(norm);
      // One read for both: the difference is 0, or NaN where the loss is not finite.
      const auto checked = at::add(norm, at::sub(loss, loss)).item<double>();
      if (std::isfinite(checked)) {
        coefficients_.push_back(std::min(1.0, clip_ / (checked + kClipEpsilon)));
        ++applied_, in_a_row_ = 0;
        if (any) scale(step, coefficients_.back());
        if (any) update(step, rates.const_data_ptr<double>()[step]);
      } else {
        coefficients_.push_back(0);
        ++suppressed_, ++in_a_row_;
      }
      status_.push_back(in_a_row_ == 0 ? 0 : in_a_row_ < kMostInARow ? 1 : 2);
      if (clears_ && any) clear(step);
    }
  }

  NamedTensors outputs() override {
    const c10::Device place = arena_.values.device();
    return {{"parameters", arena_.values},
            {"first_moment", arena_.firsts},
            {"second_moment", arena_.seconds},
            {"gradients", arena_.gradients},
            {"counts", at::tensor({applied_, suppressed_, in_a_row_}, at::kLong).to(place)},
            {"status", at::tensor(status_, at::kLong).to(place)},
            {"norm", at::stack(norms_)},
            {"coefficient", at::tensor(coefficients_, at::kDouble).to(place)}};
  }

 protected:
  virtual at::Tensor norm_of(std::int64_t step) = 0;  // fp64, accumulated in fp64
  virtual void scale(std::int64_t step, double by) = 0;
  virtual void update(std::int64_t step, double rate) = 0;
  virtual void clear(std::int64_t step) = 0;
  virtual void arranged() {}  // after each reset: the arena is another

  const Arena& arena() const { return arena_; }
  // Of the update that is being applied, which has been counted.
  double root_of_correction() const { return std::sqrt(1 - std::pow(kBetaSecond, static_cast<double>(applied_))); }
  double step_size(double rate) const { return rate / (1 - std::pow(kBetaFirst, static_cast<double>(applied_))); }
  double decay(double rate) const { return 1 - rate * weight_decay_; }

  bool has_noise() const { return temperature_ > 0; }
  // sqrt(2 temperature lr) xi / sqrt(max(denominator, floor)), xi from the tensor's stream.
  void add_noise(const Arena::Parameter& to, const at::Tensor& denominator, double rate) const {
    const at::Tensor normals = at::empty({to.value.numel()}, at::kDouble);
    for (std::int64_t i = 0; i < normals.numel(); ++i)
      normals.mutable_data_ptr<double>()[i] = normal_of(
          seed_, kOptimizerNoise + to.ordinal, static_cast<std::uint32_t>(applied_), static_cast<std::uint64_t>(i));
    const at::Tensor spread = at::sqrt(at::clamp_min(denominator, floor_));
    to.value.add_(at::div(normals.to(to.value.options()), spread), std::sqrt(2 * temperature_ * rate));
  }

 private:
  NamedTensors inputs_;
  std::vector<ParameterEntry> table_;
  std::uint64_t seed_;
  double clip_, weight_decay_, temperature_;
  bool clears_;
  double floor_;
  Arena arena_;
  std::int64_t applied_ = 0, suppressed_ = 0, in_a_row_ = 0;
  std::vector<std::int64_t> status_;
  std::vector<at::Tensor> norms_;
  std::vector<double> coefficients_;
};

}  // namespace twinbench::sem
