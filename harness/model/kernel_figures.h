// What compilers say of the kernels (ci/kernel_budgets.json, ci/kernel_sass.json), joined with the counts of a launch.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "harness/model/executions.h"
#include "harness/model/kernel_places.h"
#include "harness/model/launch_time.h"
#include "harness/simt/counting/launch_counts.h"

namespace twinbench::model {

// Of one kernel compiled for one architecture. Instructions as they stand in the code, not as they are executed.
struct KernelFigures {
  int registers = 0, spill_bytes = 0;
  double warps_per_multiprocessor = 0;  // at the documents' sizes, where shared memory is dynamic
  double loads_in_flight = 1;   // of one warp before it waits, on average over the code as it stands: weights by
                                // executions_of would say the same of an unrolled loop and its tail, which
                                // share their places
  double copies_in_flight = 1;  // asynchronous ones
  double instructions = 0;
  std::vector<KernelPlace> places;
  std::vector<CodePiece> pieces;
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

// Executed instructions are an estimate, from the accesses of memory, barriers and products that were counted.
LaunchWork work_of(const kernels::simt::LaunchCounts& counts, const KernelFigures& figures);

}  // namespace twinbench::model
