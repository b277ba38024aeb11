// Baseline of energy_flow.flow_forward: nested host loops, one flow after another, its buffers gathered before and
// scattered after each of its steps, everything about it read back one value at a time.
#include <ATen/ATen.h>

#include <vector>

#include "baselines/energy_flow/common/flow_by_flow.h"
#include "baselines/energy_flow/common/groups.h"
#include "baselines/energy_flow/common/networks.h"
#include "src/energy_flow/common/flow_calls.h"
#include "src/stepwise.h"
#include "src/stored_states.h"

namespace twinbench::energy_flow::flow_forward {
namespace {

template <class Real>
class Baseline final : public FlowByFlow, public Stepwise {
 public:
  Baseline(const NamedTensors& inputs, const Setting& setting)
      : FlowByFlow(inputs, setting, "embedding", static_cast<std::int64_t>(setting.option("baseline_chunk")),
                   setting.on("step_logging")),
        mapper_(inputs_, operands_of(setting, false)),
        neuron_(inputs_, operands_of(setting, false)),
        layers_(RecurrentLayer::all(inputs_, setting.size("layers"))),
        heads_(inputs_, setting, operands_of(setting, false)) {}

  void begin() override { take(Part::kPlacement); }
  void step() override { take(Part::kStep); }
  NamedTensors state() override { return flows_between_steps(); }
  void set_state(const NamedTensors& state) override { take_flows(state); }

 private:
  enum class Part { kAll, kPlacement, kStep };

  // In the same way as a whole pass: by what run() turns off.
  void take(Part part) {
    part_ = part;
    run();
    part_ = Part::kAll;
  }
  void compute() override {
    if (part_ == Part::kAll) announce_flow_forward(samples());
    part_ == Part::kAll ? live() : part_ == Part::kStep ? take_step() : start_steps();
    report();
  }
  void report() {
    host_results_ = {{"stats", stats()}, {"active", active()}, {"margin", margin()}};
    results_.set("surface", surface_);
  }

  at::Tensor start_energies(std::int64_t b) override {
    return mapper_(inputs_["embedding"].narrow(0, b, 1)).view({-1});
  }

  Moves networks(const Batch& batch) override {
    const at::Tensor next = carry(neuron_(batch.position, batch.energy), batch.energy, batch.hidden);
    const Intent intent = heads_(carried_);
    return {.energy = intent.energy,
            .raw = {},
            .move = intent.delta,
            .hidden = next,
            .gate = intent.gate,
            .child = intent.child};
  }

  // features [flows, features], energy [flows, 1], hidden [flows, layers, width]: the next hidden state, and in
  // carried_ what the heads take.
  at::Tensor carry(const at::Tensor& features, const at::Tensor& energy, const at::Tensor& hidden) {
    at::Tensor x = guarded(at::cat({features, energy}, 1));
    const at::Tensor h = guarded(hidden);
    std::vector<at::Tensor> next;
    for (std::size_t l = 0; l < layers_.size(); ++l)
      next.push_back(x = cell(layers_[l], x, h.select(1, static_cast<std::int64_t>(l))));
    carried_ = guarded(x);
    return rounded(guarded(at::stack(next, 1)), stores_as(setting_));
  }

  static at::Tensor cell(const RecurrentLayer& layer, const at::Tensor& x, const at::Tensor& h) {
    const at::Tensor from_input = layer.input(x), from_hidden = layer.hidden(h);
    const auto block = [width = h.size(1)](const at::Tensor& t, std::int64_t i) {
      return t.narrow(1, i * width, width);
    };
    const at::Tensor reset = at::sigmoid(at::add(block(from_input, 0), block(from_hidden, 0)));
    const at::Tensor update = at::sigmoid(at::add(block(from_input, 1), block(from_hidden, 1)));
    const at::Tensor candidate = at::tanh(at::add(block(from_input, 2), at::mul(reset, block(from_hidden, 2))));
    return at::add(at::mul(at::rsub(update, 1), candidate), at::mul(update, h));
  }

  void collect(std::int64_t b) override {
    Groups<Real> groups(rules_, grid_.start_depth(), book(b));
    for (std::size_t i = 0; i < flows(b).size(); ++i) groups.add(i, flows(b)[i]);
    groups.write(surface_.select(0, b));
  }

  const Mapper mapper_;
  const Neuron neuron_;
  const std::vector<RecurrentLayer> layers_;
  const Heads heads_;
  at::Tensor carried_;
  Part part_ = Part::kAll;
};

}  // namespace

std::unique_ptr<Runnable> make_baseline(const NamedTensors& inputs, const Setting& setting) {
  if (setting.dtype == Dtype::kFp64) return std::make_unique<Baseline<double>>(inputs, setting);
  return std::make_unique<Baseline<float>>(inputs, setting);
}

}  // namespace twinbench::energy_flow::flow_forward
