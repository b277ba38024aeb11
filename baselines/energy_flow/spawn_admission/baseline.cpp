// Baseline of energy_flow.spawn_admission: a host loop over flows that inserts one child at a time into the host's map,
// each with three buffers of its own, its hidden state cloned, the quota held against the size of the map.
#include <ATen/ATen.h>

#include <algorithm>
#include <map>

#include "baselines/common/tape.h"
#include "src/energy_flow/common/spawn_checks.h"

namespace twinbench::energy_flow::spawn_admission {
namespace {

// Floats of a flow's carrier state, L * Hc of the unit configuration. The origin clones it for every child; which
// values it holds decides nothing here, and the carrier has its own component.
constexpr std::int64_t kHidden = 64;

class Baseline final : public TapeBaseline {
 public:
  Baseline(const NamedTensors& inputs, const Setting& setting)
      : TapeBaseline(inputs, setting),
        samples_(setting.size("samples")),
        slots_(setting.size("slots")),
        status_(on_host("status")),
        spawn_count_(on_host("spawn_count")),
        created_(on_host("created")) {
    carried_ = at::zeros({kHidden}, inputs["position"].options());
    samples_flows_.resize(static_cast<std::size_t>(samples_));
    for (std::int64_t sample = 0; sample < samples_; ++sample) hold_earlier(sample);
    make_leaves();
  }

  NamedTensors outputs() override {
    if (backward_) return TapeBaseline::outputs();
    const auto zeros = [&](const char* name) { return at::zeros_like(inputs_[name]); };
    const at::Tensor position = zeros("position"), energy = zeros("child_energy");
    const at::Tensor parent = at::full({samples_, slots_}, -1, at::kInt), created = at::empty({samples_}, at::kInt);
    const at::Tensor dropped = at::empty({samples_}, at::kInt);
    for (std::int64_t sample = 0; sample < samples_; ++sample) {
      const Flows& flows = samples_flows_[static_cast<std::size_t>(sample)];
      for (const auto& [number, flow] : flows.map) {
        if (flow.parent < 0) continue;
        parent[sample][number].fill_(flow.parent);
        position[sample][number].copy_(flow.position);
        energy[sample][number].copy_(flow.energy);
      }
      created[sample].fill_(static_cast<std::int64_t>(flows.map.size()));
      dropped[sample].fill_(flows.dropped);
    }
    const auto there = [&](const at::Tensor& host) { return host.to(position.device()); };
    return {{"parent", there(parent)},
            {"new_created", there(created)},
            {"dropped", there(dropped)},
            {"born_position", position},
            {"born_energy", energy}};
  }

 private:
  // A flow of the host's map. Those from before the step have their buffers in the inputs.
  struct Flow {
    std::int64_t parent = -1;
    at::Tensor position = {}, energy = {}, hidden = {};  // [3], [], [kHidden]
  };
  struct Flows {
    std::map<std::int64_t, Flow> map;  // by number in the sample
    std::int64_t earlier = 0, dropped = 0;
  };

  std::int64_t created_before(std::int64_t sample) const { return created_.const_data_ptr<std::int32_t>()[sample]; }

  // The sample's map as it is before the step: who was born in it is gone, who came earlier is there.
  Flows& hold_earlier(std::int64_t sample) {
    Flows& flows = samples_flows_[static_cast<std::size_t>(sample)];
    const std::int64_t earlier = created_before(sample);
    flows.map.erase(flows.map.lower_bound(std::min(earlier, flows.earlier)), flows.map.end());
    for (auto number = static_cast<std::int64_t>(flows.map.size()); number < earlier; ++number)
      flows.map.emplace(number, Flow());
    flows.earlier = earlier;
    flows.dropped = 0;
    return flows;
  }

  void compute() override {
    // As the host's map holds them: a tensor each.
    std::vector<at::Tensor> position, energy;
    if (samples_ > 0) {
      position = inputs_["position"].reshape({-1, 3}).unbind(0);
      energy = inputs_["child_energy"].reshape({-1}).unbind(0);
    }
    for (std::int64_t sample = 0; sample < samples_; ++sample) {
      Flows& flows = hold_earlier(sample);
      for (std::int64_t slot = 0; slot < slots_; ++slot) {
        const auto place = static_cast<std::size_t>(sample * slots_ + slot);
        if (status_.const_data_ptr<std::uint8_t>()[place] != 1) continue;  // done, dead or nobody
        for (std::int32_t m = spawn_count_.const_data_ptr<std::int32_t>()[place]; m > 0; --m)
          spawn(flows, sample, slot, position[place], energy[place]);
      }
    }
  }

  // The sin: three allocations and three copies, for one child.
  void spawn(Flows& flows, std::int64_t sample, std::int64_t parent, const at::Tensor& position,
             const at::Tensor& energy) {
    const auto number = static_cast<std::int64_t>(flows.map.size());
    if (number >= slots_) {
      ++flows.dropped;
      return;
    }
    const Flow child{parent, position.clone(), energy.clone(), carried_.clone()};
    flows.map.emplace(number, child);
    if (!backward_) return;
    root(child.position, inputs_["grad_born_position"].select(0, sample).select(0, number));
    root(child.energy, inputs_["grad_born_energy"].select(0, sample).select(0, number));
  }

  const std::int64_t samples_, slots_;
  // The host knows all three: the reads that told it are those of the heads (C08) and of the step (C10).
  const at::Tensor &status_, &spawn_count_, &created_;
  at::Tensor carried_;
  std::vector<Flows> samples_flows_;
};

}  // namespace

std::unique_ptr<Runnable> make_baseline(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Baseline>(inputs, setting);
}

}  // namespace twinbench::energy_flow::spawn_admission
