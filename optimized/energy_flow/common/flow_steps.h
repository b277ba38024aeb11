// What the CUDA paths of the whole flow's passes share: storage of flows, the rules of their lives, the networks'
// weights as the products' tiles take them, and the loop that issues steps until the device has finished.
#pragma once

#include <ATen/ATen.h>

#include <string>
#include <vector>

#include "kernels/energy_flow/common/flow_arguments.h"
#include "optimized/common/runtime.h"
#include "optimized/common/tensors.h"
#include "optimized/energy_flow/common/flow_packs.h"
#include "optimized/energy_flow/common/rules.h"
#include "optimized/energy_flow/common/stop_flag.h"
#include "src/common/error.h"
#include "src/stored_states.h"

namespace twinbench::energy_flow::flow_forward {
inline namespace TWINBENCH_FORM {

class FlowSteps {
 protected:
  // steps: of how many steps rows are kept at once. back: they are walked back too.
  FlowSteps(const NamedTensors& inputs, const Setting& setting, const Rules& rules, std::int64_t steps,
            bool back = false)
      : rules_(rules),
        inputs_(inputs),
        options_(at::TensorOptions(setting.device).dtype(at::kFloat)),
        packs_(inputs, setting, back) {
    a_.slots = {.samples = setting.size("samples"), .each = rules_.most_flows()};
    if (a_.slots.all() > INT32_MAX)
      throw Error(
          ErrorKind::kOutOfRange, "quota", std::to_string(rules_.quota),
          "give at most " + std::to_string(INT32_MAX / a_.slots.samples) + " flows a sample to so many samples");
    a_.sample_key = given<std::int64_t>(inputs_, "sample_key");
    a_.placed = rules_.placed();
    a_.width = rules_.width;
    a_.height = rules_.height;
    a_.start_depth = rules_.start_depth;
    a_.stop = rules_.stop;
    a_.movement = rules_.movement;
    a_.heads.rule = heads_rule_of(setting);
    a_.all_finished = flag_.where();
    prepare_flows(steps);
    prepare_networks(setting);
  }
  ~FlowSteps() = default;

  // Places the flows and issues at most so many steps, fewer where the device has finished before. go_to(t) says where
  // the rows of step t are, before they are listed; step(t) issues the step itself. Returns how many were issued.
  template <typename GoTo, typename Step>
  std::int32_t issue(std::int64_t most, const GoTo& go_to, const Step& step) {
    place();
    for (std::int32_t t = 0;; ++t) {
      go_to(t);
      look(t);
      if (t == most || (polls_before(t) && flag_.raised())) return t;
      step(t);
    }
  }

  // The same with steps that were recorded: start(t) starts step t and the look before the next one. a_.clock is set.
  template <typename Start>
  std::int32_t start_steps(std::int64_t most, const Start& start) {
    a_.step = 0;
    place();
    look(0);
    std::int32_t t = 0;
    for (; t < most && !(polls_before(t) && flag_.raised()); ++t) start(t);
    return t;
  }

  // Parts of issue(): a pass begins, and its step t does.
  void place() {
    a_.pass = flag_.next_pass();
    launch_place(a_, stream());
  }
  void look(std::int32_t t) {
    a_.step = t;
    launch_look(a_, stream());
    launch_list(a_, stream());
  }

  const float* floats(const std::string& name) { return given<float>(inputs_, name); }
  at::Tensor made(at::IntArrayRef shape, at::ScalarType type = at::kFloat) {
    kept_.push_back(at::zeros(shape, options_.dtype(type)));
    return kept_.back();
  }
  // For what is written before it is read: memory that no step comes to is never touched.
  float* room(at::IntArrayRef shape) {
    kept_.push_back(at::empty(shape, options_));
    return data<float>(kept_.back());
  }
  float* new_floats(at::IntArrayRef shape) { return data<float>(made(shape)); }
  std::int32_t* new_integers(std::int64_t count) { return data<std::int32_t>(made({count}, at::kInt)); }
  static const float* floats_of(const at::Tensor& tensor) { return tensor.const_data_ptr<float>(); }

  const Rules rules_;
  NamedTensors inputs_;  // kept alive: the arguments point into them
  const at::TensorOptions options_;
  std::vector<at::Tensor> kept_;  // likewise
  const FlowPacks packs_;
  Arguments a_;
  std::vector<TileArguments> layers_;  // input and state are each step's own
  TileArguments heads_;

 private:
  StopFlag flag_;

  void prepare_flows(std::int64_t steps) {
    const std::int64_t slots = a_.slots.all(), samples = a_.slots.samples;
    SlotFields& flows = a_.flows;
    for (float** field : {&flows.x, &flows.y, &flows.z, &flows.energy, &flows.distance}) *field = new_floats({slots});
    flows.age = new_integers(slots);
    flows.status = made({slots}, at::kByte).mutable_data_ptr<std::uint8_t>();
    RowResults& results = a_.results;
    for (float** field : {&results.x, &results.y, &results.z, &results.child_energy, &results.margin})
      *field = new_floats({slots});
    for (std::int32_t** field : {&results.outcome, &a_.next.slot, &a_.next.source}) *field = new_integers(slots);
    for (std::int32_t** field : {&results.requests, &a_.rows.slot, &a_.rows.source})
      *field = new_integers(steps * slots);
    for (std::int32_t** field : {&a_.begin, &a_.live, &a_.next_live, &a_.ending, &a_.states.best, &a_.states.stall,
                                 &a_.states.steps, &a_.states.reason})
      *field = new_integers(samples);
    a_.total = new_integers(steps + 1);
  }

  void prepare_networks(const Setting& setting) {
    const std::int64_t slots = a_.slots.all(), layers = setting.size("layers"), hidden = setting.size("hidden");
    const auto features = static_cast<std::int32_t>(setting.size("features"));
    const auto stride = static_cast<std::int32_t>(padded_width(static_cast<std::int32_t>(hidden)));
    a_.round = a_.heads.round = rounds_operands(setting);
    a_.neuron = {static_cast<int>(setting.size("neuron_width")), features};
    a_.neuron_weights = floats_of(packs_.neuron);
    a_.input_stride = static_cast<std::int32_t>(padded_width(features + 1));
    a_.input = new_floats({slots, a_.input_stride});
    for (std::int64_t l = 0; l < layers; ++l) {
      const TilePack& pack = packs_.layers[static_cast<std::size_t>(l)];
      layers_.push_back({.total = a_.total,
                         .rows = slots,
                         .input_stride = l == 0 ? a_.input_stride : stride,
                         .stride = stride,
                         .source = a_.rows.source,
                         .weights = floats_of(pack.weights),
                         .biases = floats_of(pack.biases),
                         .stores = keeps_bf16(setting),
                         .tf32 = setting.dtype == Dtype::kTf32});
    }
    heads_ = {.total = a_.total,
              .rows = slots,
              .stride = stride,
              .weights = floats_of(packs_.first),
              .out = new_floats({slots, packs_.columns.all}),
              .columns = packs_.columns.all,
              .round = a_.round,
              .tf32 = setting.dtype == Dtype::kTf32};
    a_.heads.columns = packs_.columns;
    a_.heads.sums = heads_.out;
    a_.heads.bias = floats_of(packs_.first_bias);
    a_.heads.energy_out_weight = floats_of(packs_.energy_out);
    a_.heads.displacement_out_weight = floats_of(packs_.displacement_out);
    a_.heads.gate_out_weight = floats_of(packs_.gate_out);
    a_.heads.out_bias = floats_of(packs_.out_bias);
  }
};

}  // namespace TWINBENCH_FORM
}  // namespace twinbench::energy_flow::flow_forward
