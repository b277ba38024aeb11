// Baseline of trainer2.metric_update: an operator a step of the rule, and three scalars read back to decide and report.
#include <ATen/ATen.h>

#include <cmath>

#include "src/component.h"
#include "src/trainer2/common/metric_state.h"
#include "src/trainer2/common/rotor_planes.h"

namespace twinbench::trainer2::metric_update {
namespace {

class Baseline final : public Runnable {
 public:
  Baseline(const NamedTensors& inputs, const Setting& setting)
      : inputs_(inputs),
        rate_(static_cast<float>(setting.option("update_rate"))),
        planes_(setting.size("planes")),
        most_rejects_(static_cast<std::int64_t>(setting.option("most_rejects"))),
        blocks_(setting.on("block_rot")) {
    const at::Tensor table = inputs["plane_axes"].cpu().contiguous();
    pairs_.assign(table.const_data_ptr<std::int64_t>(), table.const_data_ptr<std::int64_t>() + 2 * planes_);
    Baseline::reset();
  }

  void reset() override {
    metric_ = inputs_["metric"].clone();
    coupling_ = inputs_["coupling"].clone();
    const at::Tensor rejects = inputs_["rejects"].cpu().contiguous();
    const auto* const count = rejects.const_data_ptr<std::int64_t>();
    total_ = count[0], in_a_row_ = count[1], frozen_ = count[2];
  }

  void run() override {
    report_.clear();
    for (std::int64_t step = 0; step < inputs_["lior_free"].size(0); ++step) {
      const at::Tensor nudged = inputs_["lior_nudged"].select(0, step), free = inputs_["lior_free"].select(0, step);
      const auto change = at::sub(nudged, free).item<double>();
      double mean_change = 0, highest = 0;
      if (frozen_ == 0 && !(std::isfinite(change) && update(step, change, mean_change, highest))) refuse();
      report_.insert(report_.end(), {change, mean_change, highest});
    }
  }

  NamedTensors outputs() override {
    const auto rows = static_cast<std::int64_t>(report_.size() / 3);
    const auto place = metric_.options();
    return {{"metric", metric_},
            {"coupling", coupling_},
            {"rejects", at::tensor({total_, in_a_row_, frozen_}, at::kLong).to(metric_.device())},
            {"report", at::tensor(report_, at::kDouble).view({rows, 3}).to(place)}};
  }

 private:
  void refuse() {
    ++total_;
    if (++in_a_row_ >= most_rejects_) frozen_ = 1;
  }

  // velocity [axes] in the frame: plane after plane, each with its own sine and cosine.
  at::Tensor in_frame(const at::Tensor& velocity) const {
    at::Tensor rotated = velocity.clone();
    for (std::int64_t plane = 0; plane < planes_; ++plane) {
      const at::Tensor angle = inputs_["theta"].select(0, plane), cosine = at::cos(angle), sine = at::sin(angle);
      const at::Tensor a = rotated.select(0, pairs_[2 * plane]), b = rotated.select(0, pairs_[2 * plane + 1]);
      const at::Tensor new_a = at::sub(at::mul(cosine, a), at::mul(sine, b));
      b.copy_(at::add(at::mul(sine, a), at::mul(cosine, b)));
      a.copy_(new_a);
    }
    return rotated;
  }

  // False: the velocity is not finite, nothing was changed.
  bool update(std::int64_t step, double change, double& mean_change, double& highest) {
    const at::Tensor velocity = inputs_["velocity"].select(0, step);
    const at::Tensor mean = at::div(at::sum(velocity, {0}), velocity.size(0)), rho = in_frame(mean);
    const at::Tensor squares = at::mul(rho, rho);
    const auto largest = at::max(squares).item<double>();
    if (!std::isfinite(largest)) return false;
    const at::Tensor total = at::add(at::sum(squares), 1e-8);
    const at::Tensor moved = at::mul(at::mul(at::div(squares, total), change), rate_);
    metric_ = at::clamp(at::add(metric_, moved), kLeastMetric, kMostMetric);
    if (blocks_ && coupling_.numel() > 0) couple(rho, total, change);
    mean_change = at::mean(at::abs(moved)).item<double>();
    highest = largest;
    in_a_row_ = 0;
    return true;
  }

  void couple(const at::Tensor& rho, const at::Tensor& total, double change) {
    const std::int64_t paired = 2 * coupling_.size(0);
    const auto firsts = [&](const at::Tensor& of) { return of.slice(0, 0, paired, 2); };
    const auto seconds = [&](const at::Tensor& of) { return of.slice(0, 1, paired, 2); };
    const at::Tensor product = at::mul(firsts(rho), seconds(rho));
    const at::Tensor moved = at::mul(at::div(at::mul(product, change), total), rate_);
    const at::Tensor most = at::mul(at::sqrt(at::mul(firsts(metric_), seconds(metric_))), 0.99);
    coupling_ = at::clamp(at::add(coupling_, moved), at::neg(most), most);
  }

  NamedTensors inputs_;
  double rate_;
  std::int64_t planes_, most_rejects_, total_ = 0, in_a_row_ = 0, frozen_ = 0;
  bool blocks_;
  std::vector<std::int64_t> pairs_;  // two axes a plane
  at::Tensor metric_, coupling_;
  std::vector<double> report_;  // of the last run: change, mean |metric change|, largest square, one row an update
};

}  // namespace

std::unique_ptr<Runnable> make_baseline(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Baseline>(inputs, setting);
}

}  // namespace twinbench::trainer2::metric_update
