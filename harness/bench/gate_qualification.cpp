// A runnable against itself, as null_test_row does, many times.
#include "harness/bench/gate_qualification.h"

#include "harness/compare/inputs.h"
#include "harness/timing/paired.h"

namespace twinbench {

Qualification qualify_on(const Cell& cell, const TwinTimingOptions& options, std::size_t rounds) {
  const auto setting = cell.setting();
  const auto inputs =
      placed_inputs(generated_inputs(cell.component->spec, setting, options.seed), setting.dtype, setting.device);
  const auto runnable = cell.component->make(cell.variant, inputs, setting);
  runnable->run();
  SteadyClock clock;
  Side side;
  side.name = cell.name();
  side.run = [&] {
    runnable->run();
    runnable->outputs();
  };
  const Side planted = planted_side(side, clock);
  PairedOptions paired = paired_options(options);
  Qualification qualification;
  for (std::size_t round = 0; round < rounds; ++round) {
    for (int again = 0; again < 2; ++again, ++paired.seed)
      qualification.add_null(measure_pair(side, side, paired, clock));
    // ratio = time of the first over time of the second: a slower second one is what must be seen.
    qualification.add_planted(measure_pair(side, planted, paired, clock));
    ++paired.seed;
  }
  return qualification;
}

}  // namespace twinbench
