// The registry: components.def expanded into records with their factories. The only way engines reach a component, and
// that composites reach those they are made of.
#pragma once

#include <string>
#include <vector>

#include "src/component.h"

namespace twinbench {

struct Component {
  ComponentSpec spec;
  bool has_kernel = false;  // its own, or those of the components that it is made of
  Factory baseline = nullptr;
  Factory optimized = nullptr;       // on the CPU
  Factory optimized_cuda = nullptr;  // null in a build without CUDA, and for host components
  Factory optimized_simt = nullptr;  // the same adapter and kernels, executed on the host; null for host components
  Factory library = nullptr;         // null where no stock library version exists

  bool supports(Variant variant, Device device, Dtype dtype) const;
  Factory factory(Variant variant, Device device) const;  // throws kUnknownName where there is none
  // A runnable of that variant on setting.device. The only way to one: inputs, options, card limits are checked here.
  std::unique_ptr<Runnable> make(Variant variant, const NamedTensors& inputs, const Setting& setting) const {
    return make(variant, setting.device, inputs, setting);
  }
  // The same for the code path of another device than the tensors lie on: a simulated card has its tensors on the host.
  std::unique_ptr<Runnable> make(Variant variant, Device path, const NamedTensors& inputs,
                                 const Setting& setting) const;
};

// Throws kOutOfRange, naming the expression, its value and the largest allowed one, where the kernels do not hold the
// setting's sizes.
void check_card_limits(const ComponentSpec& spec, const Setting& setting);

// All components, in the order of components.def. Built once, on first use.
const std::vector<Component>& components();

// By id ("energy_flow.simple_neuron"); throws kUnknownName with the nearest ids.
const Component& find_component(const std::string& id);

// One measurement: <id>/<variant>/<device>/<dtype>/<case>. The same string everywhere.
struct Cell {
  const Component* component = nullptr;
  Variant variant = Variant::kBaseline;
  Device device;
  Dtype dtype = Dtype::kFp32;
  const Case* input_case = nullptr;

  std::string name() const;
  Setting setting() const;
};

// Every cell of every component that this build can express, in registry order, whatever devices the machine has. On
// simt: the optimized variant of the cases that are small enough to be executed thread by thread.
std::vector<Cell> all_cells();
// The cell of that exact name; throws kUnknownName with the nearest names.
Cell find_cell(const std::string& name);
// Cells whose name a regular expression (ECMAScript, searched) matches; throws kUnknownName if it matches none.
std::vector<Cell> filter_cells(const std::string& regular_expression);

std::string to_string(Variant variant);  // baseline, optimized, library

}  // namespace twinbench
