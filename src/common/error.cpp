// Names of the error kinds and the one-line message of an Error.
#include "src/common/error.h"

#include <utility>

#include "src/common/one_line.h"

namespace twinbench {

constexpr std::size_t kLongest = 1024;  // bytes of a field or value that a message repeats: it may be a whole file

const char* name_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kBadArgument: return "bad_argument";
    case ErrorKind::kUnknownName: return "unknown_name";
    case ErrorKind::kOutOfRange: return "out_of_range";
    case ErrorKind::kBadShape: return "bad_shape";
    case ErrorKind::kBadDtype: return "bad_dtype";
    case ErrorKind::kDimensionMismatch: return "dim_mismatch";
    case ErrorKind::kNonFinite: return "non_finite";
    case ErrorKind::kBadFile: return "bad_file";
    case ErrorKind::kTruncated: return "truncated";
    case ErrorKind::kCorrupt: return "corrupt";
    case ErrorKind::kInputOutput: return "input_output";
    case ErrorKind::kMissingDevice: return "missing_device";
    case ErrorKind::kOutOfMemory: return "out_of_memory";
    case ErrorKind::kBadLaunch: return "bad_launch";
    case ErrorKind::kBadKernel: return "bad_kernel";
    case ErrorKind::kInternal: return "internal";
  }
  return "internal";
}

Error::Error(ErrorKind kind, std::string field, std::string value, std::string remedy)
    : std::runtime_error(one_line(std::string(name_of(kind)) + ": " + one_line(field, kLongest) + " is '" +
                                  one_line(value, kLongest) + "': " + one_line(remedy, 4 * kLongest))),
      kind_(kind),
      field_(std::move(field)),
      value_(std::move(value)),
      remedy_(std::move(remedy)) {}

}  // namespace twinbench
