// Baseline of energy_flow.flow_placement: one cell at a time, its coordinates read back from the device one by one, and
// three buffers of its own for every flow.
#include <ATen/ATen.h>

#include <map>
#include <vector>

#include "baselines/common/tape.h"

namespace twinbench::energy_flow::flow_placement {
namespace {

constexpr std::int64_t kHidden = 64;  // floats of a flow's carrier state, L * Hc of the unit configuration

class Baseline final : public TapeBaseline {
 public:
  Baseline(const NamedTensors& inputs, const Setting& setting)
      : TapeBaseline(inputs, setting),
        samples_(setting.size("samples")),
        placed_(setting.size("placed")),
        width_(setting.size("width")),
        height_(setting.size("height")),
        depth_(static_cast<std::int64_t>(setting.option("depth"))),
        sample_key_(on_host("sample_key")) {
    // The flattened grid, on the device.
    const auto options = inputs["sample_key"].options();
    const at::Tensor flow = at::arange(samples_ * placed_, options), cell = flow.remainder(placed_);
    batch_ = flow.floor_divide(placed_).unbind(0);
    x_ = cell.remainder(width_).unbind(0);
    y_ = cell.floor_divide(width_).unbind(0);
    const at::Tensor level = at::full_like(flow, depth_ / 2);
    on_z0_ = level.le(depth_ - level).unbind(0);
    distance_ = at::minimum(level, depth_ - level).unbind(0);
    make_leaves();
  }

  NamedTensors outputs() override {
    if (backward_) return TapeBaseline::outputs();
    const auto options = inputs_["surface"].options();
    const std::int64_t flows = samples_ * placed_;
    const at::Tensor position = at::empty({flows, 3}, options), energy = at::empty({flows}, options);
    const at::Tensor sample = at::empty({flows}, at::kInt), local = at::empty({flows}, at::kInt);
    const at::Tensor uid = at::empty({flows}, at::kLong);
    std::int64_t place = 0;
    for (const auto& [number, flow] : map_) {
      position[place].copy_(flow.position);
      energy[place].copy_(flow.energy);
      sample[place].fill_(flow.batch);
      local[place].fill_(flow.y * width_ + flow.x);
      uid[place++].fill_((sample_key_.const_data_ptr<std::int64_t>()[flow.batch] << 32) + flow.y * width_ + flow.x);
    }
    const std::int64_t dropped = samples_ * (width_ * height_ - placed_);
    const auto there = [&](const at::Tensor& host) { return host.to(options.device()); };
    return {{"position", position},     {"energy", energy},  {"sample", there(sample)},
            {"local_id", there(local)}, {"uid", there(uid)}, {"dropped", there(at::full({1}, dropped, at::kLong))}};
  }

 private:
  // What the host's map holds of a flow, its three buffers among it.
  struct Flow {
    std::int64_t x, y, batch, distance;
    bool on_z0;
    at::Tensor position, energy, hidden;  // [3], [], [kHidden]
  };

  void compute() override {
    map_.clear();
    const auto cells = inputs_["surface"].reshape({-1}).unbind(0);
    for (std::int64_t i = 0; i < samples_ * placed_; ++i) {
      const Flow flow = placed(i, cells);
      if (backward_) root(flow.energy, inputs_["grad_energy"].select(0, i));
      map_.emplace(i, flow);
    }
  }

  Flow placed(std::int64_t i, const std::vector<at::Tensor>& cells) const {
    const auto at = static_cast<std::size_t>(i);
    Flow flow{x_[at].item<std::int64_t>(), y_[at].item<std::int64_t>(), batch_[at].item<std::int64_t>(),
              distance_[at].item<std::int64_t>(), on_z0_[at].item<bool>()};
    // In fp32 in this order, in every mode: multiply, divide, subtract.
    const auto normalized = [](std::int64_t index, std::int64_t last) {
      return 2.0f * static_cast<float>(index) / static_cast<float>(last) - 1.0f;
    };
    float place[] = {normalized(flow.x, width_ - 1), normalized(flow.y, height_ - 1), normalized(depth_ / 2, depth_)};
    const auto options = cells[0].options();
    flow.position = at::empty({3}, options);
    flow.position.copy_(at::from_blob(place, {3}, at::kFloat));
    flow.energy = cells[static_cast<std::size_t>((flow.batch * height_ + flow.y) * width_ + flow.x)].clone();
    flow.hidden = at::empty({kHidden}, options);
    flow.hidden.zero_();
    return flow;
  }

  const std::int64_t samples_, placed_, width_, height_, depth_;
  std::vector<at::Tensor> x_, y_, batch_, distance_, on_z0_;
  const at::Tensor& sample_key_;
  std::map<std::int64_t, Flow> map_;
};

}  // namespace

std::unique_ptr<Runnable> make_baseline(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Baseline>(inputs, setting);
}

}  // namespace twinbench::energy_flow::flow_placement
