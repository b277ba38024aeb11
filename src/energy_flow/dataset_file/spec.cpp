// Component dataset_file (energy-flow C01): from a file on disk to usable, validated rows.
#include <cstring>

#include "src/energy_flow/common/sentence_pairs.h"
#include "src/spec_parts.h"

namespace twinbench::energy_flow::dataset_file {
namespace {

Case make_case(const std::string& name, std::int64_t rows, std::int64_t width) {
  return sized_case(name, {{"rows", rows}, {"width", width}});
}

Signature signature() {
  return {
      .sizes = {{"rows", 0}, {"width", 1, 1 << 16}},
      .options = {invalid_every_option()},
      .inputs = pair_inputs(),
      .outputs = {exact_output("input_embeddings", "rows, width").with_nan(),
                  exact_output("target_embeddings", "rows, width").with_nan(),
                  exact_output("text_bytes", "any", Element::kByte),
                  exact_output("text_offsets", "2 * rows + 1", Element::kInt64),
                  exact_output("valid", "ceil(rows, 8)", Element::kByte),
                  exact_output("dropped", "1", Element::kInt64)},
  };
}

std::vector<Case> make_cases() {
  std::vector<Case> cases = {make_case("empty", 0, 5),          make_case("one", 1, 1),
                             make_case("tiny", 7, 3),           make_case("odd", 131, 97),
                             make_case("adversarial", 33, 17),  make_case("zeros", 9, 4),
                             make_case("documented", 5021, 768)};
  cases[0].degenerate = true;
  cases[3].options["invalid_every"] = 5;
  cases[4].distribution = "adversarial";
  cases[5].distribution = "zeros";
  cases[6].timed = true;
  cases[6].options["invalid_every"] = 1000;
  return cases;
}

std::string broken_content(const NamedTensors& inputs, const NamedTensors& outputs, const Setting&) {
  for (const char* name : {"input_embeddings", "target_embeddings", "text_bytes", "text_offsets"}) {
    const at::Tensor expected = inputs[name].contiguous(), got = outputs[name].contiguous();
    if (expected.scalar_type() != got.scalar_type()) continue;  // the oracle's inputs are fp64, the file is fp32
    const bool same =
        expected.nbytes() == got.nbytes() &&  // an empty tensor has no address to compare
        (got.nbytes() == 0 || std::memcmp(expected.const_data_ptr(), got.const_data_ptr(), got.nbytes()) == 0);
    if (!same) return std::string(name) + " is not what was written";
  }
  return "";
}

double file_bytes(const Setting& setting) {
  const auto rows = static_cast<double>(setting.size("rows"));
  return 2 * rows * static_cast<double>(setting.size("width")) * 4 +
         2 * rows * (8 + 34);  // texts have 34 bytes on average
}

}  // namespace

ComponentSpec make_spec() {
  ComponentSpec spec;
  spec.summary =
      "Opens a dataset file, checks its checksums and which rows are fit for training, and makes every row usable.";
  spec.source = "energy_flow C01";
  spec.sin = "one read of everything, then a tensor, a finite test and a norm read back for every single row";
  spec.cases = make_cases();
  spec.signature = signature();
  spec.finish_inputs = finish_pairs;
  spec.proof = {{"scalar_reads", "4 rows: a finite test and a norm read back for both sides of every row",
                 [](const Setting& setting) { return 4 * setting.size("rows"); }, nothing},
                {"allocations", "20 rows: for either side of a row its own tensor and the nine of its two tests",
                 [](const Setting& setting) { return 20 * setting.size("rows"); }, nothing}};
  spec.cost = [](const Setting& setting) {
    return Cost{file_bytes(setting), 4.0 * static_cast<double>(setting.size("rows") * setting.size("width"))};
  };
  spec.claims = {
      {"D0", "5,021 pairs of 768-wide embeddings take 31 MB", "31 MB", std::nullopt, "ok"},
      {"D0", "loading the dataset is a bottleneck worth a faster input path", "2x", 2.0, "immaterial end to end"}};
  spec.invariants = {{"every byte read is the byte written", broken_content}};
  return spec;
}

}  // namespace twinbench::energy_flow::dataset_file
