// energy_flow.fused_attention, library: LibTorch's scaled_dot_product_attention, which takes the fused kernel it has.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <optional>

#include "baselines/common/layers.h"
#include "baselines/common/tape.h"
#include "src/rounding.h"

namespace twinbench::energy_flow::fused_attention {
namespace {

// One thread while it lives. LibTorch's backward pass wakes a thread for every few heads, however small they are, and
// each of them allocates: more time than it saves, and another peak of memory each time.
class OneThread {
 public:
  OneThread() { at::set_num_threads(1); }
  ~OneThread() { at::set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  const int before_ = at::get_num_threads();
};

class Library final : public TapeBaseline {
 public:
  Library(const NamedTensors& inputs, const Setting& setting) : TapeBaseline(inputs, setting, Way::kLibrary) {
    make_leaves();
  }

  void run() override {
    constexpr std::int64_t kFewScores = 1 << 18;  // a millisecond, forward and back
    std::optional<OneThread> alone;
    if (backward_ && inputs_["query"].is_cpu() && scores() < kFewScores) alone.emplace();
    TapeBaseline::run();
  }

 private:
  std::int64_t scores() const {
    return setting_.size("batch") * setting_.size("heads") * setting_.size("queries") * setting_.size("keys");
  }
  at::Tensor operand(const char* name) const { return baseline_operand(inputs_[name], round_); }

  void compute() override {
    const at::Tensor& padding = inputs_["padding"];
    const at::Tensor taken = padding.logical_not().view({padding.size(0), 1, 1, padding.size(1)});
    const at::Tensor out = at::scaled_dot_product_attention(operand("query"), operand("key"), operand("value"), taken);
    if (backward_)
      root(out, rounded(inputs_["grad_out"], setting_.rounds_as()));
    else
      result("out", out);
  }
};

}  // namespace

std::unique_ptr<Runnable> make_library(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Library>(inputs, setting);
}

}  // namespace twinbench::energy_flow::fused_attention
