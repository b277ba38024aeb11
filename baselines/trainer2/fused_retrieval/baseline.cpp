// Baseline of trainer2.fused_retrieval: the bank copied for every sample, an operator and a temporary a term.
#include <ATen/ATen.h>

#include <limits>

#include "src/component.h"
#include "src/rounding.h"
#include "src/trainer2/common/rotor_planes.h"

namespace twinbench::trainer2::fused_retrieval {
namespace {

class Baseline final : public Runnable {
 public:
  Baseline(const NamedTensors& inputs, const Setting& setting)
      : inputs_(inputs), setting_(setting), beta_(static_cast<float>(setting.option("beta"))) {
    const std::int64_t planes = setting.size("planes");
    const at::Tensor table = inputs["plane_axes"].cpu().contiguous();
    pairs_.assign(table.const_data_ptr<std::int64_t>(), table.const_data_ptr<std::int64_t>() + 2 * planes);
  }

  void run() override {
    const std::int64_t batch = setting_.size("batch"), capacity = setting_.size("capacity");
    // [batch, candidates, ...]: tokens first, then every slot of the bank, filled or not.
    const auto with_bank = [&](const std::string& tokens, const std::string& slots) {
      return at::cat({inputs_[tokens], inputs_[slots].expand({batch, capacity, -1})}, 1);
    };
    const at::Tensor states = rounded(with_bank("token_states", "bank_states"), setting_.rounds_as());
    const at::Tensor coordinates = with_bank("token_coordinates", "bank_coordinates");
    const at::Tensor is_filled = at::lt(at::arange(capacity, inputs_["filled"].options()), inputs_["filled"]);
    at::Tensor valid = at::cat({at::eq(inputs_["mask"], 1), is_filled.expand({batch, capacity})}, 1);
    at::Tensor candidates = in_frame(coordinates);
    if (setting_.on("sentinel_mask")) {
      candidates = at::where(valid.unsqueeze(2), candidates, at::add(candidates, 1e4));
      valid = at::ones_like(valid);
    }
    const at::Tensor displacement = at::sub(candidates, in_frame(inputs_["query"]).unsqueeze(1));
    const at::Tensor squares = at::mul(at::mul(displacement, displacement), inputs_["metric"]);
    const at::Tensor length = at::sqrt(at::add(at::clamp_min(at::sum(squares, {2}), 0), 1e-8));
    retrieve(at::mul(length, inputs_["curvature"].unsqueeze(1)), at::logical_not(valid), states);
  }

  NamedTensors outputs() override { return {{"mix", mix_}, {"weights", inspected_}}; }

 private:
  // [..., axes] in the frame: plane after plane, each with its own sines and cosines.
  at::Tensor in_frame(const at::Tensor& coordinates) const {
    const at::Tensor rotated = coordinates.clone(at::MemoryFormat::Contiguous);
    for (std::size_t plane = 0; 2 * plane < pairs_.size(); ++plane) {
      const at::Tensor angle = inputs_["theta"].select(0, static_cast<std::int64_t>(plane));
      const at::Tensor cosine = at::cos(angle), sine = at::sin(angle);
      const at::Tensor a = rotated.select(-1, pairs_[2 * plane]), b = rotated.select(-1, pairs_[2 * plane + 1]);
      const at::Tensor new_a = at::sub(at::mul(cosine, a), at::mul(sine, b));
      b.copy_(at::add(at::mul(sine, a), at::mul(cosine, b)));
      a.copy_(new_a);
    }
    return rotated;
  }

  // cost, invalid [batch, candidates]; states [batch, candidates, width]
  void retrieve(const at::Tensor& cost, const at::Tensor& invalid, const at::Tensor& states) {
    const at::Tensor masked = at::masked_fill(cost, invalid, std::numeric_limits<double>::infinity());
    const at::Tensor above = at::mul(at::sub(masked, at::amin(masked, {1}, true)), -double{beta_});
    const at::Tensor outside = invalid.unsqueeze(2);
    at::Tensor weights;
    if (setting_.on("fused_mix")) {
      weights = at::masked_fill(at::softmax(above, 1), invalid, 0);
      states.masked_fill_(outside, 0);  // a copy already
      mix_ = at::bmm(weights.unsqueeze(1), states).squeeze(1);
    } else {
      const at::Tensor shares = at::masked_fill(at::exp(above), invalid, 0);
      weights = at::masked_fill(at::div(shares, at::sum(shares, {1}, true)), invalid, 0);
      mix_ = at::sum(at::masked_fill(at::mul(weights.unsqueeze(2), states), outside, 0), {1});
    }
    inspected_ = at::index_select(weights, 1, inputs_["inspected"]);
  }

  NamedTensors inputs_;
  Setting setting_;
  float beta_;
  std::vector<std::int64_t> pairs_;  // two axes a plane
  at::Tensor mix_, inspected_;
};

}  // namespace

std::unique_ptr<Runnable> make_baseline(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Baseline>(inputs, setting);
}

}  // namespace twinbench::trainer2::fused_retrieval
