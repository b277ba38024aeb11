// energy_flow.energy_carrier, optimized on the CPU: every thread takes its flows through all layers, products in loops
// of our own with the gates after each panel; backward likewise, then the gradients of all weights. The constructor
// makes the buffers and packs the weights.
#include <ATen/ATen.h>

#include <string>
#include <vector>

#include "optimized/common/packing.h"
#include "optimized/common/panel_product.h"
#include "optimized/common/rows.h"
#include "optimized/common/two_halves.h"
#include "optimized/energy_flow/common/layer_parts.h"
#include "optimized/energy_flow/energy_carrier/gate_rows.h"

namespace twinbench::energy_flow::energy_carrier {
namespace {

constexpr std::int64_t kFlowsAtOnce = 128;  // of a thread: they share one reading of the weights

// Weights packed for the products, summed biases, and what each flow leaves, for one layer.
struct Layer {
  at::Tensor input_panels, hidden_panels;  // a panel: three blocks of kPanelLanes channels
  at::Tensor biases;                       // [4, hidden]
  at::Tensor input, hidden;                // [flows, in], [flows, hidden]: operands of the products, as numbers
  at::Tensor input_words, hidden_words;    // the same in the words that they are multiplied in
  at::Tensor next_operand;                 // [flows, hidden]: the layer above's input
  // Backward only.
  at::Tensor grad_input_panels, grad_hidden_panels;  // of [3*hidden, in]; of [3*hidden, hidden] in block order 0-2
  at::Tensor kept;                                   // [flows, 4*hidden], of which gradients are made in place
  at::Tensor grad_weight_input, grad_weight_hidden, grad_bias_input, grad_bias_hidden;
};

template <class Real>
class CpuCarrier final : public TwoHalves {
 public:
  CpuCarrier(const NamedTensors& inputs, const Setting& setting)
      : setting_(setting),
        round_(rounds_operands(setting)),
        way_(std::is_same_v<Real, float> ? panel_way(round_) : PanelWay::kLoops),
        flows_(setting.size("flows")),
        width_(setting.size("hidden")),
        input_width_(setting.size("features") + 1),
        features_(inputs["features"].contiguous()),
        energy_(inputs["energy"].contiguous()),
        hidden_(inputs["hidden"].contiguous()),
        forward_results_(zero_results(forward_of(setting))) {
    guarded_hidden_ = at::empty_like(hidden_);
    // Pairs are made of exact numbers; else products take rounded numbers, which are not the state.
    hidden_operand_ = round_ && way_ != PanelWay::kPairs ? at::empty_like(hidden_) : guarded_hidden_;
    next_hidden_ = forward_results_["next_hidden"];
    guard_hits_ = forward_results_["guard_hits"];
    at::Tensor operand = matrix(input_width_);
    for (std::int64_t l = 0; l < setting.size("layers"); ++l) {
      Layer layer = pack(inputs, std::to_string(l));
      layer.input = operand;
      layer.input_words = words_of(operand);
      layer.hidden = hidden_operand_.select(0, l);
      layer.hidden_words = words_of(layer.hidden);
      layer.next_operand = operand = matrix(width_);
      layers_.push_back(layer);
    }
    forward_results_.set("output", next_hidden_.select(0, setting.size("layers") - 1));
    if (setting.backward()) prepare_backward(inputs);
  }

  void run() override {
    run_forward();
    if (setting_.backward()) run_backward();
  }

  void run_forward() override {
    over_flows([this](std::int64_t begin, std::int64_t end) {
      guard_inputs(begin, end);
      for (std::size_t l = 0; l < layers_.size(); ++l) forward_layer(l, begin, end);
    });
  }

  void run_backward() override {
    if (flows_ == 0) return;
    over_flows([this](std::int64_t begin, std::int64_t end) {
      for (std::size_t l = layers_.size(); l-- > 0;) backward_layer(l, begin, end);
      mask_inputs(begin, end);
    });
    const std::int64_t rows = 3 * width_, blocks = (rows + kPanelRows - 1) / kPanelRows;
    at::parallel_for(0, blocks, blocks_of(flows_ * width_), [&](std::int64_t begin, std::int64_t end) {
      for (const Layer& layer : layers_) weight_gradients(layer, begin * kPanelRows, std::min(rows, end * kPanelRows));
    });
  }

  NamedTensors forward_outputs() override { return forward_results_; }
  std::vector<at::Tensor> kept() override {
    std::vector<at::Tensor> kept = {guarded_hidden_};
    if (!hidden_operand_.is_same(guarded_hidden_)) kept.push_back(hidden_operand_);
    for (const Layer& layer : layers_) kept.insert(kept.end(), {layer.input, layer.kept});
    return kept;
  }
  NamedTensors outputs() override { return setting_.backward() ? gradients_ : forward_results_; }
  NamedTensors give_outputs() override {
    NamedTensors given = outputs();
    write_gradients_to(flows_ > 0 ? empty_results(setting_) : zero_results(setting_));
    return given;
  }

 private:
  at::Tensor matrix(std::int64_t columns) const { return at::empty({flows_, columns}, features_.options()); }
  at::Tensor words_of(const at::Tensor& values) const {
    return way_ == PanelWay::kPairs ? matrix(panel_words(way_, values.size(1))) : values;
  }
  // A layer's first element in a [layers, flows, hidden] tensor.
  Real* of_layer(const at::Tensor& states, std::size_t l) const {
    return data<Real>(states) + static_cast<std::int64_t>(l) * flows_ * width_;
  }
  static Real* row_of(const at::Tensor& matrix, std::int64_t row) { return data<Real>(matrix) + row * matrix.size(1); }

  // Blocks of kPanelRows rows that pay for waking a thread, where a row takes so many multiply-adds.
  static std::int64_t blocks_of(std::int64_t of_row) {
    constexpr std::int64_t kWork = 2 << 20;
    return kWork / std::max<std::int64_t>(1, of_row) / kPanelRows + 1;
  }

  // body(begin, end) of at most kFlowsAtOnce flows.
  template <class Body>
  void over_flows(Body body) const {
    const std::int64_t of_flow = 3 * width_ * (input_width_ + (2 * hidden_.size(0) - 1) * width_);
    at::parallel_for(0, (flows_ + kPanelRows - 1) / kPanelRows, blocks_of(of_flow),
                     [&](std::int64_t b, std::int64_t e) {
                       const std::int64_t end = std::min(flows_, e * kPanelRows);
                       for (std::int64_t f = b * kPanelRows; f < end; f += kFlowsAtOnce)
                         body(f, std::min(end, f + kFlowsAtOnce));
                     });
  }

  at::Tensor block(const at::Tensor& weight, std::int64_t first, std::int64_t count) const {
    return weight.narrow(0, first * width_, count * width_);
  }
  // Three blocks of rows, [3 * hidden, in], as panels of [in, kPanelLanes channels of each block].
  at::Tensor gate_panels(const at::Tensor& weight) const {
    const std::int64_t groups = (width_ + kPanelLanes - 1) / kPanelLanes, inner = weight.size(1);
    const at::Tensor padded = at::zeros({3, groups * kPanelLanes, inner}, weight.options());
    padded.narrow(1, 0, width_).copy_(weight.view({3, width_, inner}));
    const at::Tensor grouped = padded.view({3, groups, kPanelLanes, inner}).transpose(0, 1);
    return packed_panels(grouped.reshape({groups * kPanelColumns, inner}).t(), way_);
  }

  Layer pack(const NamedTensors& inputs, const std::string& l) const {
    const at::Tensor weight_input = operand_of(inputs["weight_input_" + l], setting_);
    const at::Tensor weight = operand_of(inputs["weight_hidden_" + l], setting_);
    const at::Tensor weight_hidden = at::cat({block(weight, 2, 1), block(weight, 0, 2)});
    Layer layer;
    layer.input_panels = gate_panels(weight_input);
    layer.hidden_panels = gate_panels(weight_hidden);
    layer.biases = gate_biases(inputs["bias_input_" + l], inputs["bias_hidden_" + l]);
    if (!setting_.backward()) return layer;
    layer.grad_input_panels = packed_panels(weight_input, way_);
    layer.grad_hidden_panels = packed_panels(weight_hidden, way_);
    return layer;
  }

  // ---- forward -----------------------------------------------------------------------------------------------------

  // A row of exact numbers becomes an operand.
  void finish_operand(Real* values, [[maybe_unused]] Real* words, std::int64_t width) const {
    if constexpr (std::is_same_v<Real, float>)
      if (way_ == PanelWay::kPairs) return pair_row(values, words, width);
    if (round_) round_in_place(values, width);
  }

  void guard_inputs(std::int64_t begin, std::int64_t end) {
    const std::int64_t features = input_width_ - 1;
    for (std::int64_t f = begin; f < end; ++f) {
      Real* input = row_of(layers_[0].input, f);
      std::int32_t hits = guard_row(data<Real>(features_) + f * features, input, features);
      hits += guard_row(data<Real>(energy_) + f, input + features, 1);
      finish_operand(input, row_of(layers_[0].input_words, f), input_width_);
      for (std::size_t l = 0; l < layers_.size(); ++l) {
        Real *guarded = of_layer(guarded_hidden_, l) + f * width_, *operand = row_of(layers_[l].hidden, f);
        hits += guard_row(of_layer(hidden_, l) + f * width_, guarded, width_);
        if (operand != guarded) std::copy_n(guarded, width_, operand);
        finish_operand(operand, row_of(layers_[l].hidden_words, f), width_);
      }
      data<std::int32_t>(guard_hits_)[f] = hits;
    }
  }

  void forward_layer(std::size_t l, std::int64_t begin, std::int64_t end) {
    const Layer& layer = layers_[l];
    alignas(64) Real sums[kFlowsAtOnce * kTileRow];
    const std::int64_t rows = end - begin, at = begin * width_;
    const PackedProduct<Real> of_hidden = product(layer.hidden_words, layer.hidden_panels, width_, begin, sums);
    const PackedProduct<Real> of_input =
        product(layer.input_words, layer.input_panels, layer.input.size(1), begin, sums + kPanelLanes);
    for (std::int64_t c = 0; c < width_; c += kPanelLanes) {
      std::fill_n(sums, rows * kTileRow, Real(0));
      multiply_packed_panel(of_hidden, rows, c * kPanelVectors, of_hidden.out);
      multiply_packed_panel(of_input, rows, c * kPanelVectors, of_input.out);
      GateTile<Real> tile{.rows = rows,
                          .width = width_,
                          .sums = sums,
                          .bias = data<Real>(layer.biases) + c,
                          .hidden = of_layer(guarded_hidden_, l) + at + c,
                          .next = of_layer(next_hidden_, l) + at + c,
                          .operand = data<Real>(layer.next_operand) + at + c};
      const std::int64_t channels = std::min<std::int64_t>(kPanelLanes, width_ - c);
      if (!setting_.backward()) {
        gate_tile(tile, channels);
        continue;
      }
      tile.kept = data<Real>(layer.kept) + kBlocks * at + c;
      gate_tile_kept(tile, channels);
    }
    if (l + 1 == layers_.size()) return;
    for (std::int64_t f = begin; f < end; ++f)
      finish_operand(row_of(layer.next_operand, f), row_of(layers_[l + 1].input_words, f), width_);
  }

  // Added to a tile of sums.
  PackedProduct<Real> product(const at::Tensor& words, const at::Tensor& panels, std::int64_t inner, std::int64_t row,
                              Real* sums) const {
    return {.way = way_,
            .inner = inner,
            .columns = (width_ + kPanelLanes - 1) / kPanelLanes * kPanelColumns,
            .x = row_of(words, row),
            .x_row = words.size(1),
            .panels = data<Real>(panels),
            .out = sums,
            .out_row = kTileRow,
            .add = true};
  }

  // ---- backward ----------------------------------------------------------------------------------------------------

  void prepare_backward(const NamedTensors& inputs) {
    grad_output_ = inputs["grad_output"].contiguous();
    grad_next_hidden_ = inputs["grad_next_hidden"].contiguous();
    grad_input_ = matrix(input_width_);
    grad_above_ = matrix(width_);
    for (Layer& layer : layers_) layer.kept = matrix(kBlocks * width_);
    if (round_) rounded_ = matrix(2 * panel_words(way_, 3 * width_));
    write_gradients_to(zero_results(setting_));
  }

  void write_gradients_to(NamedTensors gradients) {
    grad_hidden_ = gradients["grad_hidden"];
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      const std::string number = std::to_string(l);
      Layer& layer = layers_[l];
      layer.grad_weight_input = gradients["grad_weight_input_" + number];
      layer.grad_weight_hidden = gradients["grad_weight_hidden_" + number];
      layer.grad_bias_input = gradients["grad_bias_input_" + number];
      layer.grad_bias_hidden = gradients["grad_bias_hidden_" + number];
    }
    gradients_ = std::move(gradients);
  }

  // Gradients of the sums, of the hidden state and of the layer below's output.
  void backward_layer(std::size_t l, std::int64_t begin, std::int64_t end) {
    const Layer& layer = layers_[l];
    const bool top = l + 1 == layers_.size();
    Real *kept = data<Real>(layer.kept), *grad_hidden = of_layer(grad_hidden_, l);
    const Real *hidden = of_layer(guarded_hidden_, l), *stored = of_layer(grad_next_hidden_, l);
    const Real* above = data<Real>(top ? grad_output_ : grad_above_);
    const std::int64_t width = width_;
    for (std::int64_t at = begin * width; at < end * width; at += width) {
      Real* row = kept + kBlocks * at;
      gate_row_backward(row, row + width, row + 2 * width, row + 3 * width, hidden + at, stored + at, above + at,
                        grad_hidden + at, width, top);
    }
    const at::Tensor& below = l > 0 ? grad_above_ : grad_input_;
    const Real *of_hidden = kept + begin * kBlocks * width, *of_input = of_hidden + width;
    std::int64_t x_row = kBlocks * width;
    if (round_) {
      x_row = rounded_.size(1);
      for (std::int64_t f = begin; f < end; ++f) round_sums(kept + f * kBlocks * width, row_of(rounded_, f));
      of_hidden = row_of(rounded_, begin);
      of_input = of_hidden + x_row / 2;
    }
    const auto multiply = [&](const Real* x, const at::Tensor& panels, Real* out, std::int64_t columns, bool add) {
      multiply_packed(PackedProduct<Real>{.way = way_,
                                          .inner = 3 * width,
                                          .columns = columns,
                                          .x = x,
                                          .x_row = x_row,
                                          .panels = data<Real>(panels),
                                          .out = out,
                                          .out_row = columns,
                                          .add = add},
                      end - begin);
    };
    multiply(of_hidden, layer.grad_hidden_panels, grad_hidden + begin * width, width, true);
    multiply(of_input, layer.grad_input_panels, row_of(below, begin), below.size(1), false);
  }

  // Blocks 0-2 and 1-3 of a row as operands.
  void round_sums(const Real* sums, Real* rounded) const {
    Real* second = rounded + rounded_.size(1) / 2;
    if constexpr (std::is_same_v<Real, float>) {
      if (way_ == PanelWay::kPairs) {
        pair_row(sums, rounded, 3 * width_);
        return pair_row(sums + width_, second, 3 * width_);
      }
    }
    round_row(sums, rounded, 3 * width_);
    round_row(sums + width_, second, 3 * width_);
  }

  // Rows [begin, end) of 3 * hidden, in the parameters' order: reset, update, candidate.
  void weight_gradients(const Layer& layer, std::int64_t begin, std::int64_t end) const {
    const std::int64_t gates = std::clamp(2 * width_, begin, end), size = end - begin;
    const Real* sums = data<Real>(layer.kept);
    Real *of_input = data<Real>(layer.grad_bias_input), *of_hidden = data<Real>(layer.grad_bias_hidden);
    std::fill_n(of_input + begin, size, Real(0));
    std::fill_n(of_hidden + begin, size, Real(0));
    for (std::int64_t f = 0; f < flows_; ++f) {
      const Real* row = sums + f * kBlocks * width_;
      add_row(row + width_ + begin, of_input + begin, size);
      add_row(row + gates - 2 * width_, of_hidden + gates, end - gates);
    }
    std::copy(of_input + begin, of_input + gates, of_hidden + begin);
    weight_gradient(sums + width_ + begin, layer.input, layer.grad_weight_input, begin, size);
    weight_gradient(sums + width_ + begin, layer.hidden, layer.grad_weight_hidden, begin, gates - begin);
    weight_gradient(sums + gates - 2 * width_, layer.hidden, layer.grad_weight_hidden, gates, end - gates);
  }

  // `size` rows of a weight's gradient, from `row` on, whose sums lie in columns from `sums` on.
  void weight_gradient(const Real* sums, const at::Tensor& operand, const at::Tensor& gradient, std::int64_t row,
                       std::int64_t size) const {
    const std::int64_t columns = operand.size(1);
    multiply_panels(PanelProduct<Real>{.inner = flows_,
                                       .columns = columns,
                                       .x = sums,
                                       .x_row = 1,
                                       .x_inner = kBlocks * width_,
                                       .w = data<Real>(operand),
                                       .w_inner = columns,
                                       .out = row_of(gradient, row),
                                       .out_row = columns,
                                       .bf16 = round_},
                    0, size);
  }

  void mask_inputs(std::int64_t begin, std::int64_t end) {
    const std::int64_t features = input_width_ - 1;
    Real *grad_features = data<Real>(gradients_["grad_features"]), *grad_energy = data<Real>(gradients_["grad_energy"]);
    for (std::int64_t f = begin; f < end; ++f) {
      const Real* gradient = row_of(grad_input_, f);
      std::copy_n(gradient, features, grad_features + f * features);
      grad_energy[f] = gradient[features];
    }
    mask_row(data<Real>(features_) + begin * features, grad_features + begin * features, (end - begin) * features);
    mask_row(data<Real>(energy_) + begin, grad_energy + begin, end - begin);
    for (std::size_t l = 0; l < layers_.size(); ++l)
      mask_row(of_layer(hidden_, l) + begin * width_, of_layer(grad_hidden_, l) + begin * width_,
               (end - begin) * width_);
  }

  const Setting setting_;
  const bool round_;
  const PanelWay way_;
  const std::int64_t flows_, width_, input_width_;
  at::Tensor features_, energy_, hidden_;  // as given
  NamedTensors forward_results_, gradients_;
  at::Tensor guarded_hidden_, hidden_operand_;  // [layers, flows, hidden]
  at::Tensor next_hidden_, guard_hits_;
  std::vector<Layer> layers_;
  at::Tensor grad_output_, grad_next_hidden_, grad_hidden_, grad_input_, grad_above_;
  at::Tensor rounded_;  // [flows, twice the words of 3*hidden]: a layer's gradients of sums as operands, in bf16 mode
};

}  // namespace

std::unique_ptr<Runnable> make_cpu(const NamedTensors& inputs, const Setting& setting) {
  if (setting.dtype == Dtype::kFp64) return std::make_unique<CpuCarrier<double>>(inputs, setting);
  return std::make_unique<CpuCarrier<float>>(inputs, setting);
}

}  // namespace twinbench::energy_flow::energy_carrier
