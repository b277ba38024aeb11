// Component dataset_loader (energy-flow C02): from opening a prepared file to batches in a deterministic order.
#include <algorithm>

#include "src/energy_flow/common/delivered_rows.h"
#include "src/energy_flow/common/sentence_pairs.h"
#include "src/spec_parts.h"

namespace twinbench::energy_flow::dataset_loader {
namespace {

Signature signature() {
  return {
      .sizes = {{"rows", 0},
                {"width", 1, 1 << 16},
                {"batch", 1},
                {"workers", 0, 64},
                {"prefetch_depth", 1, 1024},
                {"epoch", 0},
                {"batches", 0},
                {"seed", 0, std::int64_t{1} << 53}},
      .options = {switch_option("shuffle", true, "a new order every epoch; else the file's"), invalid_every_option()},
      .inputs = pair_inputs(),
      .outputs = delivered_outputs(),
  };
}

// batches: how many are delivered from the start of the epoch; 0 delivers the whole epoch.
Case make_case(const std::string& name, std::int64_t rows, std::int64_t width, std::int64_t batch, std::int64_t workers,
               std::int64_t prefetch_depth, std::int64_t epoch, std::int64_t batches) {
  return sized_case(name, {{"rows", rows},
                           {"width", width},
                           {"batch", batch},
                           {"workers", workers},
                           {"prefetch_depth", prefetch_depth},
                           {"epoch", epoch},
                           {"batches", batches},
                           {"seed", 1234}});
}

std::vector<Case> make_cases() {
  std::vector<Case> cases = {make_case("empty", 0, 5, 4, 2, 4, 0, 0),
                             make_case("tiny", 20, 8, 4, 1, 2, 0, 1),
                             make_case("ragged", 103, 31, 16, 2, 4, 1, 0),
                             make_case("fewer_than_a_batch", 3, 7, 16, 2, 4, 0, 0),
                             make_case("no_workers", 103, 31, 16, 0, 1, 2, 0),
                             make_case("many_workers", 257, 5, 3, 12, 3, 0, 0),
                             make_case("dropped_rows", 131, 33, 16, 2, 4, 0, 0),
                             make_case("in_file_order", 50, 6, 8, 2, 4, 0, 0),
                             make_case("first_batch", 5021, 768, 16, 2, 4, 0, 1),
                             make_case("first_batch_of_50000", 50'000, 64, 16, 2, 4, 0, 1),
                             make_case("whole_epoch", 5021, 768, 16, 2, 4, 0, 0)};
  cases[0].degenerate = true;
  cases[6].options["invalid_every"] = 7;
  cases[7].options["shuffle"] = 0;
  for (std::size_t timed = 8; timed < cases.size(); ++timed) cases[timed].timed = true;
  return cases;
}

bool row_is_spoilt(const Setting& setting, std::int64_t row) {
  const auto every = static_cast<std::int64_t>(setting.option("invalid_every"));
  return every > 0 && row % every == every - 1;
}

std::int64_t valid_rows(const Setting& setting) {
  std::int64_t count = 0;
  for (std::int64_t row = 0; row < setting.size("rows"); ++row) count += !row_is_spoilt(setting, row);
  return count;
}

std::int64_t delivered_batches(const Setting& setting) {
  const std::int64_t batch = setting.size("batch"), all = (valid_rows(setting) + batch - 1) / batch;
  const std::int64_t wanted = setting.size("batches");
  return wanted == 0 ? all : std::min(wanted, all);
}

std::int64_t delivered_rows(const Setting& setting) {
  return std::min(delivered_batches(setting) * setting.size("batch"), valid_rows(setting));
}

std::string broken_batches(const NamedTensors& inputs, const NamedTensors& outputs, const Setting& setting) {
  return broken_delivery(inputs, outputs, delivered_rows(setting));
}

}  // namespace

ComponentSpec make_spec() {
  ComponentSpec spec;
  spec.summary =
      "Opens a prepared dataset file and delivers shuffled batches of embeddings, texts and row numbers in order.";
  spec.source = "energy_flow C02";
  spec.sin =
      "the first batch waits until the whole file has been read and copied, and every batch is put together item by "
      "item";
  spec.cases = make_cases();
  spec.signature = signature();
  spec.finish_inputs = finish_pairs;
  spec.proof = {
      {"copies", "2 for the whole dataset, and per delivered row 2 into fresh tensors and 2 into the batch",
       [](const Setting& setting) { return (setting.size("rows") > 0 ? 2 : 0) + 4 * delivered_rows(setting); },
       nothing},
      {"allocations", "2 for the whole dataset, 2 per delivered row, 2 per batch",
       [](const Setting& setting) {
         return (setting.size("rows") > 0 ? 2 : 0) + 2 * delivered_rows(setting) + 2 * delivered_batches(setting);
       },
       nothing}};
  spec.cost = [](const Setting& setting) {
    const auto rows = static_cast<double>(delivered_rows(setting));
    return Cost{2 * 2 * rows * static_cast<double>(setting.size("width")) * 4, 0};  // read once, written once
  };
  spec.claims = {{"D0", "an optimized loader makes input and output twice as fast", "2x", 2.0,
                  "immaterial end to end: a batch of 16 has 98 KB against a step of 30 s"}};
  spec.invariants = {{"each row once, with its own embeddings and texts", broken_batches}};
  return spec;
}

}  // namespace twinbench::energy_flow::dataset_loader
