// Baseline of energy_flow.flow_storage: a host map of flow objects, each with three device buffers of its own that
// every update makes anew, after the list of ids has been copied to the host.
#include <ATen/ATen.h>

#include <map>

#include "src/component.h"

namespace twinbench::energy_flow::flow_storage {
namespace {

class Baseline final : public Runnable {
 public:
  Baseline(const NamedTensors& inputs, const Setting& setting)
      : inputs_(inputs),
        forwards_(setting.size("forwards")),
        steps_(setting.size("steps")),
        samples_(setting.size("samples")),
        slots_(setting.size("slots")),
        first_(static_cast<std::int64_t>(setting.option("first"))),
        leak_(setting.on("slot_leak")),
        hidden_(setting.on("hidden_dtype") ? at::kBFloat16 : inputs["hidden"].scalar_type()) {
    know();
    ids_ = at::arange(samples_ * slots_, inputs["birth"].options().dtype(at::kLong));
    host_ids_ = at::empty({samples_ * slots_}, at::kLong);
    Baseline::reset();
  }

  void reset() override {
    anew_ = true;
    generation_ = inputs_["generation"].cpu().const_data_ptr<std::int32_t>()[0];
  }

  void run() override {
    if (!inputs_["birth"].is_cpu()) know();  // of a card's inputs the host has copies
    for (std::int64_t forward = first_; forward < forwards_; ++forward) {
      let_go();
      now_ = static_cast<std::int32_t>(generation_ + forward + 1);
      for (std::int64_t step = 0; step < steps_; ++step) advance(forward, step);
    }
    generation_ += static_cast<std::int32_t>(forwards_);
  }

  NamedTensors outputs() override {
    const auto floats = inputs_["energy"].options();
    const auto whole = [&](double value, at::ScalarType dtype) { return at::full({samples_, slots_}, value, dtype); };
    const std::int64_t layers = inputs_["hidden"].size(2), width = inputs_["hidden"].size(5);
    const auto zeros = [&](at::IntArrayRef shape) { return at::zeros(shape, floats); };
    const at::Tensor position = zeros({3, samples_, slots_}), hidden = zeros({layers, samples_, slots_, width});
    const at::Tensor energy = zeros({samples_, slots_}), distance = zeros({samples_, slots_});
    const at::Tensor sample = whole(-1, at::kInt), local = whole(-1, at::kInt), age = whole(0, at::kInt);
    const at::Tensor status = whole(0, at::kByte), cell = whole(-1, at::kInt), tag = whole(0, at::kInt);
    for (const auto& [id, flow] : map_) {
      if (flow.forward_id != now_) continue;
      const std::int64_t s = flow.slot / slots_, l = flow.slot % slots_;
      position.select(1, s).select(1, l).copy_(flow.position);
      energy[s][l].copy_(flow.energy);
      hidden.select(1, s).select(1, l).copy_(flow.hidden);
      distance[s][l].fill_(flow.distance);
      sample[s][l].fill_(s), local[s][l].fill_(l), age[s][l].fill_(flow.age), status[s][l].fill_(flow.status);
      cell[s][l].fill_(flow.cell), tag[s][l].fill_(flow.forward_id);
    }
    std::int64_t kept = 0;
    for (const auto& [id, flow] : map_) kept += keeps_slot(flow) ? 1 : 0;
    const std::int64_t capacity = samples_ * slots_, hidden_bytes = hidden_ == at::kBFloat16 ? 2 : 4;
    const std::int64_t bytes = capacity * (12 + 4 + layers * width * hidden_bytes + 4 + 4 + 4 + 1 + 4 + 4 + 4);
    const auto there = [&](const at::Tensor& host) { return host.to(floats.device()); };
    return {{"stored_position", position},
            {"stored_energy", energy},
            {"stored_hidden", hidden},
            {"sample", there(sample)},
            {"local_id", there(local)},
            {"age", there(age)},
            {"stored_status", there(status)},
            {"stored_distance", distance},
            {"stored_cell", there(cell)},
            {"forward_id", there(tag)},
            {"slots_free_after", there(at::full({1}, capacity - kept, at::kLong))},
            {"bytes", there(at::full({1}, bytes, at::kLong))},
            {"generation", there(at::full({1}, generation_, at::kInt))}};
  }

 private:
  // What the host knows of the flows, without a read of each.
  void know() {
    for (const char* name : {"birth", "status", "cell"}) host_.set(name, inputs_[name].cpu().contiguous());
    host_.set("distance", inputs_["distance"].to(at::kFloat).cpu().contiguous());
  }

  struct Flow {
    std::int64_t slot = 0;
    std::int32_t forward_id = 0, age = 0, cell = -1;
    std::uint8_t status = 1;
    float distance = 0;
    at::Tensor position = {}, energy = {}, hidden = {};  // [3], [], [layers, hidden]
  };

  // The origin has taken completed flows out of its list when it resets: their slots are never given back, and their
  // entries stay.
  bool keeps_slot(const Flow& flow) const { return leak_ && (flow.status == 2 || flow.status == 3); }

  void let_go() {
    for (auto entry = map_.begin(); entry != map_.end();) {
      Flow& flow = entry->second;
      if (!anew_ && keeps_slot(flow)) {
        flow.position = flow.energy = flow.hidden = at::Tensor();
        ++entry;
      } else {
        entry = map_.erase(entry);
      }
    }
    anew_ = false;
  }

  template <class T>
  T known(const char* name, std::int64_t at) const {
    return host_[name].const_data_ptr<T>()[at];
  }

  void advance(std::int64_t forward, std::int64_t step) {
    const std::int64_t capacity = samples_ * slots_, row = (forward * steps_ + step) * capacity;
    std::map<std::int64_t, Flow*> active;
    for (auto& [id, flow] : map_)  // whatever is in the map is scanned
      if (flow.forward_id == now_ && flow.status == 1) active.emplace(flow.slot, &flow);
    for (const auto& [slot, flow] : active) {
      ++flow->age;
      flow->status = known<std::uint8_t>("status", row + slot);
      if (flow->status != 2 && flow->status != 3) continue;
      flow->distance = known<float>("distance", row + slot);
      flow->cell = known<std::int32_t>("cell", row + slot);
    }
    for (std::int64_t slot = 0; slot < capacity; ++slot)
      if (known<std::int32_t>("birth", forward * capacity + slot) == step)
        active.emplace(slot, &(map_[std::int64_t{now_} * capacity + slot] = {.slot = slot, .forward_id = now_}));
    const at::Tensor position = inputs_["position"].select(0, forward).select(0, step).flatten(1, 2);
    const at::Tensor energy = inputs_["energy"].select(0, forward).select(0, step).flatten();
    const at::Tensor hidden = inputs_["hidden"].select(0, forward).select(0, step).flatten(1, 2);
    update(active, [&](Flow& flow) { flow.position = position.select(1, flow.slot).clone(); });
    update(active, [&](Flow& flow) { flow.energy = energy.select(0, flow.slot).clone(); });
    update(active, [&](Flow& flow) {
      flow.hidden = hidden.select(1, flow.slot).to(hidden_, /*non_blocking=*/false, /*copy=*/true);
    });
  }

  // The sin: ids to the host, then a new buffer a flow.
  template <class Change>
  void update(const std::map<std::int64_t, Flow*>& flows, Change change) {
    host_ids_.copy_(ids_);
    for (const auto& [slot, flow] : flows)
      if (host_ids_.const_data_ptr<std::int64_t>()[slot] == slot) change(*flow);
  }

  NamedTensors inputs_, host_;
  const std::int64_t forwards_, steps_, samples_, slots_, first_;
  const bool leak_;
  const at::ScalarType hidden_;
  at::Tensor ids_, host_ids_;
  std::map<std::int64_t, Flow> map_;  // by generation and slot
  std::int32_t generation_ = 0, now_ = 0;
  bool anew_ = true;  // nothing is left from before
};

}  // namespace

std::unique_ptr<Runnable> make_baseline(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Baseline>(inputs, setting);
}

}  // namespace twinbench::energy_flow::flow_storage
