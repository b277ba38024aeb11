// energy_flow.output_collector (C05): a surface, as a map from cells to energies, back to a teacher's embedding.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "src/energy_flow/common/surface_map.h"
#include "src/operand_bytes.h"
#include "src/spec_parts.h"

namespace twinbench::energy_flow::output_collector {
namespace {

Signature signature() {
  const Tolerance whole{Tolerance::Kind::kBound, {2e-5, 1e-5}, {3e-2, 1e-2}, "C05", {2e-5, 2e-6}, {1e-2, 4e-3}};
  const auto given = [](InputSpec input) { return input.without_gradient(); };
  Signature s{
      .derived = {{"cells", Expression("width * height")},
                  {"middle", Expression("2 * cells"), true},
                  {"inner", Expression("max(embedding / 2, 2 * cells)"), true}},
      .inputs = {given(data("energy", "batch, entries", from_case(1))), keys("cell", "batch, entries"),
                 // 1 in training; spread, so that dropping it shows
                 given(gain("cell_weight", "height, width", normal(2, 0.1)).shifted(1)),
                 given(weight("weight_1", "middle, cells", fan_in(3, "cells"))),
                 given(bias("bias_1", "middle", fan_in(4, "cells"))),
                 given(gain("gain_1", "middle", normal(5, 0.1)).shifted(1)),
                 given(bias("shift_1", "middle", normal(6, 0.1))),
                 given(weight("weight_2", "inner, middle", fan_in(7, "middle"))),
                 given(bias("bias_2", "inner", fan_in(8, "middle"))),
                 given(gain("gain_2", "inner", normal(9, 0.1)).shifted(1)),
                 given(bias("shift_2", "inner", normal(10, 0.1))),
                 given(weight("weight_3", "embedding, inner", fan_in(11, "inner"))),
                 given(bias("bias_3", "embedding", fan_in(12, "inner")))},
      .outputs = {output("embedding", "batch, embedding", whole)},
  };
  return s;
}

bool is_there(const Setting& setting, std::int64_t entry) {
  const auto every = static_cast<std::int64_t>(setting.option("missing_every"));
  return entry < setting.size("cells") && (every == 0 || entry % every != 0);
}
std::int64_t entries_there(const Setting& setting) {
  std::int64_t count = 0;
  for (std::int64_t entry = 0; entry < setting.size("entries"); ++entry) count += is_there(setting, entry);
  return count * setting.size("batch");
}

// An element write an entry; in bf16 mode the three products' operands are rounded and widened again.
std::int64_t baseline_copies(const Setting& setting) {
  return entries_there(setting) + (setting.dtype == Dtype::kBf16 && setting.size("batch") > 0 ? 6 : 0);
}

// Keys: every cell once, in an order that the sample and the seed decide.
void finish_inputs(NamedTensors& inputs, const Setting& setting, std::uint64_t seed) {
  const std::int64_t cells = setting.size("cells"), entries = setting.size("entries");
  std::int64_t step = 7;
  while (std::gcd(step, cells) != 1) ++step;
  const auto first = static_cast<std::int64_t>(seed % 1024);
  auto* const keys = inputs["cell"].mutable_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < setting.size("batch") * entries; ++i)
    keys[i] = is_there(setting, i % entries) ? (i % entries * step + i / entries + first) % cells : kNoEntry;
}

Cost cost(const Setting& setting) {
  const auto [batch, embedding, cells, middle, inner, entries] =
      real_sizes<6>(setting, {"batch", "embedding", "cells", "middle", "inner", "entries"});
  const double products = cells * middle + middle * inner + inner * embedding;  // multiply-adds of one row
  const double vectors = cells + 3 * middle + 3 * inner + embedding;
  return {operand_bytes(setting) * products + 4 * (vectors + batch * (3 * entries + embedding)), 2 * batch * products};
}

}  // namespace

ComponentSpec make_spec() {
  ComponentSpec spec;
  spec.signature = signature();
  spec.finish_inputs = finish_inputs;
  spec.check_inputs = [](const NamedTensors& inputs, const Setting& setting) {
    check_keys(inputs["cell"], setting.size("cells"));
  };
  spec.proof = {
      {"dispatches", "", [](const Setting& s) { return s.size("batch") == 0 ? 0 : entries_there(s) + 1 + 7; }, nothing},
      {"copies", "", baseline_copies, nothing}};
  spec.cost = cost;
  spec.most_launches = [](const Setting&) { return 5; };
  spec.refusals = {{"a cell beyond the surface",
                    [](NamedTensors& inputs, Setting& setting) {
                      inputs["cell"].mutable_data_ptr<std::int64_t>()[0] = setting.size("cells");
                    },
                    ErrorKind::kOutOfRange, "cell"},
                   {"a cell below the surface",
                    [](NamedTensors& inputs, Setting&) { inputs["cell"].mutable_data_ptr<std::int64_t>()[0] = -2; },
                    ErrorKind::kOutOfRange, "cell"},
                   {"two entries of one cell",
                    [](NamedTensors& inputs, Setting&) {
                      auto* const keys = inputs["cell"].mutable_data_ptr<std::int64_t>();
                      keys[1] = keys[0];
                    },
                    ErrorKind::kBadArgument, "cell"}};
  return spec;
}

}  // namespace twinbench::energy_flow::output_collector
