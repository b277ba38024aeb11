// The forward half of a pass of flows on CUDA (C16), whose steps leave each flow's state and what was decided of it on
// a tape where there is a way back. The tape has room for every step that there can be, of which memory that no step
// comes to is never touched.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>

#include "kernels/energy_flow/common/flow_back_arguments.h"
#include "optimized/energy_flow/common/flow_places.h"
#include "optimized/energy_flow/common/flow_steps.h"
#include "src/energy_flow/common/flow_lives.h"

namespace twinbench::energy_flow::flow_backward {

using namespace flow_forward;  // the flows are those of the forward pass

// Steps that there can be: without children no flow lives beyond its projection.
inline std::int64_t most_steps(const Setting& s) {
  const std::int64_t age = s.option("spawn") == 0 ? static_cast<std::int64_t>(s.option("projection_age")) : 0;
  return age > 0 ? std::min(age, s.size("max_steps")) : s.size("max_steps");
}

class TapedSteps : protected FlowSteps {
 protected:
  TapedSteps(const NamedTensors& inputs, const Setting& setting, const FlowPlaces& places)
      : FlowSteps(inputs, setting, Rules(setting, /*cleanup=*/0),
                  places.grad_surface.defined() ? std::max<std::int64_t>(most_steps(setting), 1) : 1,
                  places.grad_surface.defined()),
        setting_(setting),
        places_(places),
        taped_(places.grad_surface.defined()),
        keeps_(taped_ && setting.on("keep_everything")),
        steps_(most_steps(setting)),
        slots_(a_.slots.all()),
        layer_count_(setting.size("layers")),
        totals_(a_.total),
        rows_(a_.rows),
        requests_(a_.results.requests) {
    const std::int64_t samples = a_.slots.samples, kept_steps = taped_ ? std::max<std::int64_t>(steps_, 1) : 2;
    a_.energies = data<float>(places_.initial_energy);
    a_.sample_key = places_.sample_key.const_data_ptr<std::int64_t>();
    a_.stats = places_.stats.defined() ? data<std::int32_t>(places_.stats) : new_integers(samples * kStatistics);
    a_.active = new_integers(samples * setting.size("max_steps"));
    // In modes that set decisions aside nobody is told of the margins that the kernels note.
    const bool tells = places_.margin.defined() && !sets_decisions_aside(setting);
    a_.margin = tells ? data<float>(places_.margin) : new_floats({samples});
    if (places_.margin.defined() && !tells) places_.margin.fill_(1);
    if (places_.surface.defined()) a_.surface = data<float>(places_.surface);
    states_ = room({kept_steps, layer_count_, slots_, heads_.stride});
    if (!taped_) return;
    fields_ = room({kept_steps, kFields, slots_});
    births_ = new_integers(kept_steps * kBirths * slots_);
    gates_ = room({keeps_ ? kept_steps * layer_count_ : 1, slots_, 4, heads_.stride});
    if (!keeps_) return;
    inputs_of_steps_ = new_floats({kept_steps, slots_, a_.input_stride});  // zeros in the padding
    sums_of_steps_ = room({kept_steps, slots_, heads_.columns});
  }
  ~TapedSteps() = default;

  // Where step t's rows are.
  void go_to(std::int32_t t) {
    const std::int64_t region = taped_ ? t : 0;
    a_.step = t;
    a_.total = totals_ + region;
    a_.rows.slot = rows_.slot + region * slots_;
    a_.rows.source = rows_.source + region * slots_;
    a_.results.requests = requests_ + region * slots_;
    for (TileArguments& layer : layers_) layer.total = a_.total, layer.source = a_.rows.source;
    heads_.total = a_.total;
    if (!keeps_) return;
    a_.input = inputs_of_steps_ + region * slots_ * a_.input_stride;
    a_.heads.sums = heads_.out = sums_of_steps_ + region * slots_ * heads_.columns;
  }

  // After step t. Without a tape two steps' states take turns.
  float* state(std::int32_t t, std::int64_t layer) const {
    const std::int64_t region = taped_ ? std::max(t, 0) : (t + 2) % 2;
    return states_ + (region * layer_count_ + layer) * slots_ * heads_.stride;
  }
  float* gates(std::int32_t t, std::int64_t layer) const {
    return gates_ + (keeps_ ? t * layer_count_ + layer : 0) * slots_ * 4 * heads_.stride;
  }

  // Layer l's arguments at step t, from the state before it, of which rows that have none read nothing.
  const TileArguments& layer_at(std::int32_t t, std::int64_t l) {
    TileArguments& layer = layers_[static_cast<std::size_t>(l)];
    layer.input = l == 0 ? a_.input : state(t, l - 1);
    layer.state = state(t - 1, l);
    layer.out = state(t, l);
    return layer;
  }

  void step(std::int32_t t, kernels::Stream on) {
    launch_neuron(a_, on);
    for (std::int64_t l = 0; l < layer_count_; ++l) {
      const TileArguments& layer = layer_at(t, l);
      if (keeps_)
        launch_gates({.tile = layer, .gates = gates(t, l)}, on);
      else
        launch_recurrent(layer, on);
    }
    heads_.state = state(t, layer_count_ - 1);
    launch_head_products(heads_, on);
    if (!taped_) {
      launch_finish(a_, on);
      return launch_settle(a_, on);
    }
    const TapedArguments taped{.forward = a_, .tape = tape(t)};
    launch_finish_taped(taped, on);
    launch_settle_taped(taped, on);
  }

  static constexpr std::int64_t kFields = 11, kBirths = 2;  // floats and integers of a row; slot, source, requests

  StepRows tape(std::int32_t t) const {
    float* const fields = fields_ + t * kFields * slots_;
    std::int32_t* const births = births_ + t * kBirths * slots_;
    return {.total = totals_ + t,
            .slot = rows_.slot + t * slots_,
            .source = rows_.source + t * slots_,
            .x = fields,
            .y = fields + slots_,
            .z = fields + 2 * slots_,
            .energy = fields + 3 * slots_,
            .second_sums = fields + 4 * slots_,
            .slope_x = fields + 9 * slots_,
            .slope_y = fields + 10 * slots_,
            .requests = requests_ + t * slots_,
            .first_child = births,
            .children = births + slots_};
  }

  std::int64_t bytes_of_row() const {
    const std::int64_t states = layer_count_ * heads_.stride;
    return 4 * (kFields + kBirths + 3 + states + (keeps_ ? a_.input_stride + heads_.columns + 4 * states : 0));
  }

  const Setting setting_;
  const FlowPlaces places_;
  const bool taped_, keeps_;
  const std::int64_t steps_, slots_, layer_count_;
  std::int32_t* const totals_;                                   // [steps + 1]
  const FlowRows rows_;                                          // of the first step, then of the others
  std::int32_t* const requests_;                                 // likewise
  float* states_ = nullptr;                                      // [steps, layers, slots, stride]
  float* fields_ = nullptr;                                      // [steps, kFields, slots]
  std::int32_t* births_ = nullptr;                               // [steps, kBirths, slots]
  float* gates_ = nullptr;                                       // of one layer of one step, or of all
  float *inputs_of_steps_ = nullptr, *sums_of_steps_ = nullptr;  // where everything is kept
};

}  // namespace twinbench::energy_flow::flow_backward
