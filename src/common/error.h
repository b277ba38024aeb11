// The one error type that bad input raises: it names the field, the value that was given and the remedy.
// Only main() turns it into an exit code (2); libraries never exit.
#pragma once

#include <stdexcept>
#include <string>

namespace twinbench {

enum class ErrorKind {
  kBadArgument,        // a flag, key or value that is not understood
  kUnknownName,        // a component, case, variant, config key or filter that matches nothing
  kOutOfRange,         // a size or setting outside its limits
  kBadShape,           // a tensor of another shape or rank than declared
  kBadDtype,           // a tensor of another dtype than declared
  kDimensionMismatch,  // two sources disagree on a dimension (dataset width against configuration)
  kNonFinite,          // NaN or Inf where none is allowed
  kBadFile,            // wrong magic, version or size: not a file of this format
  kTruncated,          // shorter than the file itself says
  kCorrupt,            // checksum, offsets or contents contradict each other
  kInputOutput,        // the operating system refused to open, read or write
  kMissingDevice,      // CUDA was asked for where there is none
  kOutOfMemory,        // an allocation was refused
  kBadLaunch,          // a kernel launch that no card would take: too many threads, too much shared memory, ...
  kBadKernel,          // what a kernel did when it ran on the host: a race, an access out of bounds, ...
  kInternal,           // a broken invariant of Twinbench itself
};

// "out_of_range", "bad_file", ...: the stable name used in records, tests and messages.
const char* name_of(ErrorKind kind);

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, std::string field, std::string value, std::string remedy);
  ErrorKind kind() const { return kind_; }
  const std::string& field() const { return field_; }
  const std::string& value() const { return value_; }
  const std::string& remedy() const { return remedy_; }

 private:
  ErrorKind kind_;
  std::string field_, value_, remedy_;
};

}  // namespace twinbench
