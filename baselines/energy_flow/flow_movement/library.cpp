// energy_flow.flow_movement, library: LibTorch's own operators over all flows at once, rules as masks, counts by one
// index_add.
#include <ATen/ATen.h>

#include "baselines/common/tape.h"

namespace twinbench::energy_flow::flow_movement {
namespace {

class Library final : public TapeBaseline {
 public:
  Library(const NamedTensors& inputs, const Setting& setting)
      : TapeBaseline(inputs, setting, Way::kLibrary),
        kill_(setting.on("boundary")),
        drop_(setting.on("on_stop")),
        projection_age_(static_cast<std::int64_t>(setting.option("projection_age"))) {
    ones_ = at::ones({setting.size("flows")}, inputs["age"].options());
    make_leaves();
  }

 private:
  void compute() override {
    const at::Tensor& age = inputs_["age"];
    const at::Tensor stopped = inputs_["stopped"].index_select(0, inputs_["sample"]), moves = stopped.logical_not();
    const at::Tensor from = at::where(stopped.unsqueeze(1), inputs_["position"], inputs_["raw"]);
    const at::Tensor across = from.narrow(1, 0, 2), z = from.select(1, 2);
    const at::Tensor finite = from.isfinite().all(1);
    at::Tensor died = finite.logical_not().logical_and_(moves), outside;
    if (kill_) outside = across.abs().gt(1).any(1).logical_and_(moves).logical_and_(finite);
    at::Tensor gone = kill_ ? died.logical_or(outside) : died;
    if (drop_) gone = gone.logical_or(stopped);
    const at::Tensor alive = gone.logical_not();
    const at::Tensor below = z.le(-1).logical_and_(moves).logical_and_(alive);
    const at::Tensor above = z.ge(1).logical_and_(moves).logical_and_(alive);
    const at::Tensor inside = alive.logical_and(below.logical_or(above).logical_not_());
    const at::Tensor aged = projection_age_ > 0 ? age.ge(projection_age_ - 1).logical_and_(moves).logical_and_(inside)
                                                : at::zeros_like(alive);
    const at::Tensor projected = aged.logical_or(stopped.logical_and(alive));
    const at::Tensor active = inside.logical_and(projected.logical_not());

    // Twice the clamped value less the value is one fold at the border it passed, and the value itself inside.
    const at::Tensor folded = at::clamp(at::sub(at::mul(at::clamp(across, -1, 1), 2), across), -1, 1);
    const at::Tensor settled = at::where(stopped.unsqueeze(1), across, folded);
    const at::Tensor low = below.logical_or(projected.logical_and(z.le(0)));
    const at::Tensor plane = at::where(low, -1, 1).to(z.scalar_type());
    const at::Tensor depth = at::where(active, z, plane);
    const at::Tensor place = at::cat({settled, depth.unsqueeze(1)}, 1);
    result("new_position", at::where(gone.unsqueeze(1), 0, place));
    const at::Tensor energy = at::where(stopped, inputs_["energy"], inputs_["next_energy"]);
    result("new_energy", at::where(gone, 0, energy));
    if (backward_) return;
    const at::Tensor zero = at::zeros_like(age);
    result("new_age", at::where(gone, zero, age.add(moves)));
    result("distance", at::where(projected, at::rsub(z.abs(), 1), 0));
    const at::Tensor done = at::where(low, 2, 3);
    result("status", at::where(gone, 4, at::where(active, 1, done)).to(at::kByte));
    // Columns: stays active, reached z0, reached zD, projected by age, at the stop; dropped, out of bounds, not finite.
    at::Tensor column =
        at::where(below, 1, at::where(above, 2, at::where(aged, 3, at::where(stopped, drop_ ? 5 : 4, 0))));
    if (kill_) column = at::where(outside, 6, column);
    column = at::where(died, 7, column);
    const std::int64_t samples = inputs_["stopped"].size(0);
    const at::Tensor counts = at::zeros({samples * 8}, age.options());
    counts.index_add_(0, at::add(at::mul(inputs_["sample"], 8), column), ones_);
    result("counts", counts.view({samples, 8}));
  }

  const bool kill_, drop_;
  const std::int64_t projection_age_;
  at::Tensor ones_;
};

}  // namespace

std::unique_ptr<Runnable> make_library(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Library>(inputs, setting);
}

}  // namespace twinbench::energy_flow::flow_movement
