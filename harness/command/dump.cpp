// `twinbench dump`: runs one cell once and writes its inputs and outputs for any other implementation to check.
#include <ATen/ATen.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "harness/command/command.h"
#include "harness/command/tensor_file.h"
#include "src/common/error.h"

namespace twinbench {

int dump_command(const CommandOptions& options, const std::string& name, const std::vector<std::string>& sizes, const std::string& out) {
  const auto cell = find_cell(name);
  if (cell.device == c10::DeviceType::CUDA && at::getNumGPUs() == 0)
    throw Error(ErrorKind::kMissingDevice, "cell", name, "no CUDA device is visible here; dump the cpu cell");
  Setting setting = cell.setting();
  override_sizes(setting.values, sizes);
  TensorFile file;
  file.inputs = cell.component->spec.make_inputs(setting, options.seed);
  Values moved;
  for (const auto& [input, tensor] : file.inputs) moved.set(input, tensor.to(setting.device));
  const auto runnable = cell.component->factory(cell.variant, cell.device)(moved, setting);
  runnable->run();
  file.outputs = runnable->outputs();
  file.metadata = {{"cell", name}, {"seed", std::to_string(options.seed)}, {"sizes", nlohmann::json(setting.values.sizes).dump()},
                   {"options", nlohmann::json(setting.values.options).dump()}};
  write_tensor_file(out, file);
  std::cout << out << ": " << file.inputs.size() << " inputs, " << file.outputs.size() << " outputs of " << name << " (seed " << options.seed << ")\n";
  return kExitPass;
}

}  // namespace twinbench
