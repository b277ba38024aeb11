// The loop of steps: masks, index_select, products with ATen's recurrent cell, sums by scatter.
#include "baselines/energy_flow/common/flows_at_once.h"

#include <ATen/ATen.h>

#include <limits>

#include "baselines/common/layers.h"
#include "src/stored_states.h"

namespace twinbench::energy_flow::flow_forward {
namespace {

struct Carried {
  at::Tensor hidden, top;  // [layers, flows, width], what the heads take
};

// As the neuron's features, [flows, 1], [layers, flows, width].
Carried carry(const std::vector<RecurrentLayer>& layers, const at::Tensor& features, const at::Tensor& energy,
              const at::Tensor& hidden) {
  at::Tensor x = guarded(at::cat({features, energy}, 1));
  const at::Tensor h = guarded(hidden);
  std::vector<at::Tensor> next;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const RecurrentLayer& layer = layers[l];
    x = at::gru_cell(x, h.select(0, static_cast<std::int64_t>(l)), layer.input.weight, layer.hidden.weight,
                     layer.input.bias, layer.hidden.bias);
    next.push_back(x);
  }
  return {guarded(at::stack(next)), guarded(x)};
}

}  // namespace

FlowsAtOnce::FlowsAtOnce(const NamedTensors& inputs, const Setting& setting)
    : TapeBaseline(inputs, setting, Way::kLibrary), rules_(setting), noise_(setting) {
  const std::int64_t layers = setting.size("layers");
  const Operands operands = operands_of(setting, true);
  keep_recurrent_weights(inputs_, inputs, layers);
  make_leaves();
  networks_.emplace(
      Networks{Neuron(inputs_, operands), RecurrentLayer::all(inputs_, layers), Heads(inputs_, setting, operands)});
}

NamedTensors FlowsAtOnce::lived(const at::Tensor& energies) const {
  LiveFlows live(setting_, rules_, energies, inputs_["sample_key"]);
  for (std::int64_t t = 0; live.look(t); ++t) {
    const at::Tensor place = live.places();
    const at::Tensor position = live.dense(live.position(), place, 0), energy = live.dense(live.energy(), place, 0);
    at::Tensor features;
    if (backward_)  // what the guard stops must not come back as zero times NaN
      features = at::where(at::isfinite(energy), networks_->neuron(position, at::nan_to_num(energy, 0.0, 0.0, 0.0)),
                           std::numeric_limits<double>::quiet_NaN());
    else
      features = networks_->neuron(position, energy);
    const Carried carried = carry(networks_->layers, features, energy, live.dense(live.hidden(), place, 1));
    Intent intent = networks_->heads(carried.top);
    for (at::Tensor* of : {&intent.energy, &intent.delta, &intent.gate, &intent.child})
      if (of->defined()) *of = of->index_select(0, place);
    at::Tensor move = intent.delta, raw = at::add(live.position(), intent.delta);
    if (noise_.on()) {
      const at::Tensor drawn = live.noise(noise_, t);
      raw = raw.add_(drawn);
      move = at::add(move, drawn);
    }
    at::Tensor stored = carried.hidden.index_select(1, place);
    if (stores_as(setting_) == Dtype::kBf16) stored = baseline_operand(stored, true);
    live.advance(t, {.energy = intent.energy,
                     .raw = raw,
                     .move = move,
                     .hidden = stored,
                     .gate = intent.gate,
                     .child = intent.child});
  }
  NamedTensors found;
  live.collect(found);
  return found;
}

}  // namespace twinbench::energy_flow::flow_forward
