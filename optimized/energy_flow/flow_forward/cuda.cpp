// energy_flow.flow_forward, optimized on CUDA: 7 kernels, and 6 + layers a step that is issued; no product of the
// library, nothing read back, nothing allocated. Every eighth step the host looks at a flag without waiting. A flow's
// state is written to the row that the next step reads: live flows lie together after every step, so that there is
// nothing for memory_cleanup_interval to save, and a child reads its parent's row.
#include <ATen/ATen.h>

#include <vector>

#include "kernels/energy_flow/flow_forward/arguments.h"
#include "optimized/common/cuda.h"
#include "optimized/energy_flow/common/parameters.h"
#include "optimized/energy_flow/common/rules.h"
#include "optimized/energy_flow/common/stop_flag.h"
#include "optimized/energy_flow/flow_forward/tile_packs.h"

namespace twinbench::energy_flow::flow_forward {
namespace {

class CudaForward final : public Runnable {
 public:
  CudaForward(const NamedTensors& inputs, const Setting& setting)
      : rules_(setting), inputs_(inputs), results_(empty_results(setting)) {
    a_.slots = {.samples = setting.size("samples"), .each = rules_.most_flows()};
    if (a_.slots.all() > INT32_MAX)
      throw Error(
          ErrorKind::kOutOfRange, "quota", std::to_string(rules_.quota),
          "give at most " + std::to_string(INT32_MAX / a_.slots.samples) + " flows a sample to so many samples");
    prepare_mapper(setting);
    prepare_flows();
    prepare_networks(setting);
    a_.surface = data<float>(results_["surface"]);
    a_.margin = data<float>(results_["margin"]);
    a_.stats = data<std::int32_t>(results_["stats"]);
    a_.active = data<std::int32_t>(results_["active"]);
    a_.all_finished = flag_.where();
  }

  void run() override {
    if (a_.slots.samples == 0) return;
    for (std::size_t i = 0; i < 2; ++i) launch_mapper_layer(mapper_[i], stream());
    launch_mapper_surface(mapper_[2], stream());
    a_.pass = flag_.next_pass();
    launch_place(a_, stream());
    look(0);
    for (std::int32_t t = 0; t < a_.stop.max_steps; ++t) {
      if (polls_before(t) && flag_.raised()) break;
      step(t);
      look(t + 1);
    }
    launch_collect(a_, stream());
  }

  NamedTensors outputs() override { return results_; }

 private:
  void look(std::int32_t t) {
    a_.step = t;
    launch_look(a_, stream());
    launch_list(a_, stream());
  }

  void step(std::int32_t t) {
    launch_neuron(a_, stream());
    const float* const before = data<float>(states_[t % 2]);
    float* const after = data<float>(states_[(t + 1) % 2]);
    const std::int64_t of_layer = a_.slots.all() * heads_.stride;
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      TileArguments& layer = layers_[l];
      const std::int64_t from = static_cast<std::int64_t>(l) * of_layer;
      layer.input = l == 0 ? a_.input : after + from - of_layer;
      layer.state = before + from;
      layer.out = after + from;
      launch_recurrent(layer, stream());
    }
    heads_.state = layers_.back().out;
    launch_head_products(heads_, stream());
    launch_finish(a_, stream());
    launch_settle(a_, stream());
  }

  const float* floats(const std::string& name) { return given<float>(inputs_, name); }
  at::Tensor made(at::IntArrayRef shape, at::ScalarType type = at::kFloat) {
    kept_.push_back(at::zeros(shape, results_["surface"].options().dtype(type)));
    return kept_.back();
  }
  float* new_floats(at::IntArrayRef shape) { return data<float>(made(shape)); }
  std::int32_t* new_integers(std::int64_t count) { return data<std::int32_t>(made({count}, at::kInt)); }

  void prepare_mapper(const Setting& setting) {
    const std::int64_t rows = a_.slots.samples;
    for (std::size_t i = 0; i < 3; ++i) {
      const std::string number = std::to_string(i + 1), before = std::to_string(i);
      const at::Tensor& weight = inputs_["mapper_weight_" + number];
      output_collector::LayerArguments& layer = mapper_[i];
      layer = {.rows = rows,
               .inner = weight.size(1),
               .columns = weight.size(0),
               .x = i == 0 ? floats("embedding") : mapper_[i - 1].out,
               .weight = floats("mapper_weight_" + number),
               .bias = floats("mapper_bias_" + number)};
      if (i > 0) {
        layer.gain = floats("mapper_gain_" + before);
        layer.shift = floats("mapper_shift_" + before);
        layer.moments = mapper_[i - 1].out_moments;
      }
      layer.out = new_floats({rows, layer.columns});
      if (i < 2) layer.out_moments = new_floats({2, rows, output_collector::pieces_of(layer.columns)});
    }
    mapper_[2].scale = floats("mapper_scale");
    mapper_[2].offset = floats("mapper_offset");
    mapper_[2].cell_offset = floats("mapper_cell_offset");
    a_.energies = mapper_[2].out;
    a_.sample_key = given<std::int64_t>(inputs_, "sample_key");
    a_.placed = rules_.placed();
    a_.width = rules_.width;
    a_.height = rules_.height;
    a_.start_depth = rules_.start_depth;
    a_.stop = rules_.stop;
    a_.movement = rules_.movement;
    a_.heads.rule = heads_rule_of(setting);
  }

  void prepare_flows() {
    const std::int64_t slots = a_.slots.all(), samples = a_.slots.samples;
    SlotFields& flows = a_.flows;
    for (float** field : {&flows.x, &flows.y, &flows.z, &flows.energy, &flows.distance}) *field = new_floats({slots});
    flows.age = new_integers(slots);
    flows.status = made({slots}, at::kByte).mutable_data_ptr<std::uint8_t>();
    RowResults& results = a_.results;
    for (float** field : {&results.x, &results.y, &results.z, &results.child_energy, &results.margin})
      *field = new_floats({slots});
    for (std::int32_t** field :
         {&results.outcome, &results.requests, &a_.rows.slot, &a_.rows.source, &a_.next.slot, &a_.next.source})
      *field = new_integers(slots);
    for (std::int32_t** field : {&a_.begin, &a_.live, &a_.next_live, &a_.ending, &a_.states.best, &a_.states.stall,
                                 &a_.states.steps, &a_.states.reason})
      *field = new_integers(samples);
    a_.total = new_integers(1);
  }

  void prepare_networks(const Setting& setting) {
    const std::int64_t slots = a_.slots.all(), layers = setting.size("layers"), hidden = setting.size("hidden");
    const auto features = static_cast<std::int32_t>(setting.size("features"));
    const auto stride = static_cast<std::int32_t>(padded_width(static_cast<std::int32_t>(hidden)));
    a_.neuron = {static_cast<int>(setting.size("neuron_width")), features};
    a_.neuron_weights = kept(packed_neuron(inputs_));
    a_.input_stride = static_cast<std::int32_t>(padded_width(features + 1));
    a_.input = new_floats({slots, a_.input_stride});
    for (at::Tensor& state : states_) state = made({layers, slots, stride});
    for (std::int64_t l = 0; l < layers; ++l) {
      const TilePack pack = recurrent_pack(inputs_, l, hidden);
      layers_.push_back({.total = a_.total,
                         .rows = slots,
                         .input_stride = l == 0 ? a_.input_stride : stride,
                         .stride = stride,
                         .source = a_.rows.source,
                         .weights = kept(pack.weights),
                         .biases = kept(pack.biases)});
    }
    constexpr std::int64_t kAlignment = 8;  // columns: rows of whole sectors of 32 bytes
    const FirstLayers first = first_layers(inputs_, setting.option("spawn") == 2, kAlignment);
    heads_ = {.total = a_.total,
              .rows = slots,
              .stride = stride,
              .weights = kept(in_tiles(first.weight, 1, kTileColumns).contiguous()),
              .out = new_floats({slots, first.columns.all}),
              .columns = first.columns.all};
    a_.heads.columns = first.columns;
    a_.heads.sums = heads_.out;
    a_.heads.bias = kept(first.bias);
    // Copies, so that they start where vectors may.
    a_.heads.energy_out_weight = kept(inputs_["energy_out_weight"].clone(at::MemoryFormat::Contiguous));
    a_.heads.displacement_out_weight = kept(inputs_["displacement_out_weight"].clone(at::MemoryFormat::Contiguous));
    a_.heads.gate_out_weight = kept(inputs_["gate_out_weight"].clone(at::MemoryFormat::Contiguous));
    a_.heads.out_bias = kept(second_biases(inputs_));
  }
  const float* kept(const at::Tensor& tensor) {
    kept_.push_back(tensor);
    return tensor.const_data_ptr<float>();
  }

  const Rules rules_;
  NamedTensors inputs_;  // kept alive: the arguments point into them
  NamedTensors results_;
  std::vector<at::Tensor> kept_;  // likewise
  StopFlag flag_;
  Arguments a_;
  output_collector::LayerArguments mapper_[3];
  at::Tensor states_[2];  // [layers, slots, stride]: before a step, after it
  std::vector<TileArguments> layers_;
  TileArguments heads_;
};

}  // namespace

std::unique_ptr<Runnable> make_cuda(const NamedTensors& inputs, const Setting& setting) {
  return make_on_device<CudaForward>(inputs, setting);
}

}  // namespace twinbench::energy_flow::flow_forward
