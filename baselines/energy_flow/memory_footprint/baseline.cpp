// Baseline of energy_flow.memory_footprint: makes every tensor of a training step, without memory (device meta), and
// adds up what each would hold.
#include <ATen/ATen.h>

#include <algorithm>
#include <initializer_list>

#include "src/component.h"
#include "src/energy_flow/common/footprint.h"

namespace twinbench::energy_flow::memory_footprint {
namespace {

// Tensors that are made one by one, and what they hold together.
class Made {
 public:
  void add(at::IntArrayRef shape, at::ScalarType type = at::kFloat) {
    const at::Tensor tensor = at::zeros(shape, at::TensorOptions(at::kMeta).dtype(type));
    shapes_.push_back(shape.vec());
    numbers_ += tensor.numel();
    bytes_ += static_cast<double>(tensor.numel()) * static_cast<double>(tensor.element_size());
  }
  void linear(std::int64_t in, std::int64_t out) { add({out, in}), add({out}); }
  void norm(std::int64_t width) { add({width}), add({width}); }
  // Gradients, moments: of each once more.
  void again(const Made& of) {
    for (const auto& shape : of.shapes_) add(shape);
  }
  std::int64_t numbers() const { return numbers_; }
  double bytes() const { return bytes_; }

 private:
  std::vector<std::vector<std::int64_t>> shapes_;
  std::int64_t numbers_ = 0;
  double bytes_ = 0;
};

class Baseline final : public Runnable {
 public:
  Baseline(const NamedTensors& inputs, const Setting& setting)
      : s_(setting), active_(inputs["active"].contiguous()), cells_(s_.size("height") * s_.size("width")) {}

  void run() override {
    Made parts[] = {mapper(), collector(), neuron(), carrier(), heads(), encoder(), adapter(), decoder()};
    const bool trained[] = {s_.on("train_mapper"), false, true, true, true, true, false, false};
    Made gradients, moments;
    double weights = 0;
    std::vector<std::int64_t> parameters;
    for (std::size_t i = 0; i < std::size(parts); ++i) {
      parameters.push_back(parts[i].numbers());
      weights += parts[i].bytes();
      if (!trained[i]) continue;
      gradients.again(parts[i]);
      for (int moment = 0; moment < 2; ++moment) moments.again(parts[i]);
    }
    const double storage = storage_fields().bytes(), batches = two_batches().bytes();
    double of_baseline = 0, of_optimized = kept_states(), segment = 0;
    const std::int64_t every = static_cast<std::int64_t>(s_.option("keep_state_every"));
    double largest = 0;
    for (std::int64_t t = 0; t < active_.numel(); ++t) {
      if (every > 0 && t % every == 0) segment = 0;
      of_baseline += every_output(flows_at(t)).bytes();
      segment += least_outputs(flows_at(t)).bytes();
      largest = std::max(largest, segment);
    }
    of_optimized += largest;
    double of_moments = moments.bytes(), of_storage = storage;
    if (s_.on("documented_tables")) {
      // A number for each cell of the lattice and row; neither moments, nor storage, nor tape.
      of_baseline = of_optimized = 4.0 * static_cast<double>(s_.size("batch") * cells_ * s_.size("depth"));
      of_moments = of_storage = 0;
    }
    const double held = weights + gradients.bytes() + of_moments + of_storage + batches;
    const std::int64_t quota = std::max<std::int64_t>(1, s_.size("most_active") / s_.size("batch"));
    const std::int64_t requested = s_.size("batch") * cells_, admitted = s_.size("batch") * std::min(cells_, quota);
    const std::int64_t one = 2 * (parameters[2] + parameters[3] + parameters[4]);
    results_ = {{"population", at::tensor({requested, quota, admitted, requested - admitted}, at::kLong)},
                {"parameters", at::tensor(at::ArrayRef<std::int64_t>(parameters), at::kLong)},
                {"saved", at::tensor({every_output(1).numbers(), least_outputs(1).numbers()}, at::kLong)},
                {"operations", at::tensor({one}, at::kLong)},
                {"bytes", at::tensor({weights, gradients.bytes(), of_moments, of_storage, batches, of_baseline,
                                      of_optimized, held + of_baseline, held + of_optimized},
                                     at::kDouble)}};
  }

  NamedTensors outputs() override { return results_; }

 private:
  std::int64_t flows_at(std::int64_t t) const { return active_.const_data_ptr<std::int64_t>()[t]; }
  std::int64_t inner() const { return std::max(s_.size("embedding") / 2, 2 * cells_); }

  Made mapper() const {
    Made made;
    made.linear(s_.size("embedding"), inner());
    made.norm(inner());
    made.linear(inner(), 2 * cells_);
    made.norm(2 * cells_);
    made.linear(2 * cells_, cells_);
    made.add({cells_});  // of each cell's position
    for (int scalar = 0; scalar < 2; ++scalar) made.add({1});
    return made;
  }
  Made collector() const {
    Made made;
    made.add({cells_});
    made.linear(cells_, 2 * cells_);
    made.norm(2 * cells_);
    made.linear(2 * cells_, inner());
    made.norm(inner());
    made.linear(inner(), s_.size("embedding"));
    return made;
  }
  Made neuron() const {
    const std::int64_t width = s_.size("neuron_width");
    Made made;
    made.linear(3, 3);
    for (const std::int64_t in : {std::int64_t{4}, width}) made.linear(in, width), made.norm(width);
    made.linear(width, s_.size("features"));
    return made;
  }
  Made carrier() const {
    const std::int64_t hidden = s_.size("hidden");
    Made made;
    for (std::int64_t layer = 0; layer < s_.size("layers"); ++layer)
      for (const std::int64_t in : {layer == 0 ? s_.size("features") + 1 : hidden, hidden}) made.linear(in, 3 * hidden);
    return made;
  }
  Made heads() const {
    const std::int64_t hidden = s_.size("hidden");
    Made made;
    made.linear(hidden, hidden / 2), made.linear(hidden / 2, 1);
    made.linear(hidden, 64), made.linear(64, 3);
    if (s_.on("gate_parameters")) made.linear(hidden, 64), made.linear(64, 1), made.linear(hidden, 1);
    return made;
  }
  Made encoder() const {
    Made made;
    if (!s_.on("text_bridge")) return made;
    const std::int64_t width = s_.size("encoder_width"), wide = s_.size("encoder_inner");
    made.add({s_.size("encoder_words"), width}), made.add({s_.size("encoder_positions"), width});
    for (std::int64_t layer = 0; layer < s_.size("encoder_layers"); ++layer) {
      made.linear(width, 3 * width), made.linear(width, width), made.norm(width);
      made.linear(width, wide), made.linear(wide, width), made.norm(width);
    }
    made.linear(width, width), made.norm(width);
    made.linear(width, cells_);
    return made;
  }
  Made adapter() const {
    Made made;
    if (!s_.on("text_bridge")) return made;
    made.linear(cells_, cells_ / 2), made.norm(cells_ / 2);
    made.linear(cells_ / 2, s_.size("decoder_width")), made.norm(s_.size("decoder_width"));
    return made;
  }
  Made decoder() const {
    Made made;
    if (!s_.on("text_bridge")) return made;
    const std::int64_t width = s_.size("decoder_width"), wide = s_.size("decoder_inner");
    made.add({s_.size("decoder_words"), width});
    for (std::int64_t layer = 0; layer < s_.size("decoder_layers"); ++layer) {
      for (int matrix = 0; matrix < 8; ++matrix) made.add({width, width});  // of its two attentions
      made.add({wide, width}), made.add({width, wide});
      for (int norm = 0; norm < 3; ++norm) made.add({width});
    }
    made.add({width});
    return made;
  }

  at::ScalarType state_type() const { return s_.on("hidden_dtype") ? at::kBFloat16 : at::kFloat; }

  Made storage_fields() const {
    const std::int64_t slots = s_.size("most_active");
    Made made;
    made.add({3, slots}), made.add({slots}), made.add({slots});  // position, energy, distance
    made.add({s_.size("layers"), slots, s_.size("hidden")}, state_type());
    for (int field = 0; field < 5; ++field) made.add({slots}, at::kInt);  // sample, number, age, cell, forward pass
    made.add({slots}, at::kByte);                                         // status
    return made;
  }
  Made two_batches() const {
    Made made;
    for (int tensor = 0; tensor < 4; ++tensor) made.add({s_.size("batch"), s_.size("embedding")});
    return made;
  }

  // What the operators of one step leave: flow by flow what the baseline's tape holds.
  Made every_output(std::int64_t flows) const {
    const std::int64_t hidden = s_.size("hidden"), features = s_.size("features");
    Made made;
    made.add({flows, 3}), made.add({flows}), made.add({flows, 4});
    for (int output = 0; output < 6; ++output) made.add({flows, s_.size("neuron_width")});
    made.add({flows, features});
    for (int joined = 0; joined < 2; ++joined) made.add({flows, features + 1});
    for (std::int64_t layer = 0; layer < s_.size("layers"); ++layer) {
      made.add({flows, layer == 0 ? features + 1 : hidden});
      for (int gate = 0; gate < 5; ++gate) made.add({flows, hidden});
      made.add({flows, hidden});  // guarded
    }
    made.add({flows, hidden});
    for (int output = 0; output < 2; ++output) made.add({flows, hidden / 2});
    made.add({flows, 1});
    for (int output = 0; output < 2; ++output) made.add({flows, 64});
    for (int output = 0; output < 2; ++output) made.add({flows, 3});
    return made;
  }
  Made least_outputs(std::int64_t flows) const {
    Made made;
    made.add({flows, 3}), made.add({flows});
    for (std::int64_t layer = 0; layer < s_.size("layers"); ++layer) {
      for (int gate = 0; gate < 4; ++gate) made.add({flows, s_.size("hidden")});
      made.add({flows, s_.size("hidden")}, state_type());
    }
    made.add({flows, s_.size("hidden") / 2}), made.add({flows, 64}), made.add({flows, 4});
    return made;
  }
  double kept_states() const {
    const auto every = static_cast<std::int64_t>(s_.option("keep_state_every"));
    Made made;
    for (std::int64_t t = 0; every > 0 && t < active_.numel(); t += every)
      made.add({flows_at(t), 4}), made.add({flows_at(t), s_.size("layers"), s_.size("hidden")}, state_type());
    return made.bytes();
  }

  const Setting s_;
  const at::Tensor active_;  // [steps]
  const std::int64_t cells_;
  NamedTensors results_;
};

}  // namespace

std::unique_ptr<Runnable> make_baseline(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Baseline>(inputs, setting);
}

}  // namespace twinbench::energy_flow::memory_footprint
