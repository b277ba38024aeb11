// Comparison of a run's configuration with a checkpoint's.
#include "src/formats/checkpoint_fields.h"

#include "src/common/error.h"

namespace twinbench {
namespace {

constexpr char kPrefix[] = "config.";

}  // namespace

void add_checkpoint_fields(CheckpointMetadata& metadata, const std::vector<CheckpointField>& fields) {
  for (const CheckpointField& field : fields) metadata[kPrefix + field.name] = field.value;
}

std::vector<std::string> check_checkpoint_fields(const CheckpointMetadata& metadata,
                                                 const std::vector<CheckpointField>& run, bool strict) {
  std::vector<std::string> differences;
  for (const CheckpointField& field : run) {
    const auto found = metadata.find(kPrefix + field.name);
    const std::string saved = found == metadata.end() ? "nothing" : found->second;
    if (saved == field.value) continue;
    const std::string remedy = "the run has " + field.value + ": restore with the configuration that saved it";
    if (field.critical) throw Error(ErrorKind::kDimensionMismatch, field.name, saved + " in the checkpoint", remedy);
    if (strict) throw Error(ErrorKind::kBadArgument, field.name, saved + " in the checkpoint", remedy);
    differences.push_back(field.name + " was " + saved + ", the run has " + field.value);
  }
  return differences;
}

}  // namespace twinbench
