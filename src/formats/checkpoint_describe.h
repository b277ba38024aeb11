// What a checkpoint holds, for people and for programs; and its conversions by file name.
#pragma once

#include <string>

namespace twinbench {

// By the name: "....efck".
bool is_checkpoint(const std::string& path);

// Checks every section's checksum. Throws what CheckpointFile and CheckpointView::read throw.
std::string describe_checkpoint(const std::string& path, bool as_json);

// From or to a checkpoint, the other file being safetensors. Throws kBadArgument for two of a kind.
void convert_checkpoint(const std::string& from, const std::string& to);

}  // namespace twinbench
