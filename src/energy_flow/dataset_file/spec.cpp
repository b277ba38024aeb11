// Component dataset_file (energy-flow C01): from a file on disk to usable, validated rows.
#include <cstring>

#include "src/energy_flow/common/sentence_pairs.h"
#include "src/spec_parts.h"

namespace twinbench::energy_flow::dataset_file {
namespace {

using draws::literal;

Case make_case(const std::string& name, std::int64_t rows, std::int64_t width) {
  return sized_case(name, {{"rows", rows}, {"width", width}});
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

// Norms 1, 0.005 (too small), 100 (the largest legal), NaN, 1 against 101 (too large on the target side).
Golden norm_limits() {
  Golden golden;
  golden.name = "norm limits";
  golden.setting.input_case = make_case("golden", 5, 2);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  at::Tensor bytes = at::empty({0}, at::kByte), offsets = at::empty({11}, at::kLong),
             bitmap = at::empty({1}, at::kByte), dropped = at::empty({1}, at::kLong);
  std::memset(offsets.mutable_data_ptr<std::int64_t>(), 0, 11 * sizeof(std::int64_t));
  bitmap.mutable_data_ptr<std::uint8_t>()[0] = 0b00101;
  dropped.mutable_data_ptr<std::int64_t>()[0] = 3;
  golden.inputs = {{"input_embeddings", literal({5, 2}, {0.6, 0.8, 0.003, 0.004, 60, 80, nan, 1, 0, 1})},
                   {"target_embeddings", literal({5, 2}, {0.8, 0.6, 1, 0, 0, 1, 0, 1, 101, 0})},
                   {"text_bytes", bytes},
                   {"text_offsets", offsets}};
  golden.expected = {{"valid", bitmap}, {"dropped", dropped}};
  golden.absolute = 0;
  return golden;
}

std::string broken_content(const NamedTensors& inputs, const NamedTensors& outputs, const Setting&) {
  for (const char* name : {"input_embeddings", "target_embeddings", "text_bytes", "text_offsets"}) {
    const at::Tensor expected = inputs[name].contiguous(), got = outputs[name].contiguous();
    if (expected.scalar_type() != got.scalar_type()) continue;  // the oracle's inputs are fp64, the file is fp32
    const bool same = expected.nbytes() == got.nbytes() &&  // an empty tensor has no address to compare
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
  spec.pipeline = "energy_flow";
  spec.name = "dataset_file";
  spec.summary =
      "Opens a dataset file, checks its checksums and which rows are fit for training, and makes every row usable.";
  spec.source = "energy_flow C01";
  spec.sin = "one read of everything, then a tensor, a finite test and a norm read back for every single row";
  spec.cases = make_cases();
  spec.make_inputs = energy_flow::make_pairs;
  spec.outputs = {exact_output("input_embeddings", true),
                  exact_output("target_embeddings", true),
                  exact_output("text_bytes"),
                  exact_output("text_offsets"),
                  exact_output("valid"),
                  exact_output("dropped")};
  const auto none = [](const Setting&) { return std::int64_t{0}; };
  spec.proof = {{"scalar_reads", "4 rows: a finite test and a norm read back for both sides of every row",
                 [](const Setting& setting) { return 4 * setting.size("rows"); }, none},
                {"allocations", "20 rows: for either side of a row its own tensor and the nine of its two tests",
                 [](const Setting& setting) { return 20 * setting.size("rows"); }, none}};
  spec.cost = [](const Setting& setting) {
    return Cost{file_bytes(setting), 4.0 * static_cast<double>(setting.size("rows") * setting.size("width"))};
  };
  spec.claims = {
      {"D0", "5,021 pairs of 768-wide embeddings take 31 MB", "31 MB", std::nullopt, "ok"},
      {"D0", "loading the dataset is a bottleneck worth a faster input path", "2x", 2.0, "immaterial end to end"}};
  spec.goldens = {norm_limits};
  spec.invariants = {{"every byte read is the byte written", broken_content}};
  return spec;
}

}  // namespace twinbench::energy_flow::dataset_file
