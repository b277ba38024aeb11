// Library variant of trainer2.fused_retrieval: two matrix products, merged by log-sum-exp; nothing is concatenated.
#include <ATen/ATen.h>

#include <limits>
#include <set>

#include "src/component.h"
#include "src/rounding.h"
#include "src/trainer2/common/rotor_planes.h"

namespace twinbench::trainer2::fused_retrieval {
namespace {

constexpr double kFarthest = std::numeric_limits<float>::max();  // stands for infinity, whose differences are NaN
constexpr std::int64_t kDistanceWithoutProducts = 2;  // a product |c|^2 - 2 c q + |q|^2 cancels where c is near q

// Tokens, or the bank: what each knows before they are merged.
struct Part {
  at::Tensor least, shares, sum, mix;  // [batch, 1], [batch, candidates], [batch, 1], [batch, width]
};

class Library final : public Runnable {
 public:
  Library(const NamedTensors& inputs, const Setting& setting)
      : inputs_(inputs),
        setting_(setting),
        beta_(static_cast<float>(setting.option("beta"))),
        bank_states_(rounded(inputs["bank_states"], setting.rounds_as())) {
    make_layers();
  }

  void run() override {
    const at::Tensor frame = weighted_frame(), query = at::mm(inputs_["query"], frame);
    const at::Tensor valid = at::eq(inputs_["mask"], 1);
    const bool all_valid = at::all(valid).item<bool>();
    const auto filled = inputs_["filled"].item<std::int64_t>();
    Part tokens = of_tokens(query, frame, all_valid ? at::Tensor() : at::logical_not(valid)), bank;
    Part both = tokens;
    if (filled > 0) {
      bank = of_bank(query, frame, filled);
      both.least = at::minimum(tokens.least, bank.least);
      for (Part* part : {&tokens, &bank}) {
        const at::Tensor factor = at::sub(both.least, part->least).mul_(double{beta_}).exp_();
        for (at::Tensor* term : {&part->shares, &part->sum, &part->mix}) term->mul_(factor);
      }
      both.sum = at::add(tokens.sum, bank.sum);
      both.mix = at::add(tokens.mix, bank.mix);
    }
    finish(tokens, bank, both, valid, filled);
  }

  NamedTensors outputs() override { return {{"mix", mix_}, {"weights", weights_}}; }

 private:
  // The rotor as a product of layers whose planes share no axis, each linear in sines and cosines:
  // layers = constant + of_angles * (cosines, sines).
  void make_layers() {
    const std::int64_t axes = setting_.size("axes"), planes = setting_.size("planes");
    const at::Tensor table = inputs_["plane_axes"].cpu().contiguous();
    const auto* const pair = table.const_data_ptr<std::int64_t>();
    std::vector<std::int64_t> layer_of;
    std::set<std::int64_t> used;
    layers_ = 1;
    for (std::int64_t plane = 0; plane < planes; ++plane) {
      const std::int64_t a = pair[2 * plane], b = pair[2 * plane + 1];
      if (used.count(a) + used.count(b) > 0) used.clear(), ++layers_;
      used.insert({a, b});
      layer_of.push_back(layers_ - 1);
    }
    at::Tensor constant = at::eye(axes, at::kFloat).repeat({layers_, 1, 1}),
               of_angles = at::zeros({layers_, axes, axes, 2 * planes}, at::kFloat);
    for (std::int64_t plane = 0; plane < planes; ++plane) {
      const std::int64_t a = pair[2 * plane], b = pair[2 * plane + 1];
      const at::Tensor layer = of_angles[layer_of[static_cast<std::size_t>(plane)]];
      constant[layer_of[static_cast<std::size_t>(plane)]][a][a] = 0;
      constant[layer_of[static_cast<std::size_t>(plane)]][b][b] = 0;
      layer[a][a][plane] = layer[b][b][plane] = 1;
      layer[a][b][planes + plane] = -1;
      layer[b][a][planes + plane] = 1;
    }
    const auto options = inputs_["query"].options();
    constant_ = constant.view({-1}).to(options);
    of_angles_ = of_angles.view({layers_ * axes * axes, 2 * planes}).to(options);
  }

  // [axes, axes]: coordinates times this lie in the frame, each axis multiplied with the root of its metric.
  at::Tensor weighted_frame() const {
    const std::int64_t axes = setting_.size("axes");
    const at::Tensor angles = at::cat({at::cos(inputs_["theta"]), at::sin(inputs_["theta"])});
    const at::Tensor layers = at::addmv(constant_, of_angles_, angles).view({layers_, axes, axes});
    at::Tensor frame = layers.select(0, 0);
    for (std::int64_t layer = 1; layer < layers_; ++layer) frame = at::mm(layers.select(0, layer), frame);
    return at::mul(frame.t(), at::sqrt(inputs_["metric"]));
  }

  // distance [batch, candidates] -> cost, in place.
  at::Tensor cost_of(at::Tensor distance) const {
    return distance.square_().add_(1e-8).sqrt_().mul_(inputs_["curvature"].unsqueeze(1));
  }

  Part soft_min(at::Tensor cost) const {
    Part part;
    cost.clamp_max_(kFarthest);
    part.least = at::amin(cost, {1}, true);
    part.shares = cost.sub_(part.least).mul_(-double{beta_}).exp_();
    part.sum = at::sum(part.shares, {1}, true);
    return part;
  }

  // invalid [batch, tokens]; undefined where all are valid.
  Part of_tokens(const at::Tensor& query, const at::Tensor& frame, const at::Tensor& invalid) const {
    const at::Tensor coordinates = at::matmul(inputs_["token_coordinates"], frame);
    at::Tensor states = rounded(inputs_["token_states"], setting_.rounds_as());
    const at::Tensor cost =
        cost_of(at::cdist(query.unsqueeze(1), coordinates, 2.0, kDistanceWithoutProducts).squeeze(1));
    if (invalid.defined()) {
      cost.masked_fill_(invalid, kFarthest);
      states = at::masked_fill(states, invalid.unsqueeze(2), 0);
    }
    Part part = soft_min(cost);
    part.mix = at::bmm(part.shares.unsqueeze(1), states).squeeze(1);
    return part;
  }

  Part of_bank(const at::Tensor& query, const at::Tensor& frame, std::int64_t filled) const {
    const at::Tensor coordinates = at::mm(inputs_["bank_coordinates"].slice(0, 0, filled), frame);
    Part part = soft_min(cost_of(at::cdist(query, coordinates, 2.0, kDistanceWithoutProducts)));
    part.mix = at::mm(part.shares, bank_states_.slice(0, 0, filled));
    return part;
  }

  void finish(const Part& tokens, const Part& bank, const Part& both, const at::Tensor& valid, std::int64_t filled) {
    // Nothing nearer than infinity: 0 without a candidate, else NaN.
    const at::Tensor none = at::eq(both.least, kFarthest);
    const at::Tensor without =
        at::where(filled > 0 ? at::ones_like(none) : at::any(valid, 1, true),
                  at::scalar_tensor(std::numeric_limits<double>::quiet_NaN(), both.least.options()), 0.0);
    mix_ = at::where(none, without, at::div(both.mix, both.sum));
    const std::int64_t inspected = setting_.size("inspected");
    weights_ = at::zeros({valid.size(0), inspected}, mix_.options());
    if (inspected == 0) return;
    const std::int64_t empty = setting_.size("capacity") - filled;
    at::Tensor shares = filled > 0 ? at::cat({tokens.shares, bank.shares}, 1) : tokens.shares;
    shares = at::where(none, without, at::div(shares, both.sum));
    shares = at::constant_pad_nd(shares, {0, empty});
    shares.slice(1, 0, valid.size(1)).masked_fill_(at::logical_not(valid), 0);
    weights_ = at::index_select(shares, 1, inputs_["inspected"]);
  }

  NamedTensors inputs_;
  Setting setting_;
  float beta_;
  std::int64_t layers_ = 1;
  at::Tensor bank_states_, constant_, of_angles_, mix_, weights_;
};

}  // namespace

std::unique_ptr<Runnable> make_library(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Library>(inputs, setting);
}

}  // namespace twinbench::trainer2::fused_retrieval
