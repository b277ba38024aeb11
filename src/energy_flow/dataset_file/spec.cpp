// Component dataset_file (energy-flow C01): from a file on disk to usable, validated rows.
#include <cstring>

#include "src/energy_flow/common/sentence_pairs.h"
#include "src/spec_parts.h"

namespace twinbench::energy_flow::dataset_file {
namespace {

Signature signature() {
  return {
      .options = {invalid_every_option(), long_text_option()},
      .inputs = pair_inputs(),
      .outputs = {exact_output("input_embeddings", "rows, width").with_nan(),
                  exact_output("target_embeddings", "rows, width").with_nan(),
                  exact_output("text_bytes", "any", Element::kByte),
                  exact_output("text_offsets", "2 * rows + 1", Element::kInt64),
                  exact_output("valid", "ceil(rows, 8)", Element::kByte),
                  exact_output("dropped", "1", Element::kInt64)},
  };
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

// Embeddings of either side, an offset and a text of 34 bytes on average, but for a long one; a finite test and a norm
// are two FLOPs each.
Cost cost(const Setting& setting) {
  const auto [rows, width] = real_sizes<2>(setting, {"rows", "width"});
  const double long_text = rows > 0 ? setting.option("long_text") : 0;
  return {2 * rows * width * 4 + 2 * rows * (8 + 34) + long_text, 4 * rows * width};
}

}  // namespace

ComponentSpec make_spec() {
  ComponentSpec spec;
  spec.signature = signature();
  spec.finish_inputs = finish_pairs;
  spec.proof = {{"scalar_reads", "", [](const Setting& s) { return 4 * s.size("rows"); }, nothing},
                {"allocations", "", [](const Setting& s) { return 20 * s.size("rows"); }, nothing}};
  spec.cost = cost;
  spec.invariants = {{"every byte read is the byte written", broken_content}};
  return spec;
}

}  // namespace twinbench::energy_flow::dataset_file
