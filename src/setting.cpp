// Lookup in a setting, and the names of its enumerations.
#include "src/setting.h"

#include "src/common/error.h"

namespace twinbench {

std::int64_t Setting::size(const std::string& name) const {
  const auto found = input_case.sizes.find(name);
  if (found == input_case.sizes.end())
    throw Error(ErrorKind::kUnknownName, "size", name, "case '" + input_case.name + "' has no such size");
  return found->second;
}

double Setting::option(const std::string& name) const {
  const auto found = input_case.options.find(name);
  if (found == input_case.options.end())
    throw Error(ErrorKind::kUnknownName, "option", name, "case '" + input_case.name + "' has no such option");
  return found->second;
}

std::string to_string(Dtype dtype) {
  constexpr const char* names[] = {"fp64", "fp32", "bf16", "tf32", "fp16"};
  return names[static_cast<int>(dtype)];
}

std::string to_string(Pass pass) { return pass == Pass::kForward ? "forward" : "backward"; }

}  // namespace twinbench
