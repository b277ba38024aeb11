// What the plain versions of energy_flow.optimizer (C25, C26) share: the arena, a window's decision on the host, the
// plateau schedule.
#pragma once

#include <ATen/ATen.h>

#include <cmath>
#include <vector>

#include "src/component.h"
#include "src/energy_flow/common/optimizer_rule.h"
#include "src/energy_flow/common/trained_tensors.h"

namespace twinbench::energy_flow {

// Of the state: parameters, moments and gradients as one arena each, and the tensors in them that have a gradient.
struct TrainedArena {
  at::Tensor values, firsts, seconds, gradients;
  std::vector<at::Tensor> value, first, second;   // a tensor each
  std::vector<std::vector<at::Tensor>> gradient;  // by window

  TrainedArena() = default;
  TrainedArena(const NamedTensors& inputs, const std::vector<TrainedTensor>& tensors)
      : values(copied(inputs["parameters"])),
        firsts(copied(inputs["first_moment"])),
        seconds(copied(inputs["second_moment"])),
        gradients(copied(inputs["gradients"])),
        gradient(static_cast<std::size_t>(gradients.size(0))) {
    for (const auto& [place, has_gradient] : tensors) {
      if (!has_gradient) continue;
      value.push_back(values.narrow(0, place.first, place.count));
      first.push_back(firsts.narrow(0, place.first, place.count));
      second.push_back(seconds.narrow(0, place.first, place.count));
      for (std::size_t window = 0; window < gradient.size(); ++window)
        gradient[window].push_back(
            gradients.select(0, static_cast<std::int64_t>(window)).narrow(0, place.first, place.count));
    }
  }

 private:
  static at::Tensor copied(const at::Tensor& given) { return given.clone(at::MemoryFormat::Contiguous); }
};

// Windows whose decisions the host makes, from norms that it reads.
class WindowsInTurn : public Runnable {
 public:
  WindowsInTurn(const NamedTensors& inputs, const Setting& setting)
      : inputs_(inputs),
        tensors_(trained_tensors(inputs, setting.size("elements"))),
        windows_(setting.size("windows")),
        clip_(setting.option("clip")),
        weight_decay_(setting.option("weight_decay")),
        clears_(setting.on("clear_gradients")) {}

  void reset() override {
    arena_ = TrainedArena(inputs_, tensors_);
    const at::Tensor counts = inputs_["counts"].cpu().contiguous(), schedule = inputs_["schedule"].cpu().contiguous();
    const auto* const count = counts.const_data_ptr<std::int64_t>();
    applied_ = count[0], skipped_ = count[1], bad_epochs_ = count[2];
    rate_ = schedule.const_data_ptr<double>()[0], best_ = schedule.const_data_ptr<double>()[1];
    arranged();
  }

  void run() override {
    status_.clear(), norms_.clear(), coefficients_.clear(), rates_.clear();
    // The training loop has these on the host; they are inputs here.
    const at::Tensor factors = inputs_["gradient_factor"].to(at::kCPU, at::kDouble).contiguous(),
                     contributed = inputs_["micro_steps"].cpu().contiguous(),
                     losses = inputs_["epoch_loss"].cpu().contiguous();
    for (std::int64_t window = 0; window < factors.numel(); ++window) {
      take(window, factors.const_data_ptr<double>()[window], contributed.const_data_ptr<std::int64_t>()[window]);
      if ((window + 1) % windows_ == 0) end_epoch(losses.const_data_ptr<double>()[window / windows_]);
    }
  }

  NamedTensors outputs() override {
    const c10::Device place = arena_.values.device();
    const auto doubles = [&](const std::vector<double>& of) { return at::tensor(of, at::kDouble).to(place); };
    return {{"parameters", arena_.values},
            {"first_moment", arena_.firsts},
            {"second_moment", arena_.seconds},
            {"gradients", arena_.gradients},
            {"counts", at::tensor({applied_, skipped_, bad_epochs_}, at::kLong).to(place)},
            {"schedule", doubles({rate_, best_})},
            {"status", at::tensor(status_, at::kLong).to(place)},
            {"norm", doubles(norms_)},
            {"coefficient", doubles(coefficients_)},
            {"learning_rate", doubles(rates_)}};
  }

 protected:
  virtual double norm_of(std::int64_t window) = 0;  // of all gradients together, in fp64; read by the host
  virtual void scale(std::int64_t window, double by) = 0;
  virtual void update(std::int64_t window) = 0;
  virtual void clear(std::int64_t window) = 0;
  virtual void arranged() {}  // after each reset: the arena is another

  virtual void take(std::int64_t window, double factor, std::int64_t micro_steps) {
    const bool any = has_gradients();
    if (any && factor != 1) scale(window, factor);
    const double norm = any ? norm_of(window) : 0;
    if (micro_steps >= 1 && std::isfinite(norm)) {
      const double coefficient = coefficient_of(norm);
      if (any) scale(window, coefficient);
      return apply(window, norm, coefficient);
    }
    if (any) clear(window);
    note(micro_steps < 1 ? WindowStatus::kNothingToApply : WindowStatus::kNotFinite, norm, 0);
  }

  // The update, from gradients that are clipped.
  void apply(std::int64_t window, double norm, double coefficient) {
    ++applied_;
    if (has_gradients()) update(window);
    if (has_gradients() && clears_) clear(window);
    note(WindowStatus::kApplied, norm, coefficient);
  }

  // Of the window that ends.
  void note(WindowStatus status, double norm, double coefficient) {
    skipped_ += status == WindowStatus::kNotFinite;
    status_.push_back(static_cast<std::int64_t>(status));
    norms_.push_back(norm);
    coefficients_.push_back(coefficient);
    rates_.push_back(rate_);
  }

  double coefficient_of(double norm) const { return clip_ > 0 ? std::min(1.0, clip_ / (norm + kClipEpsilon)) : 1; }
  const TrainedArena& arena() const { return arena_; }
  const std::vector<at::Tensor>& gradients(std::int64_t window) const {
    return arena_.gradient[static_cast<std::size_t>(window)];
  }
  bool has_gradients() const { return !arena_.value.empty(); }
  double rate() const { return rate_; }
  double weight_decay() const { return weight_decay_; }
  std::int64_t applied() const { return applied_; }  // with the update that is being applied
  double clip() const { return clip_; }

 private:
  void end_epoch(double loss) {
    if (!std::isfinite(loss)) return;
    if (loss < best_ * (1 - kLeastGain)) {
      best_ = loss, bad_epochs_ = 0;
    } else if (++bad_epochs_ > kPatience) {
      rate_ = std::max(rate_ * kRateFactor, kLeastRate), bad_epochs_ = 0;
    }
  }

  NamedTensors inputs_;
  std::vector<TrainedTensor> tensors_;
  std::int64_t windows_;
  double clip_, weight_decay_;
  bool clears_;
  TrainedArena arena_;
  std::int64_t applied_ = 0, skipped_ = 0, bad_epochs_ = 0;
  double rate_ = 0, best_ = 0;
  std::vector<std::int64_t> status_;
  std::vector<double> norms_, coefficients_, rates_;
};

}  // namespace twinbench::energy_flow
