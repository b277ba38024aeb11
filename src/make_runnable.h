// The factory (component.h) of a runnable class that is made of inputs and a setting.
#pragma once

#include <memory>

#include "src/component.h"

namespace twinbench {

template <class Variant>
std::unique_ptr<Runnable> make(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Variant>(inputs, setting);
}

}  // namespace twinbench
