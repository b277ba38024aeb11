// Looks through the pinned counts of one component.
#include "harness/counters/pieces.h"

namespace twinbench {

std::string never_in_pieces(const Component& component, const Pins& pins) {
  std::string whole;
  bool any_in_pieces = false;
  for (const auto pass : {Pass::kForward, Pass::kBackward}) {
    std::size_t cells = 0;
    bool all_pinned = true, in_pieces = false;
    for (const auto& input_case : component.spec.cases)
      for (const auto dtype : component.spec.dtypes) {
        if (input_case.pass != pass || !input_case.specimen.empty()) continue;
        ++cells;
        const auto* pinned =
            pins.find(Cell{&component, Variant::kOptimized, c10::DeviceType::CPU, dtype, &input_case}.name());
        all_pinned = all_pinned && pinned;
        in_pieces = in_pieces ||
                    (pinned && (pinned->process_calls.count("parallel") || pinned->process_calls.count("threads")));
      }
    any_in_pieces = any_in_pieces || in_pieces;
    if (cells > 0 && all_pinned && !in_pieces)
      whole = std::string("no ") + (pass == Pass::kForward ? "forward" : "backward") + " case of " +
              component.spec.id() + " is cut into more than one piece of work: add one that is large enough";
  }
  return any_in_pieces ? whole : "";
}

}  // namespace twinbench
