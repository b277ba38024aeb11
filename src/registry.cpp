// Expands components.def into records. A component whose spec or factory is missing is a link error that names it.
#include "src/registry.h"

#include <algorithm>

#include "src/check_spec.h"
#include "src/common/filter_pattern.h"
#include "src/common/nearest_name.h"
#include "src/inputs.h"
#include "src/spec_tables.h"

namespace twinbench {

#define TWINBENCH_FACTORY(name) std::unique_ptr<Runnable> name(const NamedTensors&, const Setting&);
#define TWINBENCH_DECLARE_library TWINBENCH_FACTORY(make_library)
#define TWINBENCH_DECLARE_plain
#define TWINBENCH_DECLARE_host
#ifdef TWINBENCH_WITH_CUDA
#define TWINBENCH_DECLARE_kernel TWINBENCH_FACTORY(make_cuda) TWINBENCH_FACTORY(make_simt)
#else
#define TWINBENCH_DECLARE_kernel TWINBENCH_FACTORY(make_simt)
#endif
#define TWINBENCH_DECLARE_composite TWINBENCH_DECLARE_kernel
#define TWINBENCH_COMPONENT(pipeline, name, kind, variants) \
  namespace pipeline::name {                                \
  ComponentSpec make_spec();                                \
  TWINBENCH_FACTORY(make_baseline)                          \
  TWINBENCH_FACTORY(make_cpu)                               \
  TWINBENCH_DECLARE_##kind TWINBENCH_DECLARE_##variants     \
  }
#include "src/components.def"
#undef TWINBENCH_COMPONENT

namespace {

#define TWINBENCH_USE_library(space) &space::make_library
#define TWINBENCH_USE_plain(space) nullptr
#define TWINBENCH_USE_host(space) nullptr, nullptr
#ifdef TWINBENCH_WITH_CUDA
#define TWINBENCH_USE_kernel(space) &space::make_cuda, &space::make_simt
#else
#define TWINBENCH_USE_kernel(space) nullptr, &space::make_simt
#endif
#define TWINBENCH_USE_composite(space) TWINBENCH_USE_kernel(space)
#define TWINBENCH_IS_kernel true
#define TWINBENCH_IS_composite true
#define TWINBENCH_IS_host false

// A component's id is what the list says.
Component named(const char* pipeline, const char* name, Component component) {
  set_id(component.spec, pipeline, name);
  read_tables(component.spec, spec_text(component.spec.id()));
  check_spec(component.spec);
  return component;
}

std::vector<Component> expand_list() {
  std::vector<Component> list;
#define TWINBENCH_COMPONENT(pipeline, name, kind, variants)                                                         \
  list.push_back(named(                                                                                             \
      #pipeline, #name,                                                                                             \
      {pipeline::name::make_spec(), TWINBENCH_IS_##kind, &pipeline::name::make_baseline, &pipeline::name::make_cpu, \
       TWINBENCH_USE_##kind(pipeline::name), TWINBENCH_USE_##variants(pipeline::name)}));
#include "src/components.def"
#undef TWINBENCH_COMPONENT
  return list;
}

// Most bytes that a case on simt may have to move, in fp32: then all checks of a cell take a second or two there.
// One of fixed sizes that is not timed is there for them, to reach a kernel that a launcher chooses from some size on.
constexpr double kMostSimtBytes = 2.5e5, kMostFixedSimtBytes = 1.2e6;

bool fits_device(const Cell& cell) {
  if (!cell.device.is_simt()) return true;
  Setting setting = cell.setting();
  setting.dtype = Dtype::kFp32;  // so that a case is there in all dtypes or in none
  const bool for_its_sizes = cell.input_case->fixed && !cell.input_case->timed;
  return cell.component->spec.cost &&
         cell.component->spec.cost(setting).bytes <= (for_its_sizes ? kMostFixedSimtBytes : kMostSimtBytes);
}

}  // namespace

void check_card_limits(const ComponentSpec& spec, const Setting& setting) {
  for (const auto& limit : spec.card_limits) {
    if (limit.pass && *limit.pass != setting.input_case.pass) continue;
    const std::int64_t value = limit.of.evaluate([&](const std::string& size) { return setting.size(size); });
    if (value > limit.most)
      throw Error(ErrorKind::kOutOfRange, limit.of.text(), std::to_string(value),
                  "at most " + std::to_string(limit.most) + " on a card: " + limit.meaning);
  }
}

const std::vector<Component>& components() {
  static const std::vector<Component> list = expand_list();
  return list;
}

const Component& find_component(const std::string& id) {
  std::vector<std::string> ids;
  for (const auto& component : components()) {
    if (component.spec.id() == id) return component;
    ids.push_back(component.spec.id());
  }
  throw Error(ErrorKind::kUnknownName, "component", id, "`twinbench list` shows them" + did_you_mean(id, ids));
}

bool Component::supports(Variant variant, Device device, Dtype dtype) const {
  if (std::find(spec.dtypes.begin(), spec.dtypes.end(), dtype) == spec.dtypes.end()) return false;
  if (device.takes_cuda_path() && !has_kernel) return false;
  if (device.is_simt()) return variant == Variant::kOptimized;
  if (variant == Variant::kLibrary) return library != nullptr;
  if (variant == Variant::kOptimized && device.is_cuda()) return optimized_cuda != nullptr;
  return true;
}

Factory Component::factory(Variant variant, Device device) const {
  Factory factory = variant == Variant::kBaseline  ? baseline
                    : variant == Variant::kLibrary ? library
                    : device.is_simt()             ? optimized_simt
                    : device.is_cuda()             ? optimized_cuda
                                                   : optimized;
  if (!factory)
    throw Error(ErrorKind::kUnknownName, spec.id() + " variant", to_string(variant) + " on " + to_string(device),
                "this build has no such variant; `twinbench list` shows those it has");
  return factory;
}

std::unique_ptr<Runnable> Component::make(Variant variant, Device path, const NamedTensors& inputs,
                                          const Setting& setting) const {
  const Setting complete = bound(spec.signature, inputs, setting);
  if (variant == Variant::kOptimized && path.takes_cuda_path()) check_card_limits(spec, complete);
  if (spec.check_inputs) spec.check_inputs(inputs, complete);
  auto runnable = factory(variant, path)(inputs, complete);
  runnable->has_state_ = spec.signature.has_state();
  return runnable;
}

std::string Cell::name() const {
  return component->spec.id() + "/" + to_string(variant) + "/" + to_string(device) + "/" + to_string(dtype) + "/" +
         input_case->name;
}

Setting Cell::setting() const { return completed(component->spec.signature, {*input_case, dtype, device}); }

std::vector<Cell> all_cells() {
  std::vector<Cell> cells;
  for (const auto& component : components())
    for (const auto& input_case : component.spec.cases)
      for (const Device& device : {Device(c10::DeviceType::CPU), Device(c10::DeviceType::CUDA), Device::simt()})
        for (const auto dtype : component.spec.dtypes)
          for (const auto variant : {Variant::kBaseline, Variant::kOptimized, Variant::kLibrary}) {
            if (!component.supports(variant, device, dtype)) continue;
            if (!input_case.specimen.empty() && variant != Variant::kBaseline) continue;
            const Cell cell{&component, variant, device, dtype, &input_case};
            if (fits_device(cell)) cells.push_back(cell);
          }
  return cells;
}

Cell find_cell(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& cell : all_cells()) {
    if (cell.name() == name) return cell;
    names.push_back(cell.name());
  }
  throw Error(ErrorKind::kUnknownName, "cell", name, "`twinbench list --cells` shows them" + did_you_mean(name, names));
}

std::vector<Cell> filter_cells(const std::string& regular_expression) {
  const FilterPattern pattern(regular_expression);
  std::vector<Cell> matching;
  std::vector<std::string> ids;
  for (const auto& cell : all_cells())
    if (pattern.found_in(cell.name())) matching.push_back(cell);
  if (!matching.empty()) return matching;
  for (const auto& component : components()) ids.push_back(component.spec.id());
  throw Error(ErrorKind::kUnknownName, "--filter", regular_expression,
              "no cell matches; `twinbench list --cells` shows them" + did_you_mean(regular_expression, ids));
}

std::string to_string(Variant variant) {
  return variant == Variant::kBaseline ? "baseline" : variant == Variant::kOptimized ? "optimized" : "library";
}
}  // namespace twinbench
