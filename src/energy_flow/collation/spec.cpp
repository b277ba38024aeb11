// Component collation (energy-flow C03): one batch of shuffled rows out of tensors that hold the whole dataset.
#include <algorithm>

#include "src/energy_flow/common/delivered_rows.h"
#include "src/energy_flow/common/sentence_pairs.h"
#include "src/spec_parts.h"

namespace twinbench::energy_flow::collation {
namespace {

Signature signature() {
  return {
      .sizes = {{"rows", 0},
                {"width", 1, 1 << 16},
                {"batch", 1},
                {"epoch", 0},
                {"batch_index", 0},
                {"seed", 0, std::int64_t{1} << 53}},
      .options = {switch_option("shuffle", true, "a new order every epoch; else the file's"),
                  switch_option("stack_only", false, "the baseline copies no items: what the stack alone costs"),
                  invalid_every_option()},
      .inputs = pair_inputs(),
      .outputs = delivered_outputs(),
  };
}

// batch_index counts from the start of `epoch`; past its end it means a batch of a later epoch.
Case make_case(const std::string& name, std::int64_t rows, std::int64_t width, std::int64_t batch, std::int64_t epoch,
               std::int64_t batch_index) {
  return sized_case(name, {{"rows", rows},
                           {"width", width},
                           {"batch", batch},
                           {"epoch", epoch},
                           {"batch_index", batch_index},
                           {"seed", 1234}});
}

Case without_item_copy(Case plain) {
  plain.name += "_stack_only";
  plain.options["stack_only"] = 1;
  return plain;
}

std::vector<Case> make_cases() {
  std::vector<Case> cases = {
      make_case("empty", 0, 5, 4, 0, 0),           make_case("one", 9, 3, 1, 0, 4),
      make_case("tiny", 20, 7, 4, 0, 1),           make_case("ragged", 21, 13, 8, 2, 2),
      make_case("next_epoch", 21, 13, 8, 0, 4),    make_case("fewer_than_a_batch", 3, 5, 16, 0, 0),
      make_case("in_file_order", 31, 17, 8, 0, 1), make_case("adversarial", 37, 33, 11, 1, 2),
      make_case("large", 1024, 768, 512, 0, 0),    make_case("train_16", 5021, 768, 16, 0, 0),
      make_case("train_64", 5021, 768, 64, 0, 0)};
  cases[0].degenerate = true;
  cases[6].options["shuffle"] = 0;
  cases[7].distribution = "adversarial";
  for (std::size_t timed = 8; timed < 11; ++timed) cases[timed].timed = true;
  cases.push_back(without_item_copy(cases[2]));
  cases.push_back(without_item_copy(cases[9]));
  cases.push_back(without_item_copy(cases[10]));
  return cases;
}

std::int64_t rows_in_batch(const Setting& setting) {
  const std::int64_t rows = setting.size("rows"), batch = setting.size("batch");
  if (rows == 0) return 0;
  const std::int64_t index = setting.size("batch_index") % ((rows + batch - 1) / batch);
  return std::min(batch, rows - index * batch);
}

bool copies_items(const Setting& setting) { return setting.option("stack_only") == 0; }

std::string broken_batches(const NamedTensors& inputs, const NamedTensors& outputs, const Setting& setting) {
  return broken_delivery(inputs, outputs, rows_in_batch(setting));
}

}  // namespace

ComponentSpec make_spec() {
  ComponentSpec spec;
  spec.summary =
      "Puts one batch together: the embeddings, texts and row numbers of the rows that the epoch's shuffle names.";
  spec.source = "energy_flow C03";
  spec.sin = "every item is copied into fresh tensors and strings, and the copies are copied again into the batch";
  spec.cases = make_cases();
  spec.signature = signature();
  spec.finish_inputs = finish_pairs;
  spec.proof = {
      {"allocations", "2B + 2: two tensors an item and two for the batch; stack only: 2",
       [](const Setting& setting) {
         const std::int64_t rows = rows_in_batch(setting);
         return rows == 0 ? 0 : (copies_items(setting) ? 2 * rows : 0) + 2;
       },
       nothing},
      {"copies", "4B: two an item, and two row copies into the batch; stack only: 2B",
       [](const Setting& setting) { return (copies_items(setting) ? 4 : 2) * rows_in_batch(setting); }, nothing}};
  spec.cost = [](const Setting& setting) {
    return Cost{2 * 2 * static_cast<double>(rows_in_batch(setting) * setting.size("width")) * 4,
                0};  // read once, written once
  };
  spec.claims = {
      {"D0", "item access copies tensors each time", "copies per item", std::nullopt,
       "misattributed: an index is a view; the stack copies. Cases *_stack_only measure the stack alone"},
      {"D0", "an optimized loader makes input and output twice as fast", "2x", 2.0, "immaterial end to end"}};
  spec.invariants = {{"each row once, with its own embeddings and texts", broken_batches}};
  return spec;
}

}  // namespace twinbench::energy_flow::collation
