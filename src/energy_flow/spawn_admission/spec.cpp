// energy_flow.spawn_admission (C14): each sample's first spawn requests become flows, up to its quota.
#include <ATen/ATen.h>

#include <algorithm>
#include <limits>

#include "src/common/philox.h"
#include "src/energy_flow/common/spawn_checks.h"
#include "src/spec_parts.h"

namespace twinbench::energy_flow::spawn_admission {
namespace {

// A flow's slot is its number in the sample, a quota of slots each: what is born lies in the slots after the flows
// there are, zeros elsewhere. Age 0 and state active are the same for every child: the storage's defaults. Its hidden
// state is its parent's, where `parent` says it lies.
Signature signature() {
  return {
      .inputs = {data("position", "samples, slots, 3", uniform(1, -1, 1)),
                 data("child_energy", "samples, slots", from_case(2, 0.5)).clamped(-1, 1),
                 keys("status", "samples, slots").of(Element::kByte),
                 keys("spawn_count", "samples, slots").of(Element::kInt32),
                 keys("created", "samples").of(Element::kInt32)},
      .outputs = {exact_output("born_position", "samples, slots, 3").with_nan().with_gradient(8),
                  exact_output("born_energy", "samples, slots").with_nan().with_gradient(9),
                  exact_output("parent", "samples, slots", Element::kInt32),
                  exact_output("new_created", "samples", Element::kInt32),
                  exact_output("dropped", "samples", Element::kInt32)},
      .gradient = {Tolerance::Kind::kGradient, {1e-4, 0}, {5e-2, 0}, "grad"},
  };
}

std::int64_t created_before(const Setting& s, std::int64_t sample) {
  const std::int64_t slots = s.size("slots"), percent = static_cast<std::int64_t>(s.option("filled"));
  if (percent == 100) return slots;
  return std::clamp(slots * percent / 100 + sample * 5 % 7 - 3, std::int64_t{0}, slots);
}

// What stands in a slot, the same for every seed: some flows have ended, and what they, and slots without a flow, ask
// for counts nothing.
struct Slot {
  std::uint8_t status;
  std::int32_t count;
};
Slot slot_at(const Setting& s, std::int64_t sample, std::int64_t slot) {
  const PhiloxWords words = philox(14, static_cast<std::uint32_t>(slot), static_cast<std::uint32_t>(sample), 0, 0);
  constexpr std::uint8_t kStatus[] = {1, 1, 1, 1, 1, 2, 3, 4};
  const bool there = slot < created_before(s, sample);
  const auto most = static_cast<std::uint32_t>(s.option("most_spawned"));
  const std::uint8_t status = !there ? 0 : s.on("all_spawn") ? 1 : kStatus[words.w[0] % 8];
  if (status != 1) return {status, static_cast<std::int32_t>(words.w[1] % 4)};
  return {status, static_cast<std::int32_t>(s.on("all_spawn") ? most : std::min(words.w[1] % (most + 2), most))};
}

void finish_inputs(NamedTensors& inputs, const Setting& s, std::uint64_t) {
  const std::int64_t samples = s.size("samples"), slots = s.size("slots");
  auto* const status = inputs["status"].mutable_data_ptr<std::uint8_t>();
  auto* const count = inputs["spawn_count"].mutable_data_ptr<std::int32_t>();
  auto* const created = inputs["created"].mutable_data_ptr<std::int32_t>();
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    created[sample] = static_cast<std::int32_t>(created_before(s, sample));
    for (std::int64_t slot = 0; slot < slots; ++slot) {
      const Slot at = slot_at(s, sample, slot);
      status[sample * slots + slot] = at.status;
      count[sample * slots + slot] = at.count;
    }
  }
  const std::vector<float> bad = {std::numeric_limits<float>::quiet_NaN(), 0.5f, std::numeric_limits<float>::infinity(),
                                  -0.25f, -std::numeric_limits<float>::infinity()};
  for (const char* name : {"position", "child_energy"})
    if (s.on("non_finite")) plant(inputs[name], 7, bad);
}

struct Totals {
  std::int64_t children = 0, parents = 0, families = 0;  // families: of two children or more
};
Totals totals(const Setting& s) {
  Totals all;
  for (std::int64_t sample = 0; sample < s.size("samples"); ++sample) {
    std::int64_t room = s.size("slots") - created_before(s, sample);
    for (std::int64_t slot = 0; slot < s.size("slots") && room > 0; ++slot) {
      const Slot at = slot_at(s, sample, slot);
      const std::int64_t born = at.status == 1 ? std::min<std::int64_t>(at.count, room) : 0;
      room -= born;
      all.children += born;
      all.parents += born > 0;
      all.families += born > 1;
    }
  }
  return all;
}

// The tape's zeros for every flow without a child, `sums` over the children of one, and a join: of each of two inputs.
std::int64_t replay(const Setting& s, const Totals& of, std::int64_t sums) {
  if (!s.backward() || of.children == 0) return 0;
  return 2 * (s.size("samples") * s.size("slots") - of.parents + sums + 1);
}
std::int64_t dispatches(const Setting& s) {
  const Totals of = totals(s);
  return replay(s, of, of.children - of.parents);
}
// A family's first sum has a place of its own, the others are added to it.
std::int64_t allocations(const Setting& s) {
  const Totals of = totals(s);
  return 3 * of.children + replay(s, of, of.families);
}
std::int64_t copies(const Setting& s) { return 3 * totals(s).children; }

Cost cost(const Setting& s) {
  const auto [samples, slots] = real_sizes<2>(s, {"samples", "slots"});
  const Totals of = totals(s);
  const auto children = static_cast<double>(of.children), parents = static_cast<double>(of.parents);
  // Both: status and count of every slot. Forward: energy and place of every parent, those and the parent written for
  // every slot. Backward: the children's gradients read, those of every flow written.
  const double asked = samples * (5 * slots + 4);
  if (s.backward()) return {asked + 16 * children + 16 * samples * slots, 4 * (children - parents)};
  return {asked + 16 * parents + samples * (20 * slots + 8), 0};
}

// Newborn flows follow those that were there; their parents ascend, were active, and have no more than they asked for.
std::string wrong_family(const NamedTensors& inputs, const NamedTensors& outputs, const Setting& s) {
  if (s.backward()) return "";
  const std::int64_t slots = s.size("slots");
  const auto host = [](const at::Tensor& tensor) { return tensor.cpu().contiguous(); };
  const at::Tensor all = host(outputs["parent"]), after = host(outputs["new_created"]),
                   drops = host(outputs["dropped"]);
  const at::Tensor before = host(inputs["created"]), status = host(inputs["status"]),
                   asks = host(inputs["spawn_count"]);
  for (std::int64_t sample = 0; sample < s.size("samples"); ++sample) {
    const auto* const parent = all.const_data_ptr<std::int32_t>() + sample * slots;
    const auto* const count = asks.const_data_ptr<std::int32_t>() + sample * slots;
    const auto* const state = status.const_data_ptr<std::uint8_t>() + sample * slots;
    const std::int64_t first = before.const_data_ptr<std::int32_t>()[sample];
    const std::int64_t last = after.const_data_ptr<std::int32_t>()[sample];
    std::int64_t requests = 0;
    for (std::int64_t slot = 0; slot < slots; ++slot) requests += state[slot] == 1 ? count[slot] : 0;
    if (last < first || last > slots) return "a sample has fewer flows than before, or more than its quota";
    if (last - first + drops.const_data_ptr<std::int32_t>()[sample] != requests)
      return "children and drops of a sample do not add up to its requests";
    for (std::int64_t slot = 0, of_parent = 0; slot < slots; ++slot) {
      const bool born = slot >= first && slot < last;
      if (born != (parent[slot] >= 0)) return "slot " + std::to_string(slot) + " has a parent, or lacks one, wrongly";
      if (!born) continue;
      if (parent[slot] >= slots) return "slot " + std::to_string(slot) + " has a parent that is no slot";
      if (slot > first && parent[slot] < parent[slot - 1]) return "parents do not ascend";
      of_parent = slot > first && parent[slot] == parent[slot - 1] ? of_parent + 1 : 1;
      if (state[parent[slot]] != 1 || of_parent > count[parent[slot]]) return "a flow has children it did not ask for";
    }
  }
  return "";
}

}  // namespace

ComponentSpec make_spec() {
  ComponentSpec spec;
  spec.signature = signature();
  spec.finish_inputs = finish_inputs;
  spec.check_inputs = [](const NamedTensors& inputs, const Setting& setting) {
    check_spawning(inputs["status"], inputs["spawn_count"], inputs["created"], setting.size("slots"));
  };
  spec.proof = {{"allocations", "", allocations, nothing},
                {"copies", "", copies, nothing},
                {"dispatches", "", dispatches, nothing}};
  spec.cost = cost;
  spec.most_launches = [](const Setting&) { return 1; };
  spec.invariants = {{"parents, numbers and drops", wrong_family}};
  const auto first_is = [](const char* name, std::int64_t value) {
    return [name, value](NamedTensors& inputs, Setting&) { inputs[name].flatten()[0].fill_(value); };
  };
  spec.refusals = {
      {"fewer children than none", first_is("spawn_count", -1), ErrorKind::kOutOfRange, "spawn_count"},
      {"more children than a flow may ask for", first_is("spawn_count", 1025), ErrorKind::kOutOfRange, "spawn_count"},
      {"fewer flows than none", first_is("created", -1), ErrorKind::kOutOfRange, "created"},
      {"more flows than slots",
       [](NamedTensors& inputs, Setting& setting) { inputs["created"][0].fill_(setting.size("slots") + 1); },
       ErrorKind::kOutOfRange, "created"},
      {"an active flow where there is none",
       [](NamedTensors& inputs, Setting& setting) {
         inputs["created"][0].fill_(setting.size("slots") - 1);
         inputs["status"].select(0, 0).select(0, setting.size("slots") - 1).fill_(1);
       },
       ErrorKind::kOutOfRange, "status"}};
  return spec;
}

}  // namespace twinbench::energy_flow::spawn_admission
