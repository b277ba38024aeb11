// Component collation (energy-flow C03): one batch of shuffled rows out of tensors that hold the whole dataset.
#include <algorithm>

#include "src/energy_flow/common/delivered_rows.h"
#include "src/energy_flow/common/sentence_pairs.h"
#include "src/spec_parts.h"

namespace twinbench::energy_flow::collation {
namespace {

// batch_index counts from the start of the epoch; past its end it means a batch of a later epoch.
std::int64_t rows_in_batch(const Setting& setting) {
  const std::int64_t rows = setting.size("rows"), batch = setting.size("batch");
  if (rows == 0) return 0;
  const std::int64_t index = setting.size("batch_index") % ((rows + batch - 1) / batch);
  return std::min(batch, rows - index * batch);
}

std::int64_t baseline_allocations(const Setting& setting) {
  const std::int64_t rows = rows_in_batch(setting);
  return rows == 0 ? 0 : (setting.on("stack_only") ? 0 : 2 * rows) + 2;
}

std::int64_t baseline_copies(const Setting& setting) {
  return (setting.on("stack_only") ? 2 : 4) * rows_in_batch(setting);
}

Cost cost(const Setting& setting) { return delivery_cost(rows_in_batch(setting), setting); }

std::string broken_batches(const NamedTensors& inputs, const NamedTensors& outputs, const Setting& setting) {
  return broken_delivery(inputs, outputs, rows_in_batch(setting));
}

}  // namespace

ComponentSpec make_spec() {
  ComponentSpec spec;
  spec.signature = Signature{
      .options = {invalid_every_option(), long_text_option()}, .inputs = pair_inputs(), .outputs = delivered_outputs()};
  spec.finish_inputs = finish_pairs;
  spec.check_inputs = [](const NamedTensors& inputs, const Setting&) { check_texts(inputs); };
  spec.proof = {{"allocations", "", baseline_allocations, nothing}, {"copies", "", baseline_copies, nothing}};
  spec.cost = cost;
  spec.invariants = {{"each row once, with its own embeddings and texts", broken_batches}};
  return spec;
}

}  // namespace twinbench::energy_flow::collation
