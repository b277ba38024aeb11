// The watch of the thread.
#include "src/common/choice.h"

#include "src/common/error.h"

namespace twinbench {
namespace {

thread_local ChoiceWatch* watch = nullptr;

}  // namespace

ChoiceWatch::ChoiceWatch(std::optional<std::string> way) : way_(std::move(way)) {
  if (watch) throw Error(ErrorKind::kInternal, "ChoiceWatch", "a second one", "end the first one before");
  watch = this;
}

ChoiceWatch::~ChoiceWatch() { watch = nullptr; }

std::optional<std::string> demanded_way() { return watch ? watch->way_ : std::nullopt; }

void announce_choice(const Choice& choice) {
  if (watch) watch->made_.push_back(choice);
}

}  // namespace twinbench
