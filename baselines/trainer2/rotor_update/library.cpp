// Library variant of trainer2.rotor_update: all planes at once in ATen operators, no read by the host.
#include <ATen/ATen.h>

#include "src/component.h"
#include "src/trainer2/common/rotor_planes.h"

namespace twinbench::trainer2::rotor_update {
namespace {

class Library final : public Runnable {
 public:
  Library(const NamedTensors& inputs, const Setting& setting)
      : given_(inputs["theta"]),
        velocity_(inputs["mean_velocity"]),
        lior_change_(inputs["lior_change"]),
        rate_(static_cast<float>(0.01 * setting.option("update_rate"))) {
    const at::Tensor active = inputs["plane_axes"].slice(0, 0, setting.size("planes"));
    first_ = active.select(1, 0).contiguous();
    second_ = active.select(1, 1).contiguous();
    Library::reset();
  }

  void reset() override { theta_ = given_.clone(at::MemoryFormat::Contiguous); }

  void run() override {
    std::vector<at::Tensor> updates, means;
    for (std::int64_t step = 0; step < lior_change_.size(0); ++step) {
      const at::Tensor velocity = velocity_.select(0, step), scale = lior_change_.select(0, step).mul(-rate_);
      const at::Tensor a = velocity.index_select(0, first_), b = velocity.index_select(0, second_);
      const at::Tensor length = at::sqrt(at::addcmul(a * a, b, b));
      const at::Tensor change = scale * at::atan2(b, a) * length;
      const at::Tensor applied = length.lt(kLeastLength).logical_not().logical_and(change.isfinite());
      const at::Tensor moved = at::where(applied, change, 0.0);
      theta_.add_(moved);
      theta_.sub_(at::round(theta_ / kFullTurn), kFullTurn);
      updates.push_back(applied.sum());
      means.push_back(moved.abs().sum() / updates.back().clamp_min(1));
    }
    updates_ = at::stack(updates);
    mean_change_ = at::stack(means).to(theta_.scalar_type());
  }

  NamedTensors outputs() override { return {{"theta", theta_}, {"updates", updates_}, {"mean_change", mean_change_}}; }

 private:
  at::Tensor given_, velocity_, lior_change_, first_, second_, theta_, updates_, mean_change_;
  double rate_;
};

}  // namespace

std::unique_ptr<Runnable> make_library(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Library>(inputs, setting);
}

}  // namespace twinbench::trainer2::rotor_update
