// Component dataset_loader (energy-flow C02): from opening a prepared file to batches in a deterministic order.
#include <algorithm>

#include "src/energy_flow/common/delivered_rows.h"
#include "src/energy_flow/common/sentence_pairs.h"
#include "src/spec_parts.h"

namespace twinbench::energy_flow::dataset_loader {
namespace {

std::int64_t valid_rows(const Setting& setting) {
  const std::int64_t rows = setting.size("rows"), every = static_cast<std::int64_t>(setting.option("invalid_every"));
  return every > 0 ? rows - rows / every : rows;
}

// batches: how many are delivered from the start of the epoch; 0 delivers the whole epoch.
std::int64_t delivered_batches(const Setting& setting) {
  const std::int64_t batch = setting.size("batch"), all = (valid_rows(setting) + batch - 1) / batch;
  const std::int64_t wanted = setting.size("batches");
  return wanted == 0 ? all : std::min(wanted, all);
}

std::int64_t delivered_rows(const Setting& setting) {
  return std::min(delivered_batches(setting) * setting.size("batch"), valid_rows(setting));
}

// The whole dataset in two tensors, and per delivered row two more.
std::int64_t baseline_copies(const Setting& setting) {
  return (setting.size("rows") > 0 ? 2 : 0) + 4 * delivered_rows(setting);
}

std::int64_t baseline_allocations(const Setting& setting) {
  return (setting.size("rows") > 0 ? 2 : 0) + 2 * delivered_rows(setting) + 2 * delivered_batches(setting);
}

Cost cost(const Setting& setting) { return delivery_cost(delivered_rows(setting), setting); }

// The baseline reads the whole file before it delivers.
double host_bytes(const Setting& setting) {
  return delivery_cost(setting.size("rows"), setting).bytes + cost(setting).bytes;
}

std::string broken_batches(const NamedTensors& inputs, const NamedTensors& outputs, const Setting& setting) {
  return broken_delivery(inputs, outputs, delivered_rows(setting));
}

}  // namespace

ComponentSpec make_spec() {
  ComponentSpec spec;
  spec.signature = Signature{
      .options = {invalid_every_option(), long_text_option()}, .inputs = pair_inputs(), .outputs = delivered_outputs()};
  spec.finish_inputs = finish_pairs;
  spec.proof = {{"copies", "", baseline_copies, nothing}, {"allocations", "", baseline_allocations, nothing}};
  spec.cost = cost;
  spec.host_bytes = host_bytes;
  spec.invariants = {{"each row once, with its own embeddings and texts", broken_batches}};
  return spec;
}

}  // namespace twinbench::energy_flow::dataset_loader
