// What checkpoint files are called, and which of a folder's files stay.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace twinbench {

// [best_]<type>_config_<YYYYMMDD_HHMMSS>_epoch_<NNN>_loss_<i_ffff>[_<suffix>].efck, the time in UTC. A loss that is not
// finite is loss_nan or loss_inf.
struct CheckpointName {
  bool best = false;
  std::string type;       // debug, experiment, optimized: lower-case letters
  std::int64_t time = 0;  // seconds since 1970
  std::int64_t epoch = 0;
  double loss = 0;     // four decimals of it are in the name
  std::string suffix;  // letters, digits and _
};

// Throws kOutOfRange for a time outside the years 1970 to 9999, an epoch below 0 or a finite loss below 0 or beyond
// 1e15; kBadArgument for a type or suffix of other characters.
std::string checkpoint_name(const CheckpointName& name);
// None for a name of another form, whatever its extension.
std::optional<CheckpointName> parse_checkpoint_name(const std::string& file);

// By the cells of a lattice: up to 4,000 debug, up to 50,000 experiment, else optimized.
std::string checkpoint_type(std::int64_t cells);

struct NamedCheckpoint {
  std::string file;  // without its folder
  CheckpointName name;
  std::uint64_t sequence = 0;  // from inside the file: orders those of one second
};

struct CheckpointRetention {
  int keep_best = 3, keep_latest = 5;
};

// Files beyond the best (by loss, those called best; the later of equals) and the latest. Never `just_written`.
std::vector<std::string> expendable_checkpoints(const std::vector<NamedCheckpoint>& all,
                                                const CheckpointRetention& retention, const std::string& just_written);

// The folder's files with a name of that form, in the order in which they were written. Throws kInputOutput.
std::vector<NamedCheckpoint> list_checkpoints(const std::string& folder);

// Deletes what is expendable in the folder; says how many. Throws kInputOutput.
std::int64_t clean_checkpoints(const std::string& folder, const CheckpointRetention& retention,
                               const std::string& just_written);

}  // namespace twinbench
