// The component of a test: a signature and two classes of variants.
#pragma once

#include <string>
#include <utility>

#include "src/make_runnable.h"
#include "src/registry.h"

namespace twinbench {

template <class Baseline, class Optimized>
Component test_component(const std::string& name, Signature signature) {
  Component component;
  component.spec.pipeline = "test";
  component.spec.name = name;
  component.spec.signature = std::move(signature);
  component.baseline = make<Baseline>;
  component.optimized = make<Optimized>;
  return component;
}

}  // namespace twinbench
