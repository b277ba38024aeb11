// energy_flow.flow_forward, library: all flows of the batch at once by LibTorch's own operators: masks, index_select,
// products with ATen's recurrent cell, sums by scatter. In the networks each flow has a place of its own, live or not:
// in their last bits, rows of LibTorch's products depend on how many there are and where, and no sample's answer may
// depend on its neighbours. With the live flows alone it takes about three quarters of the time and breaks that rule.
#include <ATen/ATen.h>

#include <vector>

#include "baselines/common/tape.h"
#include "baselines/energy_flow/common/live_flows.h"
#include "baselines/energy_flow/common/networks.h"

namespace twinbench::energy_flow::flow_forward {
namespace {

class Library final : public TapeBaseline {
 public:
  Library(const NamedTensors& inputs, const Setting& setting)
      : TapeBaseline(inputs, setting, Way::kLibrary),
        rules_(setting),
        mapper_(inputs_),
        neuron_(inputs_),
        layers_(RecurrentLayer::all(inputs_, setting.size("layers"))),
        heads_(inputs_, setting),
        noise_(setting) {}

 private:
  void compute() override {
    LiveFlows live(setting_, rules_, mapper_(inputs_["embedding"]), inputs_["sample_key"]);
    for (std::int64_t t = 0; live.look(t); ++t) {
      const at::Tensor place = live.places();
      const at::Tensor position = live.dense(live.position(), place, 0), energy = live.dense(live.energy(), place, 0);
      const at::Tensor hidden =
          carry(neuron_(position, energy), energy, live.dense(live.hidden(), place, 1)).index_select(1, place);
      Intent intent = heads_(carried_);
      for (at::Tensor* of : {&intent.energy, &intent.delta, &intent.gate, &intent.child})
        if (of->defined()) *of = of->index_select(0, place);
      at::Tensor move = intent.delta, raw = at::add(live.position(), intent.delta);
      if (noise_.on()) {
        const at::Tensor drawn = live.noise(noise_, t);
        raw = raw.add_(drawn);
        move = at::add(move, drawn);
      }
      live.advance(t, {.energy = intent.energy,
                       .raw = raw,
                       .move = move,
                       .hidden = hidden,
                       .gate = intent.gate,
                       .child = intent.child});
    }
    live.collect(results_);
  }

  // As the neuron's features, [flows, 1], [layers, flows, width].
  at::Tensor carry(const at::Tensor& features, const at::Tensor& energy, const at::Tensor& hidden) {
    at::Tensor x = guarded(at::cat({features, energy}, 1));
    const at::Tensor h = guarded(hidden);
    std::vector<at::Tensor> next;
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      const RecurrentLayer& layer = layers_[l];
      x = at::gru_cell(x, h.select(0, static_cast<std::int64_t>(l)), layer.input.weight, layer.hidden.weight,
                       layer.input.bias, layer.hidden.bias);
      next.push_back(x);
    }
    carried_ = guarded(x);
    return guarded(at::stack(next));
  }

  const HostRules rules_;
  const Mapper mapper_;
  const Neuron neuron_;
  const std::vector<RecurrentLayer> layers_;
  const Heads heads_;
  const ExplorationNoise noise_;
  at::Tensor carried_;
};

}  // namespace

std::unique_ptr<Runnable> make_library(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Library>(inputs, setting);
}

}  // namespace twinbench::energy_flow::flow_forward
