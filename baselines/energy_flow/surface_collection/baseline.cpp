// Baseline of energy_flow.surface_collection: a host map of a sample's cells, filled by four reads a completed flow.
#include <ATen/ATen.h>

#include <cmath>
#include <map>

#include "baselines/common/tape.h"

namespace twinbench::energy_flow::surface_collection {
namespace {

// Flows of a cell: their energies, still on the device, and what the host makes of them.
template <class Real>
struct Group {
  std::vector<at::Tensor> energies;
  std::vector<Real> weights, factors;  // |e| * factor, factor
};

// What the host's own records say of the entries: no tensor is read for it. On a CPU they are the tensors' memory.
template <class T>
class Records {
 public:
  explicit Records(const at::Tensor& tensor) : here_(tensor.cpu().contiguous()), values_(here_.const_data_ptr<T>()) {}
  T operator[](std::int64_t entry) const { return values_[entry]; }

 private:
  at::Tensor here_;
  const T* values_;
};

template <class Real>
class Baseline final : public TapeBaseline {
 public:
  Baseline(const NamedTensors& inputs, const Setting& setting)
      : TapeBaseline(inputs, setting),
        batch_(setting.size("batch")),
        slots_(setting.size("slots")),
        forward_(static_cast<std::int32_t>(setting.option("forward"))),
        stale_scan_(setting.on("stale_scan")) {
    if (backward_) make_leaves();
  }

 private:
  void compute() override {
    const Records<std::uint8_t> status(inputs_["status"]);
    const Records<std::int32_t> forward_id(inputs_["forward_id"]), age(inputs_["age"]);
    const Records<Real> distance(inputs_["distance"]);
    const at::Tensor cell = at::empty({batch_, slots_}, at::kInt);
    if (!backward_) surface_ = at::zeros({batch_, setting_.size("cells")}, inputs_["energy"].options());
    // As the storage has them: a tensor each.
    std::vector<at::Tensor> energies;
    if (batch_ * slots_ > 0) energies = inputs_["energy"].reshape({-1}).unbind(0);
    for (std::int64_t sample = 0; sample < batch_; ++sample) {
      std::map<std::int64_t, Group<Real>> cells;
      for (std::int64_t slot = 0; slot < slots_; ++slot) {
        const std::int64_t entry = sample * slots_ + slot;
        std::int32_t& at = cell.mutable_data_ptr<std::int32_t>()[entry];
        at = -1;
        if (status[entry] != 2 && status[entry] != 3) continue;
        if (forward_id[entry] != forward_ && !(stale_scan_ && is_of_this_forward(sample, slot))) continue;
        at = static_cast<std::int32_t>(
            add(cells, sample, slot, energies[static_cast<std::size_t>(entry)], distance[entry], age[entry]));
      }
      for (const auto& [number, group] : cells) write(sample, number, group);
    }
    if (backward_) return;
    results_.set("surface", surface_);
    results_.set("cell", cell.to(surface_.device()));
  }

  // Of an entry that is left from an earlier forward: read, to be rejected.
  bool is_of_this_forward(std::int64_t sample, std::int64_t slot) const {
    return inputs_["forward_id"].select(0, sample).select(0, slot).item<std::int64_t>() == forward_;
  }

  // Four reads. Returns the cell.
  std::int64_t add(std::map<std::int64_t, Group<Real>>& cells, std::int64_t sample, std::int64_t slot,
                   const at::Tensor& energy, Real distance, std::int32_t age) const {
    const at::Tensor position = inputs_["position"].select(0, sample).select(1, slot);
    const auto read = [](const at::Tensor& value) { return static_cast<Real>(value.item<double>()); };
    read(position.select(0, 2));  // which plane: both belong to one surface
    const Real magnitude = std::abs(read(energy.detach()));
    const std::int64_t column = along(read(position.select(0, 0)), setting_.size("width")),
                       row = along(read(position.select(0, 1)), setting_.size("height"));
    const Real nearness = Real(1) / (Real(1) + distance), maturity = Real(1) + Real(0.1) * static_cast<Real>(age);
    Group<Real>& group = cells[row * setting_.size("width") + column];
    group.energies.push_back(energy);
    group.weights.push_back(magnitude * nearness * maturity);
    group.factors.push_back(nearness * maturity);
    return row * setting_.size("width") + column;
  }

  static std::int64_t along(Real coordinate, std::int64_t extent) {
    const Real nearest = std::nearbyint((coordinate + Real(1)) * Real(0.5) * static_cast<Real>(extent - 1));
    return nearest > 0 ? std::min(static_cast<std::int64_t>(nearest), extent - 1) : 0;
  }

  void write(std::int64_t sample, std::int64_t cell, const Group<Real>& group) {
    const at::Tensor energies = at::stack(group.energies);
    // On the tape the weights are of the energies; distance and age are constants.
    const at::Tensor host = at::tensor(backward_ ? group.factors : group.weights).to(energies.device());
    const at::Tensor weights = backward_ ? at::mul(at::abs(energies), host) : host;
    const at::Tensor mean = at::dot(at::softmax(weights, 0), energies);
    if (backward_)
      root(mean, inputs_["grad_surface"].select(0, sample).select(0, cell));
    else
      surface_.select(0, sample).select(0, cell).copy_(mean);
  }

  const std::int64_t batch_, slots_;
  const std::int32_t forward_;
  const bool stale_scan_;
  at::Tensor surface_;
};

}  // namespace

std::unique_ptr<Runnable> make_baseline(const NamedTensors& inputs, const Setting& setting) {
  if (setting.dtype == Dtype::kFp64) return std::make_unique<Baseline<double>>(inputs, setting);
  return std::make_unique<Baseline<float>>(inputs, setting);
}

}  // namespace twinbench::energy_flow::surface_collection
