// The forward half of a pass of flows on CUDA (C16), whose steps leave each flow's state and what was decided of it on
// a tape where there is a way back. The tape has room for every step that there can be, of which memory that no step
// comes to is never touched; or for the steps of one segment, and for the states that segments begin with (C31).
#pragma once

#include <ATen/ATen.h>

#include <algorithm>

#include "kernels/common/stream.h"
#include "kernels/energy_flow/common/flow_back_arguments.h"
#include "optimized/energy_flow/common/flow_places.h"
#include "optimized/energy_flow/common/flow_steps.h"
#include "optimized/energy_flow/common/segments.h"
#include "src/energy_flow/common/flow_lives.h"

namespace twinbench::energy_flow::flow_backward {
inline namespace TWINBENCH_FORM {

using namespace flow_forward;  // the flows are those of the forward pass

class TapedSteps : protected FlowSteps {
 protected:
  TapedSteps(const NamedTensors& inputs, const Setting& setting, const FlowPlaces& places)
      : FlowSteps(inputs, setting, Rules(setting, /*cleanup=*/0),
                  places.grad_surface.defined() ? std::max<std::int64_t>(most_steps(setting), 1) : 1,
                  places.grad_surface.defined()),
        setting_(setting),
        places_(places),
        taped_(places.grad_surface.defined()),
        steps_(most_steps(setting)),
        slots_(a_.slots.all()),
        layer_count_(setting.size("layers")),
        stores_(keeps_bf16(setting)),
        segment_(taped_ && slots_ > 0 ? steps_between_states(setting, [this](std::int64_t m) { return most_held(m); })
                                      : 0),
        keeps_(taped_ && (segment_ > 0 || setting.on("keep_everything"))),
        totals_(a_.total),
        rows_(a_.rows),
        requests_(a_.results.requests) {
    const std::int64_t samples = a_.slots.samples, all_steps = taped_ ? std::max<std::int64_t>(steps_, 1) : 2,
                       kept_steps = segment_ > 0 ? segment_ : all_steps;
    a_.energies = data<float>(places_.initial_energy);
    a_.sample_key = places_.sample_key.const_data_ptr<std::int64_t>();
    a_.stats = places_.stats.defined() ? data<std::int32_t>(places_.stats) : new_integers(samples * kStatistics);
    a_.active = new_integers(samples * setting.size("max_steps"));
    // In modes that set decisions aside nobody is told of the margins that the kernels note.
    const bool tells = places_.margin.defined() && !sets_decisions_aside(setting);
    a_.margin = tells ? data<float>(places_.margin) : new_floats({samples});
    if (places_.margin.defined() && !tells) places_.margin.fill_(1);
    if (places_.surface.defined()) a_.surface = data<float>(places_.surface);
    const std::int64_t regions = kept_steps + (segment_ > 0 ? segments() : 0);
    states_ = room({stores_ ? 1 : regions, layer_count_, slots_, heads_.stride});
    if (stores_) {
      kept_.push_back(at::empty({regions, layer_count_, slots_, heads_.stride}, options_.dtype(at::kBFloat16)));
      stored_ = data<std::uint16_t>(kept_.back());
    }
    if (!taped_) return;
    fields_ = room({kept_steps, kFields, slots_});
    births_ = new_integers(all_steps * kBirths * slots_);
    if (segment_ > 0) starts_ = room({segments(), 4, slots_}), ages_ = new_integers(segments() * slots_);
    gates_ = room({(keeps_ ? kept_steps : 1) * (gates_by_layer() ? layer_count_ : 1), slots_, 4, heads_.stride});
    if (segment_ > 0) asked_again_ = new_integers(slots_);
    if (!keeps_) return;
    inputs_of_steps_ = new_floats({kept_steps, slots_, a_.input_stride});  // zeros in the padding; heads' sums: again
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
    a_.input = inputs_of_steps_ + region_of(t) * slots_ * a_.input_stride;
  }
  // Where all that is kept of step t lies, one segment at a time.
  std::int64_t region_of(std::int64_t t) const { return segment_ > 0 ? t % segment_ : t; }

  // Of a layer's state after step t, as the next step reads it. Without a tape two steps' states take turns. What a
  // segment's last step leaves begins the next one, and stays.
  std::int64_t kept_at(std::int32_t t, std::int64_t layer) const {
    const bool stays = segment_ > 0 && (t + 1) % segment_ == 0;
    const std::int64_t region = !taped_           ? (t + 2) % 2
                                : stays && t >= 0 ? segment_ + t / segment_
                                                  : region_of(std::max(t, 0));
    return (region * layer_count_ + layer) * slots_ * heads_.stride;
  }
  std::uint16_t* stored(std::int32_t t, std::int64_t layer) const { return stored_ + kept_at(t, layer); }
  // As the layer above and the heads take it; where it is stored in bf16, of the step at hand alone.
  float* state(std::int32_t t, std::int64_t layer) const {
    return states_ + (stores_ ? layer * slots_ * heads_.stride : kept_at(t, layer));
  }
  // All layers' are computed again before the way back through any: its inputs are not on the tape.
  bool gates_by_layer() const { return keeps_ || stores_; }
  float* gates(std::int32_t t, std::int64_t layer) const {
    const std::int64_t region = keeps_ ? region_of(t) : 0;
    return gates_ + (gates_by_layer() ? region * layer_count_ + layer : 0) * slots_ * 4 * heads_.stride;
  }

  // Layer l's arguments at step t, from the state before it, of which rows that have none read nothing.
  const TileArguments& layer_at(std::int32_t t, std::int64_t l) {
    TileArguments& layer = layers_[static_cast<std::size_t>(l)];
    layer.input = l == 0 ? a_.input : state(t, l - 1);
    layer.out = state(t, l);
    if (stores_)
      layer.stored = stored(t - 1, l), layer.out_stored = stored(t, l);
    else
      layer.state = state(t - 1, l);
    return layer;
  }

  void step(std::int32_t t, kernels::Stream on) {
    if (segment_ > 0 && t % segment_ == 0) launch_keep_start(start_of(t), on);
    networks(t, on);
    if (!taped_) {
      launch_finish(a_, on);
      return launch_settle(a_, on);
    }
    const TapedArguments taped{.forward = a_, .tape = tape(t), .slots = slots_};
    launch_finish_taped(taped, on);
    launch_settle_taped(taped, on);
  }

  // Step t once more, with the rows and the children that it had: nothing is decided.
  void repeat(std::int32_t t, kernels::Stream on) {
    go_to(t);
    if (t % segment_ == 0) launch_take_start(start_of(t), on);
    networks(t, on);
    TapedArguments taped{.forward = a_, .tape = tape(t), .slots = slots_};
    taped.forward.results.requests = asked_again_;
    launch_finish_taped(taped, on);
    if ((t + 1) % segment_ != 0)
      launch_bear_again({.slots = slots_, .tape = tape(t), .results = a_.results, .flows = a_.flows}, on);
  }

  void networks(std::int32_t t, kernels::Stream on) {
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
  }

  static constexpr std::int64_t kFields = 11, kBirths = 2;  // floats and integers of a row; slot, source, requests

  StepRows tape(std::int32_t t) const {
    float* const fields = fields_ + region_of(t) * kFields * slots_;
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

  StartArguments start_of(std::int32_t t) const {
    const std::int64_t number = t / segment_;
    float* const fields = starts_ + number * 4 * slots_;
    return {.slots = slots_,
            .total = a_.total,
            .slot = a_.rows.slot,
            .flows = a_.flows,
            .start = {.x = fields,
                      .y = fields + slots_,
                      .z = fields + 2 * slots_,
                      .energy = fields + 3 * slots_,
                      .age = ages_ + number * slots_}};
  }
  std::int64_t segments() const { return (steps_ + segment_ - 1) / segment_; }
  std::int64_t segment_length() const { return segment_ > 0 ? segment_ : std::max<std::int64_t>(1, steps_); }

  TapeBytes bytes_of_row() const { return bytes_of_row(segment_ > 0, keeps_); }
  TapeBytes bytes_of_row(bool segments, bool keeps) const {
    const std::int64_t states = layer_count_ * heads_.stride, state_bytes = (stores_ ? 2 : 4) * states;
    const std::int64_t everything = 4 * (a_.input_stride + 4 * states);
    return {.of_record = 4 * (kBirths + 3),
            .of_start = segments ? 4 * 5 + state_bytes : 0,
            .of_step = 4 * kFields + state_bytes + (keeps ? everything : 0)};
  }
  std::int64_t most_held(std::int64_t every) const {
    const TapeBytes row = bytes_of_row(true, true);
    const std::int64_t steps = std::max<std::int64_t>(1, steps_);
    return slots_ * (steps * row.of_record + (steps + every - 1) / every * row.of_start + every * row.of_step);
  }

  const Setting setting_;
  const FlowPlaces places_;
  const bool taped_;
  const std::int64_t steps_, slots_, layer_count_;
  const bool stores_;           // states in bf16 between steps
  const std::int64_t segment_;  // steps between kept states; 0: all are kept. From what is above: bytes are asked for
  const bool keeps_;
  std::int32_t* const totals_;           // [steps + 1]
  const FlowRows rows_;                  // of the first step, then of the others
  std::int32_t* const requests_;         // likewise
  float* states_ = nullptr;              // [steps, layers, slots, stride], or of one step where they are stored
  std::uint16_t* stored_ = nullptr;      // likewise
  float* fields_ = nullptr;              // [steps, kFields, slots]
  std::int32_t* births_ = nullptr;       // [steps, kBirths, slots]
  float* gates_ = nullptr;               // of one layer of one step, or of all
  float* inputs_of_steps_ = nullptr;     // where everything is kept
  float* starts_ = nullptr;              // [segments, 4, slots]: places and energies
  std::int32_t* ages_ = nullptr;         // [segments, slots]
  std::int32_t* asked_again_ = nullptr;  // [slots], of nobody
};

}  // namespace TWINBENCH_FORM
}  // namespace twinbench::energy_flow::flow_backward
