// Names and retention of checkpoint files.
#include "src/formats/checkpoint_name.h"

#include <dirent.h>
#include <re2/re2.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <limits>
#include <memory>
#include <set>
#include <tuple>

#include "src/common/error.h"
#include "src/formats/checkpoint_layout.h"

namespace twinbench {
namespace {

constexpr std::int64_t kLastSecond = 253402300799;  // of the year 9999
constexpr double kLargestLoss = 1e15;
constexpr std::int64_t kDebugCells = 4000, kExperimentCells = 50000;

std::string loss_text(double loss) {
  if (std::isnan(loss)) return "nan";
  if (std::isinf(loss)) return "inf";
  char text[40];
  std::snprintf(text, sizeof text, "%.4f", loss);
  std::replace(text, text + std::strlen(text), '.', '_');
  return text;
}

double loss_of(std::string text) {
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (text == "inf") return std::numeric_limits<double>::infinity();
  std::replace(text.begin(), text.end(), '_', '.');
  return std::stod(text);
}

std::string stamp_text(std::int64_t time) {
  const std::time_t seconds = time;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y%m%d_%H%M%S", &parts);
  return text;
}

std::optional<std::int64_t> time_of(const std::string& stamp) {
  std::tm parts{};
  std::sscanf(stamp.c_str(), "%4d%2d%2d_%2d%2d%2d", &parts.tm_year, &parts.tm_mon, &parts.tm_mday, &parts.tm_hour,
              &parts.tm_min, &parts.tm_sec);
  parts.tm_year -= 1900;
  parts.tm_mon -= 1;
  const std::int64_t time = ::timegm(&parts);
  if (time < 0 || stamp_text(time) != stamp) return std::nullopt;  // the 31st of February
  return time;
}

// Later ones are larger.
auto order_of(const NamedCheckpoint& one) { return std::tie(one.name.time, one.sequence, one.file); }

// NaN is the worst.
double rank_of(double loss) { return std::isnan(loss) ? std::numeric_limits<double>::infinity() : loss; }

}  // namespace

std::string checkpoint_name(const CheckpointName& name) {
  static const re2::RE2 type("[a-z]+"), suffix("[A-Za-z0-9_]*");
  if (!re2::RE2::FullMatch(name.type, type))
    throw Error(ErrorKind::kBadArgument, "checkpoint type", name.type, "lower-case letters, as in debug");
  if (!re2::RE2::FullMatch(name.suffix, suffix))
    throw Error(ErrorKind::kBadArgument, "checkpoint suffix", name.suffix, "letters, digits and _");
  if (name.time < 0 || name.time > kLastSecond)
    throw Error(ErrorKind::kOutOfRange, "checkpoint time", std::to_string(name.time), "seconds since 1970, to 9999");
  if (name.epoch < 0)
    throw Error(ErrorKind::kOutOfRange, "checkpoint epoch", std::to_string(name.epoch), "epochs are counted from 0");
  if (std::isfinite(name.loss) && (std::signbit(name.loss) || name.loss > kLargestLoss))
    throw Error(ErrorKind::kOutOfRange, "checkpoint loss", std::to_string(name.loss), "0 to 1e15, NaN or Inf");
  char epoch[24];
  std::snprintf(epoch, sizeof epoch, "%03lld", static_cast<long long>(name.epoch));
  return (name.best ? "best_" : "") + name.type + "_config_" + stamp_text(name.time) + "_epoch_" + epoch + "_loss_" +
         loss_text(name.loss) + (name.suffix.empty() ? "" : "_" + name.suffix) + ".efck";
}

std::optional<CheckpointName> parse_checkpoint_name(const std::string& file) {
  static const re2::RE2 form(
      "(best_)?([a-z]+)_config_([0-9]{8}_[0-9]{6})_epoch_([0-9]{3,18})_loss_([0-9]{1,16}_[0-9]{4}|nan|inf)"
      "(?:_([A-Za-z0-9_]+))?\\.efck");
  CheckpointName name;
  std::string best, stamp, loss;
  if (!re2::RE2::FullMatch(file, form, &best, &name.type, &stamp, &name.epoch, &loss, &name.suffix))
    return std::nullopt;
  const auto time = time_of(stamp);
  if (!time) return std::nullopt;
  name.best = !best.empty();
  name.time = *time;
  name.loss = loss_of(loss);
  return name;
}

std::string checkpoint_type(std::int64_t cells) {
  return cells <= kDebugCells ? "debug" : cells <= kExperimentCells ? "experiment" : "optimized";
}

std::vector<std::string> expendable_checkpoints(const std::vector<NamedCheckpoint>& all,
                                                const CheckpointRetention& retention, const std::string& just_written) {
  std::vector<NamedCheckpoint> latest = all, best;
  const auto later = [](const NamedCheckpoint& a, const NamedCheckpoint& b) { return order_of(a) > order_of(b); };
  std::sort(latest.begin(), latest.end(), later);
  for (const NamedCheckpoint& one : latest)
    if (one.name.best) best.push_back(one);
  std::stable_sort(best.begin(), best.end(), [](const NamedCheckpoint& a, const NamedCheckpoint& b) {
    return rank_of(a.name.loss) < rank_of(b.name.loss);
  });
  std::set<std::string> kept = {just_written};
  const auto keep = [&](const std::vector<NamedCheckpoint>& from, int count) {
    for (std::size_t i = 0; i < from.size() && i < static_cast<std::size_t>(std::max(count, 0)); ++i)
      kept.insert(from[i].file);
  };
  keep(best, retention.keep_best);
  keep(latest, retention.keep_latest);
  std::vector<std::string> expendable;
  for (const NamedCheckpoint& one : all)
    if (!kept.contains(one.file)) expendable.push_back(one.file);
  return expendable;
}

std::vector<NamedCheckpoint> list_checkpoints(const std::string& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(folder.c_str()), ::closedir);
  if (directory == nullptr)
    throw Error(ErrorKind::kInputOutput, folder, std::strerror(errno), "give a folder that exists and may be read");
  std::vector<NamedCheckpoint> found;
  while (const dirent* entry = ::readdir(directory.get())) {
    const auto name = parse_checkpoint_name(entry->d_name);
    if (!name) continue;
    std::ifstream file(folder + "/" + entry->d_name, std::ios::binary);
    std::array<std::uint8_t, kCheckpointHeaderBytes> header{};
    file.read(reinterpret_cast<char*>(header.data()), header.size());
    found.push_back({entry->d_name, *name, checkpoint_sequence(header)});
  }
  std::sort(found.begin(), found.end(),
            [](const NamedCheckpoint& a, const NamedCheckpoint& b) { return order_of(a) < order_of(b); });
  return found;
}

std::int64_t clean_checkpoints(const std::string& folder, const CheckpointRetention& retention,
                               const std::string& just_written) {
  std::int64_t deleted = 0;
  for (const std::string& file : expendable_checkpoints(list_checkpoints(folder), retention, just_written)) {
    if (::unlink((folder + "/" + file).c_str()) != 0 && errno != ENOENT)
      throw Error(ErrorKind::kInputOutput, folder + "/" + file, std::strerror(errno), "let it be deleted");
    ++deleted;
  }
  return deleted;
}

}  // namespace twinbench
