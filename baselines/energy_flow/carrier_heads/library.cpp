// energy_flow.carrier_heads, library: LibTorch's own operators over all flows at once, spawn counts as tensors.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "baselines/common/tape.h"
#include "baselines/energy_flow/common/exploration.h"

namespace twinbench::energy_flow::carrier_heads {
namespace {

class Library final : public TapeBaseline {
 public:
  Library(const NamedTensors& inputs, const Setting& setting)
      : TapeBaseline(inputs, setting, Way::kLibrary),
        gate_(setting.on("gate")),
        noise_(setting),
        step_(static_cast<std::int64_t>(setting.option("step"))),
        scale_(scheduled_scale(setting)) {
    make_leaves(gate_ ? std::vector<std::string>{} : std::vector<std::string>{"child_weight", "child_bias"});
  }

 private:
  void compute() override {
    const at::Tensor &carried = inputs_["carried"], &position = inputs_["position"];
    const at::Tensor energy = at::nan_to_num(at::tanh(head("energy", carried)), 0.0).squeeze(1);
    const at::Tensor displacement = head("displacement", carried);
    const at::Tensor delta = at::clamp(at::mul(displacement, scale_), -0.5, 0.5);
    at::Tensor raw = at::add(position, delta), moved = delta.detach();
    if (noise_.on()) {
      const at::Tensor drawn = noise();
      raw = at::add(raw, drawn);
      moved = at::add(moved, drawn);
    }
    result("energy", energy);
    result("displacement", displacement);
    result("delta", delta);
    result("raw", raw);
    gate_ ? spawn_by_gate(carried) : spawn_by_movement(moved, energy);
  }

  // hidden layer, GELU, output layer
  at::Tensor head(const std::string& name, const at::Tensor& x) const {
    return layer(name + "_out", at::gelu(layer(name + "_hidden", x)));
  }
  at::Tensor layer(const std::string& name, const at::Tensor& x) const {
    return linear(x, name + "_weight", name + "_bias");
  }

  // LibTorch draws from its own generator only: Philox by key is computed on the host, as a user would have to.
  at::Tensor noise() const {
    const at::Tensor keys = inputs_["sample_key"].cpu().contiguous(), ids = inputs_["local_id"].cpu().contiguous();
    const at::Tensor drawn = at::zeros({keys.size(0), 3}, at::kFloat);
    float* out = drawn.mutable_data_ptr<float>();
    for (std::int64_t f = 0; f < keys.size(0); ++f, out += 3) {
      const auto id = ids.const_data_ptr<std::int64_t>()[f], key = keys.const_data_ptr<std::int64_t>()[f];
      std::ranges::copy(noise_.draw(key, id, step_), out);
    }
    return drawn.to(inputs_["position"].options());
  }

  void spawn_by_movement(const at::Tensor& moved, const at::Tensor& energy) {
    result("child_energy", energy);
    if (backward_) return;
    const at::Tensor length = at::linalg_vector_norm(moved, 2, at::IntArrayRef{1});
    const double threshold = setting_.option("movement_threshold");
    const at::Tensor count = length.to(at::kDouble).div(threshold).floor_().sub_(1);
    result("spawn_measure", length);
    result("spawn_count", counts(length.gt(threshold), count));
  }

  void spawn_by_gate(const at::Tensor& carried) {
    const at::Tensor gate = at::sigmoid(head("gate", carried.detach())).squeeze(1).detach();
    const double threshold = setting_.option("gate_threshold"), most = setting_.option("most_spawned");
    const at::Tensor count = gate.to(at::kDouble).sub(threshold).div_(1 - threshold).mul_(most).floor_().add_(1);
    const at::Tensor spawned = counts(gate.gt(threshold), count);
    result("child_energy", at::div(at::tanh(layer("child", carried)).squeeze(1), spawned.add(1)));
    if (backward_) return;
    result("spawn_measure", gate);
    result("spawn_count", spawned);
  }

  // `count` where `spawns`, at most most_spawned; NaN spawns nothing.
  at::Tensor counts(const at::Tensor& spawns, const at::Tensor& count) const {
    return at::where(spawns, count.clamp_max(setting_.option("most_spawned")), at::zeros_like(count)).to(at::kInt);
  }

  const bool gate_;
  const ExplorationNoise noise_;
  const std::int64_t step_;
  const double scale_;  // lambda at this global step
};

}  // namespace

std::unique_ptr<Runnable> make_library(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Library>(inputs, setting);
}

}  // namespace twinbench::energy_flow::carrier_heads
