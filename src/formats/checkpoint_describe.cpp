// `twinbench data info` and `data convert` of checkpoints.
#include "src/formats/checkpoint_describe.h"

#include <nlohmann/json.hpp>
#include <sstream>

#include "src/common/error.h"
#include "src/common/one_line.h"
#include "src/formats/checkpoint_file.h"
#include "src/formats/json_text.h"

namespace twinbench {

bool is_checkpoint(const std::string& path) { return path.ends_with(".efck"); }

std::string describe_checkpoint(const std::string& path, bool as_json) {
  const CheckpointFile file(path);
  auto sections = nlohmann::ordered_json::array();
  std::ostringstream lines;
  std::uint64_t bytes = 0, stored = 0;
  for (const CheckpointSection& section : file.view().sections()) {
    std::vector<std::uint8_t> content(section.bytes);
    file.view().read(section, content);
    sections.push_back({{"name", section.name},
                        {"type", name_of(section.type)},
                        {"shape", section.shape},
                        {"bytes", section.bytes},
                        {"stored", section.stored}});
    lines << "  " << one_line(section.name) << ": " << name_of(section.type) << " "
          << nlohmann::json(section.shape).dump() << ", " << section.stored << " of " << section.bytes << " bytes\n";
    bytes += section.bytes;
    stored += section.stored;
  }
  if (as_json)
    return printed_json(nlohmann::ordered_json{{"format", "efck"},
                                               {"version", kCheckpointVersion},
                                               {"sequence", file.view().sequence()},
                                               {"metadata", file.view().metadata()},
                                               {"sections", std::move(sections)}},
                        2) +
           "\n";
  std::ostringstream text;
  text << one_line(path) << ": checkpoint " << file.view().sequence() << ", " << file.view().sections().size()
       << " sections, all checksums right, " << stored << " of " << bytes << " bytes stored\n";
  for (const auto& [key, value] : file.view().metadata())
    text << "  " << one_line(key) << " = " << one_line(value) << "\n";
  return text.str() + lines.str();
}

void convert_checkpoint(const std::string& from, const std::string& to) {
  if (is_checkpoint(from) == is_checkpoint(to))
    throw Error(ErrorKind::kBadArgument, "--out", to, "from a checkpoint (.efck) to safetensors, or back");
  if (is_checkpoint(from)) return checkpoint_to_safetensors(CheckpointFile(from).view(), to);
  checkpoint_from_safetensors(from, to, SectionCodec::kPlanes);
}

}  // namespace twinbench
