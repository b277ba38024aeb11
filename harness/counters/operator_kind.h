// What an operator is to the counters, derived from its schema and registrations.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace twinbench {

enum class OperatorKind {
  kTransparent,  // a composite, a view or metadata: not counted, what it issues is
  kDispatch,     // computes
  kCopy,         // moves data without computing
  kRead,         // brings a scalar to the host
};

struct OperatorClass {
  OperatorKind kind = OperatorKind::kTransparent;
  bool synchronises = false;  // on a device the host would wait for its result
};

OperatorClass classify(const c10::OperatorHandle& handle);

}  // namespace twinbench
