// What compilers say of the kernels (ci/kernel_budgets.json, ci/kernel_sass.json), joined with the counts of a launch.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "harness/model/launch_time.h"
#include "harness/simt/counting/launch_counts.h"

namespace twinbench::model {

// Of one kernel compiled for one architecture. Instructions as they stand in the code, not as they are executed.
struct KernelFigures {
  int registers = 0, spill_bytes = 0;
  double warps_per_multiprocessor = 0;  // at the documents' sizes, where shared memory is dynamic
  double loads_in_flight = 1;           // of one warp, on average, before it waits
  double copies_in_flight = 1;          // asynchronous ones
  double tensor = 0, copies = 0;        // tensor-core products, asynchronous copies
  struct Code {
    double instructions = 0, memory_instructions = 0, fma = 0, special = 0;
  };
  // Of the whole kernel; among it the straight pieces of code with a tensor-core product, and the others with an
  // asynchronous copy.
  Code all, with_products, with_copies;
};

class CompiledKernels {
 public:
  // Throws kBadFile that names the file, the kernel and the field.
  static CompiledKernels load(const std::string& budgets, const std::string& machine_code);
  // nullptr where a file does not know it: it is not pinned yet.
  const KernelFigures* find(const std::string& kernel, const std::string& architecture) const;

 private:
  std::map<std::pair<std::string, std::string>, KernelFigures> figures_;
};

// Executed instructions are an estimate: accesses of memory, products and asynchronous copies are counted, and the code
// says how many instructions of each kind stand beside one.
LaunchWork work_of(const kernels::simt::LaunchCounts& counts, const KernelFigures& figures);

}  // namespace twinbench::model
