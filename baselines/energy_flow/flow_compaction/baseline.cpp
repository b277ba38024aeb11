// Baseline of energy_flow.flow_compaction: every slot of the storage is computed in every step, and what is not active
// is masked afterwards; or, as its option has it, one flow at a time, each asked whether it is still active.
#include <ATen/ATen.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "baselines/common/tape.h"

namespace twinbench::energy_flow::flow_compaction {
namespace {

class Baseline final : public TapeBaseline {
 public:
  Baseline(const NamedTensors& inputs, const Setting& setting)
      : TapeBaseline(inputs, setting), per_flow_(setting.on("loop")) {
    // The host's map of flows: which slots they have, and which of them have children.
    const auto host = [&](const char* name) { return inputs[name].cpu().contiguous(); };
    const at::Tensor extent = host("extent"), list = host("list"), parent = host("parent");
    const auto* const slot = list.const_data_ptr<std::int32_t>();
    listed_.assign(slot, slot + extent.const_data_ptr<std::int32_t>()[0]);
    span_ = extent.const_data_ptr<std::int32_t>()[1];
    for (std::int64_t c = 0; c < parent.numel() && parent.const_data_ptr<std::int32_t>()[c] >= 0; ++c)
      parents_.push_back(slot[parent.const_data_ptr<std::int32_t>()[c]]);
    children_ = static_cast<std::int64_t>(parents_.size());
    parent_slots_ = at::tensor(parents_, at::kInt).to(inputs["list"].device());
    sample_ = host("sample"), stopped_ = host("stopped");
    // The storage, of which the first slots in use are the given ones.
    for (const char* name : {"status", "sample", "local_id", "age", "energy", "position", "hidden"})
      storage_.set(name, inputs_[name].clone());
    next_ = at::zeros_like(storage_["hidden"]);
    live_ = storage_["status"].unbind(0);
  }

  // By sample and local id: slots are nobody's business.
  NamedTensors outputs() override {
    NamedTensors host;
    for (const auto& [name, tensor] : storage_) host.set(name, tensor.cpu().contiguous());
    std::vector<std::tuple<std::int32_t, std::int32_t, std::int64_t, std::int32_t>> flows;  // key, slot, place before
    const auto add = [&](std::int64_t slot, std::size_t place) {
      flows.emplace_back(host["sample"].const_data_ptr<std::int32_t>()[slot],
                         host["local_id"].const_data_ptr<std::int32_t>()[slot], slot, static_cast<std::int32_t>(place));
    };
    std::int32_t survivors = 0;
    for (std::size_t place = 0; place < listed_.size(); ++place) {
      const std::int64_t slot = listed_[place];
      if (host["status"].const_data_ptr<std::uint8_t>()[slot] != 1 || has_stopped(slot)) continue;
      add(slot, place);
      ++survivors;
    }
    for (std::int64_t c = 0; c < children_; ++c) add(span_ + c, listed_.size() + static_cast<std::size_t>(c));
    std::sort(flows.begin(), flows.end());
    std::vector<std::int64_t> slots;
    const at::Tensor order = at::full({setting_.size("rows")}, -1, at::kInt);
    for (const auto& [sample, local_id, slot, place] : flows) {
      order.mutable_data_ptr<std::int32_t>()[slots.size()] = place;
      slots.push_back(slot);
    }
    const at::Tensor taken = at::tensor(slots, at::kLong);
    const auto active = static_cast<std::int32_t>(slots.size());
    const auto device = storage_["hidden"].device();
    const auto rows = [&](const at::Tensor& stored, std::int64_t axis) {
      auto shape = stored.sizes().vec();
      shape[static_cast<std::size_t>(axis)] = order.numel();
      const at::Tensor all = at::zeros(shape, stored.options());
      all.narrow(axis, 0, active).copy_(stored.index_select(axis, taken));
      return all.to(device);
    };
    NamedTensors results{{"order", order.to(device)}};
    for (const char* name : {"sample", "local_id", "age", "energy", "position"})
      results.set(std::string("row_") + name, rows(host[name], host[name].dim() - 1));
    results.set("row_hidden", rows(next_.cpu(), 1));
    const std::int32_t padding = (128 - active % 128) % 128, sparse = 2 * active < span_ + children_ ? 1 : 0;
    results.set("counts", at::tensor({active, survivors, padding, sparse}, at::kInt).to(device));
    return results;
  }

 private:
  void compute() override { per_flow_ ? one_by_one() : all_slots(); }

  at::Tensor stepped(const at::Tensor& hidden, const at::Tensor& gate, const at::Tensor& candidate) const {
    const at::Tensor stays = at::sigmoid(at::mul(hidden, gate)), fresh = at::tanh(at::mul(hidden, candidate));
    return at::add(fresh, at::mul(stays, at::sub(hidden, fresh)));
  }

  // The sin: work for each of the slots.
  void all_slots() {
    if (children_ > 0) {
      append_children();
      const at::Tensor& hidden = storage_["hidden"];
      hidden.narrow(1, span_, children_).copy_(hidden.index_select(1, parent_slots_));
    }
    const at::Tensor stopped = inputs_["stopped"].index_select(0, storage_["sample"]);
    const at::Tensor live = storage_["status"].eq(1).logical_and(stopped.logical_not());
    const at::Tensor& hidden = storage_["hidden"];
    const at::Tensor next = stepped(hidden, inputs_["gate"].unsqueeze(1), inputs_["candidate"].unsqueeze(1));
    next_ = at::where(live.unsqueeze(1), next, hidden);
  }
  void append_children() const {
    const auto tail = [&](const char* name) {
      const at::Tensor& stored = storage_[name];
      return stored.narrow(stored.dim() - 1, span_, children_);
    };
    tail("sample").copy_(storage_["sample"].index_select(0, parent_slots_));
    tail("age").zero_();
    tail("status").fill_(1);
    tail("local_id").copy_(inputs_["child_local_id"].narrow(0, 0, children_));
    tail("energy").copy_(inputs_["child_energy"].narrow(0, 0, children_));
    tail("position").copy_(inputs_["child_position"].narrow(1, 0, children_));
  }

  // The other sin: a read and seven launches for each flow.
  void one_by_one() {
    const at::Tensor& hidden = storage_["hidden"];
    const auto step = [&](std::int64_t slot) {
      next_.select(1, slot).copy_(stepped(hidden.select(1, slot), inputs_["gate"], inputs_["candidate"]));
    };
    for (const std::int64_t slot : listed_) {
      const bool active = live_[static_cast<std::size_t>(slot)].item<std::uint8_t>() == 1;
      if (active && !has_stopped(slot)) step(slot);
    }
    for (std::int64_t c = 0; c < children_; ++c) {
      const auto child = static_cast<std::size_t>(c);
      hidden.select(1, span_ + c).copy_(hidden.select(1, parents_[child]).clone());
      const auto put = [&](const char* name, const at::Tensor& value) {
        storage_[name].select(0, span_ + c).copy_(value);
      };
      put("sample", storage_["sample"].select(0, parents_[child]));
      put("local_id", inputs_["child_local_id"].select(0, c));
      put("energy", inputs_["child_energy"].select(0, c));
      put("age", born_);
      put("status", active_);
      storage_["position"].select(1, span_ + c).copy_(inputs_["child_position"].select(1, c));
      step(span_ + c);
    }
  }

  bool has_stopped(std::int64_t slot) const {
    return stopped_.const_data_ptr<bool>()[sample_.const_data_ptr<std::int32_t>()[slot]];
  }

  const bool per_flow_;
  std::vector<std::int64_t> listed_, parents_;  // slots
  std::int64_t span_ = 0, children_ = 0;
  NamedTensors storage_;
  at::Tensor next_, parent_slots_, sample_, stopped_;
  std::vector<at::Tensor> live_;
  const at::Tensor born_ = at::zeros({}, at::kInt), active_ = at::ones({}, at::kByte);
};

}  // namespace

std::unique_ptr<Runnable> make_baseline(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Baseline>(inputs, setting);
}

}  // namespace twinbench::energy_flow::flow_compaction
