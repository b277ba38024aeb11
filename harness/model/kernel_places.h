// Joins the places that a kernel's machine code names with those at which the host run counted accesses.
#pragma once

#include <string>
#include <vector>

#include "harness/model/executions.h"
#include "harness/simt/counting/launch_counts.h"
#include "harness/simt/counting/source_place.h"

namespace twinbench::model {

// Something that is counted, at a place of the source: "shared load" and the like; "warps", "barriers" and "products"
// stand at none.
struct KernelPlace {
  std::string what;
  kernels::simt::SourcePlace at;
};

struct CountedPlace {
  std::string what;
  kernels::simt::SourcePlace at;
  double words = 0;  // of 4 bytes, of all requests of warps; of what is no access the number
};

// All that was counted of a launch, for the blocks that ran.
std::vector<CountedPlace> counted_places(const kernels::simt::LaunchCounts& counts);

struct JoinedPlaces {
  CountedWords words;
  double known = 0, all = 0;  // words of accesses: at a place that the machine code names, and of all
};
// Host and card need not name a place alike. An access joins the same place; else those of the same call of a helper,
// whose forms for host and card stand on other lines; else those on the same line of a helper, then of the helper's
// file, for a function that the host did not inline is known by its own lines alone; else the nearest line of the file,
// up to two away. A place without an access was not reached, or is unknown if an access of its kind in its file has
// found none.
JoinedPlaces join(const std::vector<KernelPlace>& places, const std::vector<CountedPlace>& counted);

// Where a line that was `line` of the file, and begins with `text`, stands now: the nearest such line.
int present_line(const std::string& file, int line, const std::string& text);

}  // namespace twinbench::model
