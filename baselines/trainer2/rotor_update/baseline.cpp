// Baseline of trainer2.rotor_update: a loop over layers and slots that reads every axis and component one by one.
#include <ATen/ATen.h>

#include <cmath>

#include "src/component.h"
#include "src/trainer2/common/rotor_planes.h"

namespace twinbench::trainer2::rotor_update {
namespace {

class Baseline final : public Runnable {
 public:
  Baseline(const NamedTensors& inputs, const Setting& setting)
      : given_(inputs["theta"]),
        velocity_(inputs["mean_velocity"]),
        lior_change_(inputs["lior_change"]),
        plane_axes_(inputs["plane_axes"]),
        rate_(static_cast<float>(0.01 * setting.option("update_rate"))),
        planes_(setting.size("planes")),
        per_layer_(setting.size("per_layer")),
        layers_(setting.size("slots") / per_layer_),
        remainder_wrap_(setting.on("remainder_wrap")) {
    Baseline::reset();
  }

  void reset() override { theta_ = given_.clone(at::MemoryFormat::Contiguous); }

  void run() override {
    updates_.clear();
    mean_change_.clear();
    for (std::int64_t step = 0; step < lior_change_.size(0); ++step) {
      update(velocity_.select(0, step), lior_change_.select(0, step).item<double>());
      wrap();
    }
  }

  NamedTensors outputs() override {
    return {{"theta", theta_},
            {"updates", at::tensor(updates_, at::kLong).to(theta_.device())},
            {"mean_change", at::tensor(mean_change_, at::kDouble).to(theta_.device(), theta_.scalar_type())}};
  }

 private:
  // velocity [axes]
  void update(const at::Tensor& velocity, double lior_change) {
    std::int64_t updates = 0;
    double sum = 0;
    for (std::int64_t layer = 0; layer < layers_; ++layer)
      for (std::int64_t place = 0; place < per_layer_; ++place) {
        const std::int64_t slot = layer * per_layer_ + place;
        const at::Tensor axes = plane_axes_.select(0, slot);
        const auto a = axes.select(0, 0).item<std::int64_t>(), b = axes.select(0, 1).item<std::int64_t>();
        const auto at_a = velocity.select(0, a).item<double>(), at_b = velocity.select(0, b).item<double>();
        if (slot >= planes_) continue;
        const double length = std::sqrt(at_a * at_a + at_b * at_b);
        if (length < kLeastLength) continue;
        const double change = rate_ * -lior_change * std::atan2(at_b, at_a) * length;
        if (!std::isfinite(change)) continue;
        theta_.select(0, slot).add_(change);
        ++updates;
        sum += std::abs(change);
      }
    updates_.push_back(updates);
    mean_change_.push_back(updates > 0 ? sum / static_cast<double>(updates) : 0);
  }

  void wrap() {
    if (!remainder_wrap_) {
      theta_.copy_(at::sub(theta_, at::mul(at::round(at::div(theta_, kFullTurn)), kFullTurn)));
      return;
    }
    const double half = kFullTurn / 2;
    const at::Tensor once = at::remainder(at::add(theta_, half), kFullTurn);
    theta_.copy_(at::sub(at::remainder(at::add(once, kFullTurn), kFullTurn), half));
  }

  at::Tensor given_, velocity_, lior_change_, plane_axes_, theta_;
  double rate_;
  std::int64_t planes_, per_layer_, layers_;
  bool remainder_wrap_;
  std::vector<std::int64_t> updates_;  // of the last run, one a step
  std::vector<double> mean_change_;
};

}  // namespace

std::unique_ptr<Runnable> make_baseline(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Baseline>(inputs, setting);
}

}  // namespace twinbench::trainer2::rotor_update
