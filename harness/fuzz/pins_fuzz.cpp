// libFuzzer target: the bytes as each file of pins. What is read equals itself.
#include <cstdint>
#include <cstdlib>

#include "harness/counters/pins.h"
#include "harness/fuzz/as_file.h"
#include "harness/fuzz/unless_refused.h"
#include "harness/instructions/instruction_pins.h"
#include "harness/model/time_pin.h"
#include "harness/simt/counting/counts_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace twinbench;
  const AsFile file(data, size);
  unless_refused([&] {
    const Pins pins = Pins::load(file.path());
    for (const auto& [cell, counters] : pins.cells())
      if (!pins.check(cell, counters).pass) std::abort();
  });
  unless_refused([&] { (void)InstructionPins::load(file.path()); });
  unless_refused([&] {
    const auto counts = kernels::simt::CountsFile::load(file.path());
    for (const auto& [cell, kernels] : counts.cells()) {
      if (!counts.compare(cell, kernels).empty()) std::abort();
      for (const auto& [name, pinned] : kernels.items())
        if (name.starts_with(kernels::simt::kNoCount))
          unless_refused([&, &pinned = pinned] { (void)model::time_pin_of(pinned, "fuzzed"); });
    }
  });
  return 0;
}
