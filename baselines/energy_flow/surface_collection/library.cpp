// Library variant of energy_flow.surface_collection: entries sorted by cell, then LibTorch's sums of segments.
#include <ATen/ATen.h>

#include <limits>

#include "baselines/common/tape.h"

namespace twinbench::energy_flow::surface_collection {
namespace {

class Library final : public TapeBaseline {
 public:
  Library(const NamedTensors& inputs, const Setting& setting)
      : TapeBaseline(inputs, setting, Way::kLibrary),
        batch_(setting.size("batch")),
        cells_(setting.size("cells")),
        slots_(setting.size("slots")),
        forward_(static_cast<std::int64_t>(setting.option("forward"))),
        columns_(setting.size("width")),
        rows_(setting.size("height")),
        first_cell_(at::arange(batch_, at::TensorOptions(setting.device).dtype(at::kLong)).unsqueeze(1).mul_(cells_)),
        ones_(at::ones({batch_ * slots_}, at::TensorOptions(setting.device).dtype(at::kLong))) {
    make_leaves();
  }

 private:
  void compute() override {
    const at::Tensor status = inputs_["status"];
    const at::Tensor collected =
        at::logical_and(at::eq(at::bitwise_and(status, 0xfe), 2), at::eq(inputs_["forward_id"], forward_));
    const at::Tensor cell = at::where(collected, cell_of(inputs_["position"]), -1);
    // What is not collected goes to a segment after the last cell.
    const at::Tensor key = at::where(collected, at::add(cell, first_cell_), batch_ * cells_).view({-1});
    const auto [sorted, order] = at::sort(key, /*stable=*/true, 0, false);
    const at::Tensor lengths = at::zeros({batch_ * cells_ + 1}, key.options()).scatter_add_(0, key, ones_);

    const at::Tensor energy = at::where(collected, inputs_["energy"], 0).view({-1}).index_select(0, order);
    const at::Tensor nearness = at::reciprocal(at::add(inputs_["distance"], 1)),
                     maturity = at::add(at::mul(inputs_["age"].to(energy.scalar_type()), 0.1), 1);
    const at::Tensor factor = at::where(collected, at::mul(nearness, maturity), 0).view({-1}).index_select(0, order);
    const at::Tensor weight = at::mul(at::abs(energy), factor);
    // The maximum takes no part in the gradient: it cancels.
    const at::Tensor largest = segments(weight.detach(), "max", lengths);
    const at::Tensor share = at::exp(at::sub(weight, at::index_select(largest, 0, sorted)));
    const at::Tensor shares = segments(share, "sum", lengths),
                     energies = segments(at::mul(share, energy), "sum", lengths);
    // An empty cell has 0 / the least number.
    const at::Tensor mean = at::div(energies, at::clamp_min(shares, std::numeric_limits<float>::min()));
    result("surface", mean.narrow(0, 0, batch_ * cells_).view({batch_, cells_}));
    if (!backward_) results_.set("cell", cell.to(at::kInt));
  }

  // position [batch, 3, slots] -> [batch, slots]
  at::Tensor cell_of(const at::Tensor& position) const {
    const auto along = [&](std::int64_t axis, std::int64_t extent) {
      const at::Tensor coordinate = position.select(1, axis);
      return at::add(coordinate, 1)
          .mul_(0.5)
          .mul_(static_cast<double>(extent - 1))
          .round_()
          .nan_to_num_(0)
          .clamp_(0, extent - 1);
    };
    return at::add(along(0, columns_), at::mul(along(1, rows_), columns_)).to(at::kLong);
  }

  // Of the sorted entries; an empty segment has 0, and nobody asks for its maximum.
  static at::Tensor segments(const at::Tensor& values, c10::string_view reduction, const at::Tensor& lengths) {
    return at::segment_reduce(values, reduction, lengths, {}, {}, 0, /*unsafe=*/true, 0);
  }

  const std::int64_t batch_, cells_, slots_, forward_, columns_, rows_;
  at::Tensor first_cell_, ones_;
};

}  // namespace

std::unique_ptr<Runnable> make_library(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Library>(inputs, setting);
}

}  // namespace twinbench::energy_flow::surface_collection
