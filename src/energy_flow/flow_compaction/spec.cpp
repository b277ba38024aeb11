// energy_flow.flow_compaction (C13): the flows that are still active, found and taken a step further, and no others.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "src/energy_flow/common/flow_list.h"
#include "src/spec_parts.h"

namespace twinbench::energy_flow::flow_compaction {
namespace {

Signature signature() {
  const Tolerance elementwise{Tolerance::Kind::kBound, {2e-6, 2e-6}, {2e-6, 2e-6}, "elementwise"};
  const auto floats = [](const char* name, const char* shape, Draw draw) {
    return data(name, shape, std::move(draw)).batch(std::nullopt).without_gradient();
  };
  const auto known = [](const char* name, const char* shape, Element element = Element::kInt32) {
    return keys(name, shape).of(element).batch(std::nullopt);
  };
  const auto row = [](const char* name, const char* shape, Element element = Element::kFloating) {
    return exact_output(name, shape, element).batch(std::nullopt);
  };
  return {
      .derived = {{"rows", Expression("min(flows + children, slots)")}},
      .options = {choice_option("loop", {"dense", "per_flow"}, "dense",
                                "the baseline's: every slot computed and masked, or one flow at a time"),
                  choice_option("row_access", {"automatic", "index_list", "moved", "dense"}, "automatic",
                                "how the optimized variant finds its rows: by the list, or moved together where fewer "
                                "than half of the slots in use are active; each alone; or every slot and a mask"),
                  of_inputs(choice_option("live", {"most", "all", "none", "alternating", "last"}, "most",
                                          "which of the listed flows are still active; most: nine of ten"))},
      .inputs = {known("list", "flows"), known("extent", "2"), known("status", "slots", Element::kByte),
                 known("stopped", "samples", Element::kBool), known("sample", "slots"), known("local_id", "slots"),
                 known("age", "slots"), floats("position", "3, slots", uniform(2, -1, 1)),
                 floats("energy", "slots", uniform(3, -1, 1)),
                 floats("hidden", "layers, slots, hidden", from_case(1, 0.5)), known("parent", "children"),
                 known("child_local_id", "children"), floats("child_position", "3, children", uniform(4, -1, 1)),
                 floats("child_energy", "children", uniform(5, -1, 1)),
                 gain("gate", "layers, hidden", uniform(6, -2, 2)).without_gradient(),
                 gain("candidate", "layers, hidden", uniform(7, -2, 2)).without_gradient()},
      .outputs = {row("order", "rows", Element::kInt32), row("row_sample", "rows", Element::kInt32),
                  row("row_local_id", "rows", Element::kInt32), row("row_age", "rows", Element::kInt32),
                  row("row_energy", "rows").with_nan(), row("row_position", "3, rows"),
                  output("row_hidden", "layers, rows, hidden", elementwise).batch(std::nullopt).with_nan(),
                  row("counts", "4", Element::kInt32)},
  };
}

// What the options make of the storage, the same for every seed.
struct Population {
  explicit Population(const Setting& s)
      : slots(s.size("slots")),
        samples(s.size("samples")),
        listed(std::llround(s.option("filled") * static_cast<double>(std::min(s.size("flows"), slots)))),
        live_(static_cast<int>(s.option("live"))),
        stopping_(s.on("stopping")),
        turn_(s.on("scattered") ? (listed % 7919 == 0 ? 7907 : 7919) : 1) {
    for (std::int64_t i = 0; i < listed; ++i) survivors += is_live(i);
    if (survivors > 0) children = std::min(s.size("children"), slots - listed);
    span = s.on("spread") ? slots - children : listed;
  }

  std::int64_t sample_of(std::int64_t place) const { return place * samples / listed; }
  bool has_stopped(std::int64_t sample) const { return stopping_ && sample % 3 == 1; }
  bool ends(std::int64_t place) const {
    switch (live_) {
      case 0: return place % 10 == 3;
      case 1: return false;
      case 2: return true;
      case 3: return place % 2 == 1;
      default: return place + 1 < listed;
    }
  }
  bool is_live(std::int64_t place) const { return !ends(place) && !has_stopped(sample_of(place)); }
  // Distinct, below span, ascending unless they are scattered.
  std::int64_t slot_of(std::int64_t place) const { return place * turn_ % listed * span / listed; }
  std::int64_t active() const { return survivors + children; }

  std::int64_t slots, samples, listed, survivors = 0, children = 0, span = 0;

 private:
  int live_;
  bool stopping_;
  std::int64_t turn_;
};

// Slots that the list does not name hold what earlier flows have left there.
void finish_inputs(NamedTensors& inputs, const Setting& setting, std::uint64_t) {
  const Population all(setting);
  const auto whole = [&](const char* name) { return inputs[name].mutable_data_ptr<std::int32_t>(); };
  std::int32_t *const list = whole("list"), *const sample = whole("sample"), *const id = whole("local_id");
  std::int32_t* const age = whole("age");
  auto* const status = inputs["status"].mutable_data_ptr<std::uint8_t>();
  constexpr std::uint8_t kEnded[] = {0, 2, 3, 4};
  for (std::int64_t slot = 0; slot < all.slots; ++slot) {
    sample[slot] = static_cast<std::int32_t>(slot % all.samples);
    id[slot] = static_cast<std::int32_t>(slot);
    age[slot] = static_cast<std::int32_t>(slot * 7 % 51);
    status[slot] = kEnded[slot % 4];
  }
  inputs["list"].fill_(-1);
  for (std::int64_t s = 0; s < all.samples; ++s) inputs["stopped"].mutable_data_ptr<bool>()[s] = all.has_stopped(s);
  std::vector<std::int32_t> survivors;
  for (std::int64_t place = 0; place < all.listed; ++place) {
    const std::int64_t slot = all.slot_of(place);
    list[place] = static_cast<std::int32_t>(slot);
    sample[slot] = static_cast<std::int32_t>(all.sample_of(place));
    id[slot] = static_cast<std::int32_t>(3 * place);
    status[slot] = all.ends(place) ? kEnded[1 + place % 3] : 1;
    if (all.is_live(place)) survivors.push_back(static_cast<std::int32_t>(place));
  }
  whole("extent")[0] = static_cast<std::int32_t>(all.listed);
  whole("extent")[1] = static_cast<std::int32_t>(all.span);
  for (std::int64_t child = 0; child < setting.size("children"); ++child) {
    // Two of each parent, where there are enough of them: their ordinals.
    const std::int64_t of = all.children > 0 ? child / 2 * 2 * all.survivors / all.children : 0;
    whole("parent")[child] = child < all.children ? survivors[static_cast<std::size_t>(of)] : -1;
    whole("child_local_id")[child] = static_cast<std::int32_t>(3 * all.listed + child);
  }
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  if (setting.on("stale_nan"))
    for (std::int64_t slot = 0; slot < all.slots; ++slot)
      if (status[slot] != 1) inputs["energy"][slot].fill_(kNan), inputs["hidden"].select(1, slot).fill_(kNan);
  if (setting.on("nan_flow") && all.listed > 0) inputs["hidden"].select(1, all.slot_of(all.listed / 2)).fill_(kNan);
}

bool per_flow(const Setting& s) { return s.on("loop"); }

// Dense: four for the mask, eight for the rows, four more where children come. Per flow: seven for each row.
std::int64_t baseline_dispatches(const Setting& s) {
  const Population all(s);
  return per_flow(s) ? 7 * all.active() : 12 + (all.children > 0 ? 4 : 0);
}
std::int64_t baseline_reads(const Setting& s) { return per_flow(s) ? Population(s).listed : 0; }

// Dense: eight temporaries of all slots' rows, whatever is active, and four masks. Per flow: seven of its own row, a
// child's copy of its parent's.
std::int64_t baseline_bytes(const Setting& s) {
  const Population all(s);
  const std::int64_t row = 4 * s.size("layers") * s.size("hidden");
  if (per_flow(s)) return row * (7 * all.active() + all.children);
  return all.slots * (8 * row + 4) + all.children * (row + 4) + 9;  // with the number that a status is compared to
}

// Of each listed flow its place, status and sample; of what is left everything, read and written.
Cost cost(const Setting& s) {
  const Population all(s);
  const auto active = static_cast<double>(all.active()), listed = static_cast<double>(all.listed);
  const auto state = static_cast<double>(s.size("layers") * s.size("hidden"));
  // A child's state is read where its parent's is; both are written.
  const double read = static_cast<double>(all.survivors) * state, written = active * state;
  return {9 * listed + 56 * active + 4 * (read + written), 8 * written};
}

// Rows ascend by sample and local id, and what is counted is what is there.
std::string disordered(const NamedTensors&, const NamedTensors& outputs, const Setting& s) {
  const at::Tensor counts = outputs["counts"].cpu(), order = outputs["order"].cpu();
  const auto* const count = counts.const_data_ptr<std::int32_t>();
  const std::int64_t active = count[0], rows = s.size("rows");
  if (active < 0 || active > rows) return "there are more rows than flows and children";
  if (order.narrow(0, 0, active).lt(0).any().item<bool>()) return "a row is nobody's";
  if (order.narrow(0, active, rows - active).ne(-1).any().item<bool>()) return "a row beyond the last one has a flow";
  const at::Tensor key =
      outputs["row_sample"].cpu().to(at::kLong).mul(std::int64_t{1} << 32).add(outputs["row_local_id"].cpu());
  if (active > 1 && key.narrow(0, 0, active).diff().le(0).any().item<bool>())
    return "the rows are not in the order of samples and local ids";
  if (count[2] < 0 || count[2] > 127 || (active + count[2]) % 128 != 0) return "the padding fills no tile";
  return count[1] > active ? "more flows survived than are active" : "";
}

}  // namespace

ComponentSpec make_spec() {
  ComponentSpec spec;
  spec.signature = signature();
  spec.finish_inputs = finish_inputs;
  spec.check_inputs = [](const NamedTensors& inputs, const Setting&) { check_flow_list(inputs); };
  spec.proof = {{"dispatches", "", baseline_dispatches, nothing},
                {"scalar_reads", "", baseline_reads, nothing},
                {"allocated_bytes", "", baseline_bytes, nothing}};
  spec.cost = cost;
  spec.most_launches = [](const Setting&) { return 3; };
  spec.invariants = {{"rows are ordered and counted", disordered}};
  spec.relations = {{"list, move and mask",
                     [](Setting setting) {
                       double& rows = setting.input_case.options["row_access"];
                       rows = std::fmod(rows + 1, 4);
                       return setting;
                     },
                     true}};
  const auto set = [](const char* name, std::int64_t place, std::int32_t value) {
    return [=](NamedTensors& inputs, Setting&) { inputs[name][place].fill_(value); };
  };
  spec.refusals = {{"a slot that is not there", set("list", 0, 1 << 20), ErrorKind::kOutOfRange, "list"},
                   {"a flow twice", [](NamedTensors& inputs, Setting&) { inputs["list"][1].copy_(inputs["list"][0]); },
                    ErrorKind::kOutOfRange, "list"},
                   {"more flows than slots in use", set("extent", 1, 1), ErrorKind::kOutOfRange, "extent"},
                   {"a sample that is not there", [](NamedTensors& inputs, Setting&) { inputs["sample"].fill_(-1); },
                    ErrorKind::kOutOfRange, "sample"},
                   {"a parent that is not listed", set("parent", 0, 1 << 20), ErrorKind::kOutOfRange, "parent"},
                   {"a parent after the last one", set("parent", 0, -1), ErrorKind::kOutOfRange, "parent"},
                   {"children of one number", [](NamedTensors& inputs, Setting&) { inputs["child_local_id"].fill_(0); },
                    ErrorKind::kOutOfRange, "child_local_id"},
                   {"no slots for the children",
                    [](NamedTensors& inputs, Setting& setting) { inputs["extent"][1].fill_(setting.size("slots")); },
                    ErrorKind::kOutOfRange, "parent"}};
  return spec;
}

}  // namespace twinbench::energy_flow::flow_compaction
