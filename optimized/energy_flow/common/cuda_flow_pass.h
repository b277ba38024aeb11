// A pass of flows on CUDA in two halves (C16, C17): the steps there, and the same steps backwards, as many as were
// issued. Of a step the tape has a row a live flow; what the networks had computed on the way is computed again, or
// read where everything was kept. Nothing is read back and nothing allocated. Gradients of parameters are added step
// by step in a fixed order, in pieces that are summed at the end. 9 kernels, and 12 + 5 layers a step that is issued,
// or 11 + 4 layers where everything is kept, and one more of these where states are stored in bf16; one more where the
// surface is collected before the way back.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "optimized/common/captured.h"
#include "optimized/common/choose.h"
#include "optimized/common/cuda.h"
#include "optimized/energy_flow/common/captured_steps.h"
#include "optimized/energy_flow/common/pack_sources.h"
#include "optimized/energy_flow/common/taped_steps.h"

namespace twinbench::energy_flow::flow_backward {
inline namespace TWINBENCH_FORM {

class CudaFlowPass : private TapedSteps {
 public:
  // inputs: the networks' parameters, and sample_key, by name. On the device, of which the caller has the guard.
  CudaFlowPass(const NamedTensors& inputs, const Setting& setting, const FlowPlaces& places)
      : TapedSteps(inputs, setting, places), samples_(a_.slots.samples) {
    if (taped_) prepare_backward();
    if (setting.option("captured_steps") > 0 && slots_ > 0 && steps_ > 0) capture();
  }

  // The first `rows` samples. Steps that were recorded are those of all samples.
  void forward(std::int64_t rows) {
    a_.slots.samples = rows;
    if (rows == 0) return;
    by_graphs_ = starts_graphs_ && rows == samples_;
    if (by_graphs_) go_to(0);
    issued_ = by_graphs_
                  ? start_steps(steps_, [&](std::int32_t t) { graphs_[place_of(t)](stream()); })
                  : issue(
                        steps_, [this](std::int32_t t) { go_to(t); }, [this](std::int32_t t) { step(t, stream()); });
    if (places_.surface.defined()) launch_collect(a_, stream());
  }

  // From grad_surface as it lies then, of the samples of the forward half.
  void backward() {
    if (a_.slots.samples == 0) return;
    launch_clear({.all = adjoints_.x, .count = adjoint_floats_}, stream());
    launch_uncollect(
        {.forward = a_, .grad_surface = data<float>(places_.grad_surface), .grad_energy = adjoints_.energy}, stream());
    for (std::int32_t t = issued_; t-- > 0;) {
      const bool first = t + 1 == issued_;
      if (segment_ > 0 && !first && (t + 1) % segment_ == 0) repeat_segment(t);
      if (by_graphs_)
        back_graphs_[2 * place_of(t) + first](stream());
      else
        walk_back(t, first, stream());
    }
    launch_return({.slots = a_.slots,
                   .placed = a_.placed,
                   .cells = a_.cells(),
                   .adjoint = adjoints_.energy,
                   .grad_energy = data<float>(places_.grad_initial_energy),
                   .totals = totals_,
                   .steps = issued_,
                   .every = static_cast<std::int32_t>(segment_length()),
                   .bytes = bytes_of_row(),
                   .tape_bytes = data<std::int64_t>(places_.tape_bytes)},
                  stream());
    if (issued_ == 0) return;  // all sums are zeros, as they were made
    for (const kernels::ColumnSumArguments& sum : sums_) kernels::launch_column_sums(sum, stream());
  }

  // Sums of the parameters' gradients of the last way back.
  const at::Tensor& sums() const { return all_sums_; }
  // Parameters that are views of `arena` may change in place; the tables say what of the packs is made again then.
  std::vector<PackSource> train(const at::Tensor& arena) const {
    return pack_sources(
        packs_.all(),
        [](const NamedTensors& inputs, const Setting& setting) { return FlowPacks(inputs, setting, true).all(); },
        inputs_, setting_, arena);
  }
  // By the training step: where kernels find the scale of displacements; the attempt in the noise's key.
  void read_scale(const float* scale) { a_.heads.scale = heads_back_.scale = scale; }
  void set_attempt(std::uint32_t attempt) {
    for (carrier_heads::Rule<float>* rule : {&a_.heads.rule, &heads_back_.rule}) rule->key.attempt = attempt;
  }
  // Of the rows that come next, where their keys are not the first ones.
  void set_keys(const std::int64_t* keys) { a_.sample_key = keys; }

  // From the sums to the parameters' own layouts.
  // `from` in the place of sums(): of whatever type the results have.
  void unpack(const NamedTensors& results, const at::Tensor& from) const {
    const at::Tensor matrix_sums = from.narrow(0, 0, matrices_.stride),
                     heads_sums = from.narrow(0, heads_from_, heads_back_.layout.all()),
                     neuron_sums = from.narrow(0, neuron_from_, a_.neuron.total());
    const std::int64_t width = setting_.size("hidden"), stride = heads_.stride;
    const auto set = [&](const std::string& name, const at::Tensor& value) { results["grad_" + name].copy_(value); };
    const auto weights = [&](const MatrixArguments& of) {
      return matrix_sums.narrow(0, of.weight, of.bias - of.weight).view({of.gradients, of.width});
    };
    const auto biases = [&](const MatrixArguments& of) { return matrix_sums.narrow(0, of.bias, of.gradients); };
    unpack_neuron(neuron_sums, a_.neuron, results);
    for (std::int64_t l = 0; l < layer_count_; ++l) {
      const std::string number = "_" + std::to_string(l);
      const Layer& layer = layers_back_[static_cast<std::size_t>(l)];
      for (const auto& [kind, of] : {std::pair("input", &layer.of_input), std::pair("hidden", &layer.of_state)}) {
        const at::Tensor &weight = results["grad_weight_" + (kind + number)],
                         &bias = results["grad_bias_" + (kind + number)];
        weight.copy_(weights(*of)
                         .view({3, stride, of->width})
                         .narrow(1, 0, width)
                         .narrow(2, 0, weight.size(1))
                         .reshape(weight.sizes()));
        bias.copy_(biases(*of).view({3, stride}).narrow(1, 0, width).reshape(bias.sizes()));
      }
    }
    const ColumnLayout& heads = heads_back_.layout;
    const at::Tensor first = weights(heads_matrix_).narrow(1, 0, width),
                     bias = a_.round ? heads_sums.narrow(0, heads.first_bias(), heads.trained) : biases(heads_matrix_);
    const auto head = [&](const std::string& name, std::int64_t from, std::int64_t count) {
      set(name + "_weight", first.narrow(0, from, count));
      set(name + "_bias", bias.narrow(0, from, count));
    };
    head("energy_hidden", 0, heads.energy_width);
    head("displacement_hidden", heads.energy_width, heads.head_width);
    if (a_.heads.rule.gate) head("child", a_.heads.columns.child(), 1);
    set("energy_out_weight", heads_sums.narrow(0, 0, heads.energy_width).view({1, heads.energy_width}));
    set("displacement_out_weight",
        heads_sums.narrow(0, heads.energy_width, 3 * heads.head_width).view({3, heads.head_width}));
    set("energy_out_bias", heads_sums.narrow(0, heads.out_bias(), 1));
    set("displacement_out_bias", heads_sums.narrow(0, heads.out_bias() + 1, 3));
  }

 private:
  static std::size_t place_of(std::int32_t t) { return static_cast<std::size_t>(t); }
  void both() {
    forward(samples_);
    if (taped_) backward();
  }

  // The segment that step t ends.
  void repeat_segment(std::int32_t t) {
    a_.clock = nullptr;  // whose step is the last one
    for (std::int32_t again = t + 1 - static_cast<std::int32_t>(segment_); again <= t; ++again)
      if (by_graphs_)
        repeat_graphs_[place_of(again)](stream());
      else
        repeat(again, stream());
    if (by_graphs_) a_.clock = clock_;
  }

  // Step t's way back; first: of the pass.
  void walk_back(std::int32_t t, bool first, kernels::Stream on) {
    go_to(t);
    const StepRows rows = tape(t);
    const Steps steps{.slots = slots_, .first = first};
    heads_.state = state(t, layer_count_ - 1);
    if (!keeps_) {
      launch_neuron(replayed(rows), on);
      for (std::int64_t l = 0; stores_ && l < layer_count_; ++l)
        launch_gates({.tile = layer_at(t, l), .gates = gates(t, l)}, on);
    } else if (stores_) {
      launch_next_states({.slots = slots_,
                          .total = rows.total,
                          .source = rows.source,
                          .stride = heads_.stride,
                          .layers = static_cast<std::int32_t>(layer_count_),
                          .stored = stored(t - 1, 0),
                          .gates = gates(t, 0),
                          .next = states_},
                         on);
    }
    launch_head_products(heads_, on);
    HeadsBackArguments& heads = heads_back_;
    heads.steps = steps, heads.tape = rows, heads.sums = a_.heads.sums;
    launch_heads_back(heads, on);
    matrices_.steps = steps, matrices_.total = rows.total;
    matrices_.of[0] = heads_matrix_;
    matrices_.of[0].values = heads_.state;
    matrices_.count = 1;
    launch_matrices(matrices_, on);
    ProductArguments product = heads_product_;
    product.tile.total = rows.total;
    launch_products({.of = {product, {}}, .count = 1}, on);
    for (std::int64_t l = layer_count_; l-- > 0;) layer_back(t, l, rows, on);
    launch_neuron_back({.steps = steps,
                        .tape = rows,
                        .adjoints = adjoints_,
                        .layout = a_.neuron,
                        .round = a_.round,
                        .weights = a_.neuron_weights,
                        .grad_input = grad_input_,
                        .input_stride = a_.input_stride,
                        .partial = neuron_partial_},
                       on);
  }

  // The neuron's rows from the tape, one after the other.
  flow_forward::Arguments replayed(const StepRows& rows) const {
    flow_forward::Arguments again = a_;
    again.flows.x = rows.x, again.flows.y = rows.y, again.flows.z = rows.z, again.flows.energy = rows.energy;
    again.rows.slot = in_order_;
    return again;
  }

  void layer_back(std::int32_t t, std::int64_t l, const StepRows& rows, kernels::Stream on) {
    const Layer& own = layers_back_[static_cast<std::size_t>(l)];
    const TileArguments now = layer_at(t, l);
    if (!keeps_ && !stores_) {
      GatesArguments again{.tile = now, .gates = gates(t, l)};
      again.tile.out = nullptr;
      launch_gates(again, on);
    }
    float* const hidden = adjoints_.hidden + l * slots_ * heads_.stride;
    launch_gates_back({.slots = slots_,
                       .tape = rows,
                       .stride = heads_.stride,
                       .top = l + 1 == layer_count_,
                       .gates = gates(t, l),
                       .state = now.state,
                       .stored = now.stored,
                       .above = above_,
                       .hidden = hidden,
                       .of_input = of_input_,
                       .of_state = of_state_},
                      on);
    matrices_.of[0] = own.of_input, matrices_.of[1] = own.of_state;
    matrices_.of[0].values = now.input;
    matrices_.of[1].values = now.state, matrices_.of[1].stored = now.stored;
    matrices_.of[1].source = rows.source;
    matrices_.count = 2;
    launch_matrices(matrices_, on);
    ProductsArguments products{.of = {own.to_input, own.to_state}, .count = 2};
    products.of[0].tile.total = products.of[1].tile.total = rows.total;
    products.of[1].adjoints = hidden;
    products.of[1].before = now.state, products.of[1].stored_before = now.stored;
    products.of[1].slot = rows.slot, products.of[1].source = rows.source;
    launch_products(products, on);
  }

  // Records each step's own graphs: there, up to the look before the next one, and back, as the pass's first or not.
  void capture() {
    const DeviceGuard device(setting_.device);
    a_.clock = clock_ = new_integers(2);
    const bool demanded = setting_.option("captured_steps") == 2;
    const std::string of = "flow steps there and back of " + std::to_string(slots_) + " slots, " +
                           std::to_string(layer_count_) + " layers of " + std::to_string(setting_.size("hidden"));
    const bool recorded = record_graphs(of, demanded, [&] {
      for (std::int32_t t = 0; t < steps_; ++t) {
        graphs_.push_back(kernels::captured_graph("flow step " + std::to_string(t), [&](kernels::Stream on) {
          go_to(t);
          a_.step = 0;  // later than the clock's
          step(t, on);
          go_to(t + 1);
          a_.step = 1;
          launch_look(a_, on);
          launch_list(a_, on);
        }));
        for (const bool first : {false, true})
          if (taped_)
            back_graphs_.push_back(kernels::captured_graph("way back of flow step " + std::to_string(t),
                                                           [&](kernels::Stream on) { walk_back(t, first, on); }));
        if (segment_ == 0) continue;
        a_.clock = nullptr;
        repeat_graphs_.push_back(kernels::captured_graph("flow step " + std::to_string(t) + " once more",
                                                         [&](kernels::Stream on) { repeat(t, on); }));
        a_.clock = clock_;
      }
    });
    a_.clock = nullptr;
    if (!recorded) return;
    const auto take = [this](bool graphs) {
      starts_graphs_ = graphs;
      a_.clock = graphs ? clock_ : nullptr;
    };
    // Kernels of a step, there and back, where everything is kept.
    const double launches = 6 + static_cast<double>(layer_count_) + (taped_ ? 7 + 4.0 * layer_count_ : 0);
    const std::vector<Way> ways = {{"eager", expected_eager_seconds(launches), [&] { take(false), both(); }},
                                   {"captured", expected_captured_seconds(launches), [&] { take(true), both(); }}};
    take(demanded || choose(of, ways, kLeastCaptureGain) == 1);
  }

  // ---- preparation ------------------------------------------------------------------------------------------------

  struct Layer {  // rows, states and adjoints are each step's own
    MatrixArguments of_input, of_state;
    ProductArguments to_input, to_state;
  };

  void prepare_backward() {
    const std::int64_t stride = heads_.stride, padded = (slots_ + 3) / 4 * 4;
    kept_.push_back(at::arange(slots_, options_.dtype(at::kInt)));
    in_order_ = data<std::int32_t>(kept_.back());
    adjoint_floats_ = 4 * padded + layer_count_ * slots_ * stride;
    float* const all = room({adjoint_floats_});
    adjoints_ = {
        .x = all, .y = all + padded, .z = all + 2 * padded, .energy = all + 3 * padded, .hidden = all + 4 * padded};
    above_ = room({slots_, stride});
    of_input_ = room({slots_, 3, stride});
    of_state_ = room({slots_, 3, stride});
    grad_input_ = room({slots_, a_.input_stride});
    prepare_heads();
    prepare_layers();
    prepare_sums();
  }

  void prepare_heads() {
    const carrier_heads::Columns& columns = a_.heads.columns;
    const std::int32_t trained = columns.child() + (a_.heads.rule.gate ? 1 : 0);
    const auto gradients = static_cast<std::int32_t>(padded_width(trained));
    float* const gradient = new_floats({slots_, gradients});  // zeros in the padding
    heads_back_ = {.adjoints = adjoints_,
                   .rule = a_.heads.rule,
                   .columns = columns,
                   .bias = a_.heads.bias,
                   .energy_out_weight = a_.heads.energy_out_weight,
                   .displacement_out_weight = a_.heads.displacement_out_weight,
                   .layout = {.trained = trained,
                              .energy_width = columns.energy_width,
                              .head_width = columns.head_width,
                              .first_biases = a_.round},
                   .round = a_.round,
                   .gradient = gradient,
                   .gradient_stride = gradients};
    heads_matrix_ = {
        .gradient = gradient, .guards = true, .round = a_.round, .gradients = gradients, .width = heads_.stride};
    take(heads_matrix_);
    heads_product_.tile = product(packs_.first_back, gradient, gradients, above_, heads_.stride);
  }

  void prepare_layers() {
    const std::int32_t stride = heads_.stride, gates = 3 * stride;
    for (std::int64_t l = 0; l < layer_count_; ++l) {
      const FlowPacks::LayerBack& packs = packs_.layers_back[static_cast<std::size_t>(l)];
      const std::int32_t width = l == 0 ? a_.input_stride : stride;
      Layer layer{.of_input = {.gradient = of_input_, .gradients = gates, .width = width}};
      layer.of_state = {.gradient = of_state_, .guards = true, .gradients = gates, .width = stride};
      take(layer.of_input), take(layer.of_state);
      layer.to_input.tile = product(packs.to_input, of_input_, gates, l == 0 ? grad_input_ : above_, width);
      layer.to_state.tile = product(packs.to_state, of_state_, gates, nullptr, stride);
      layers_back_.push_back(layer);
    }
  }

  // weights: in tiles, as they are multiplied with the gradients.
  TileArguments product(const at::Tensor& weights, const float* gradient, std::int32_t inner, float* out,
                        std::int32_t columns) {
    return {.rows = slots_,
            .input = gradient,
            .input_stride = inner,
            .weights = floats_of(weights),
            .out = out,
            .columns = columns,
            .tf32 = heads_.tf32};
  }

  // Room in the rows of sums.
  void take(MatrixArguments& matrix) {
    matrix.weight = matrices_.stride;
    matrix.bias = matrix.weight + std::int64_t{matrix.gradients} * matrix.width;
    matrices_.stride = matrix.bias + matrix.gradients;
  }

  void prepare_sums() {
    const std::int32_t gates = 3 * heads_.stride;
    matrices_.tf32 = heads_.tf32;
    matrices_.pieces = matrix_pieces(slots_, 2 * matrix_tiles(gates, heads_.stride));
    matrices_.partial = room({matrices_.pieces, matrices_.stride});
    heads_back_.partial = room({column_blocks(slots_), heads_back_.layout.stride()});
    const std::int64_t blocks = simple_neuron::backward_blocks(slots_);
    neuron_partial_ = room({blocks, a_.neuron.padded()});
    const ColumnLayout& heads = heads_back_.layout;
    const std::int64_t all[] = {matrices_.stride, heads.all(), a_.neuron.total()};
    for (const std::int64_t columns : all)
      if (columns > INT32_MAX)
        throw Error(ErrorKind::kOutOfRange, "hidden", std::to_string(setting_.size("hidden")),
                    "give fewer layers or channels: at most 2^31 parameters");
    // Each part starts where vectors may.
    const auto padded = [](std::int64_t columns) { return (columns + 63) / 64 * 64; };
    heads_from_ = padded(all[0]), neuron_from_ = heads_from_ + padded(all[1]);
    all_sums_ = made({neuron_from_ + padded(all[2])});
    const auto sum = [this](std::int64_t to, const float* rows, std::int64_t count, std::int64_t columns,
                            std::int64_t stride) {
      sums_.push_back({.rows = rows,
                       .sums = data<float>(all_sums_) + to,
                       .count = count,
                       .columns = static_cast<std::int32_t>(columns),
                       .stride = static_cast<std::int32_t>(stride)});
    };
    sum(0, matrices_.partial, matrices_.pieces, all[0], matrices_.stride);
    sum(heads_from_, heads_back_.partial, column_blocks(slots_), all[1], heads.stride());
    sum(neuron_from_, neuron_partial_, blocks, all[2], a_.neuron.padded());
  }

  const std::int64_t samples_;
  std::int32_t issued_ = 0;           // steps of the forward half
  bool by_graphs_ = false;            // it was
  std::int32_t* in_order_ = nullptr;  // 0, 1, 2, ...
  Adjoints adjoints_;
  std::int64_t adjoint_floats_ = 0;
  float *above_ = nullptr, *of_input_ = nullptr, *of_state_ = nullptr, *grad_input_ = nullptr;
  HeadsBackArguments heads_back_;
  MatrixArguments heads_matrix_;
  ProductArguments heads_product_;
  std::vector<Layer> layers_back_;
  MatricesArguments matrices_;
  float* neuron_partial_ = nullptr;
  std::vector<kernels::ColumnSumArguments> sums_;
  at::Tensor all_sums_;  // of matrices, of heads, of the neuron
  std::int64_t heads_from_ = 0, neuron_from_ = 0;
  std::vector<std::function<void(kernels::Stream)>> graphs_, back_graphs_, repeat_graphs_;  // back: [steps][2]
  std::int32_t* clock_ = nullptr;
  bool starts_graphs_ = false;
};

}  // namespace TWINBENCH_FORM
}  // namespace twinbench::energy_flow::flow_backward
