// What both paths of energy_flow.train_step share: parameters as views of one arena, moments, staged rows, tables from
// the way back's sums to the arena, what a window's end takes, the results.
#pragma once

#include <ATen/ATen.h>

#include <cstring>
#include <string>
#include <vector>

#include "kernels/energy_flow/common/window_end_arguments.h"
#include "optimized/common/arena_pieces.h"
#include "optimized/common/tensors.h"
#include "optimized/energy_flow/common/flow_places.h"
#include "optimized/energy_flow/common/window_texts.h"
#include "src/energy_flow/common/exploration_scale.h"
#include "src/energy_flow/common/optimizer_rule.h"
#include "src/energy_flow/common/training_window.h"

namespace twinbench::energy_flow::train_step {

class Plan : public Runnable {
 public:
  void reset() override {
    arena_.copy_(initial_);
    for (const char* name : {"first_moment", "second_moment", "counts"}) results_[name].copy_(inputs_[name]);
    attempt_ = first_attempt_;
    restart();
  }
  NamedTensors outputs() override { return results_; }

 protected:
  Plan(const NamedTensors& inputs, const Setting& s)
      : inputs_(inputs),
        s_(s),
        window_(s),
        results_(zero_results(s)),
        arena_(results_["parameters"]),
        text_gradients_(at::zeros({encoder_elements(s)}, arena_.options())),
        parts_(with_gradient(s, false)) {
    const at::TensorOptions options = arena_.options();
    std::vector<at::Tensor> parts;
    for (const InputSpec& one : trained_parameters(s)) parts.push_back(inputs[one.name].reshape({-1}));
    initial_ = at::cat(parts);
    arena_.copy_(initial_);
    networks_ = inputs;
    std::int64_t from = 0;
    for (const InputSpec& one : trained_parameters(s)) {
      const at::Tensor& given = inputs[one.name];
      networks_.set(one.name, arena_.narrow(0, from, given.numel()).view(given.sizes()));
      from += given.numel();
    }
    const std::int64_t batch = window_.micro_batch, cells = s.size("cells");
    rows_ = at::zeros({2 * batch, s.size("embedding")}, options);
    keys_ = at::zeros({batch}, options.dtype(at::kLong));
    places_ = {.initial_energy = {},
               .sample_key = keys_,
               .surface = at::zeros({batch, cells}, options),
               .grad_surface = at::zeros({batch, cells}, options),
               .grad_initial_energy = at::zeros({batch, cells}, options),
               .tape_bytes = at::zeros({flow_forward::kTapeColumns}, options.dtype(at::kLong))};
    for (const char* name : {"input", "target", "sample_key"}) inputs_.set(name, inputs_[name].contiguous());
    const at::Tensor counts = inputs["counts"].cpu().contiguous();
    first_attempt_ = attempt_ = counts.const_data_ptr<std::int64_t>()[kAttempts];
    first_applied_ = counts.const_data_ptr<std::int64_t>()[kApplied];
  }

  // Of the flows of a whole micro-batch; its mapper takes inputs and targets at once.
  Setting flows() const { return flow_setting(s_, window_.micro_batch, first_attempt_, first_applied_); }
  Setting mapping() const { return flow_setting(s_, 2 * window_.micro_batch, first_attempt_, first_applied_); }
  NamedTensors of_flows() const {
    NamedTensors inputs = networks_;
    inputs.set("embedding", rows_), inputs.set("sample_key", keys_);
    return inputs;
  }

  // Parts of a tensor like the arena, under the names of their parameters' gradients.
  NamedTensors by_gradient(const at::Tensor& like_arena) const {
    NamedTensors parts;
    std::int64_t from = 0;
    for (const InputSpec& one : trained_parameters(s_)) {
      const at::Tensor& given = inputs_[one.name];
      parts.set("grad_" + one.name, like_arena.narrow(0, from, given.numel()).view(given.sizes()));
      from += given.numel();
    }
    return parts;
  }

  // In a table of places among the sums: the encoder's gradients lie after the flows' sums, in the arena's order.
  void place_text_gradients(const at::Tensor& table, std::int64_t flow_sums) const {
    const std::int64_t of_texts = text_gradients_.numel();
    table.narrow(0, table.numel() - of_texts, of_texts)
        .copy_(at::arange(flow_sums + 1, flow_sums + of_texts + 1, at::kDouble));
  }

  // body(first, count) of each piece of the arena that has a gradient.
  template <class Body>
  void each_trained_piece(const Body& body) const {
    for (const auto& [first, count] : with_gradient(s_, true)) each_piece_of(first, count, body);
  }

  // The window at hand is looked through for what is no number.
  bool looks() const { return static_cast<double>(attempt_) < s_.option("anomaly_steps"); }

  // The same packs, rules and attempt as at set-up.
  virtual void restart() = 0;

  // Of displacements, after so many windows.
  float scale_at(std::int64_t applied) const {
    return static_cast<float>(
        exploration_scale(static_cast<double>(applied), s_.option("scale"), s_.option("smallest_scale")));
  }

  NamedTensors inputs_;
  const Setting s_;
  const Window window_;
  NamedTensors results_;
  const at::Tensor arena_;
  const at::Tensor text_gradients_;  // of a micro-step's texts, in the arena's order: its last elements
  NamedTensors networks_;            // parameters, the trained ones in the arena
  flow_forward::FlowPlaces places_;
  at::Tensor rows_, keys_;            // of a micro-step: inputs, then targets, sanitised
  const std::vector<Stretch> parts_;  // of the arena: parameters that have a gradient
  std::int64_t attempt_ = 0, first_attempt_ = 0, first_applied_ = 0;  // as it was at set-up

 private:
  at::Tensor initial_;
};

}  // namespace twinbench::energy_flow::train_step
