// `twinbench dump`: runs one cell once and writes its inputs and outputs for any other implementation to check.
#include <ATen/ATen.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "harness/command/command.h"
#include "harness/command/tensor_file.h"
#include "harness/compare/inputs.h"
#include "src/common/error.h"
#include "src/common/one_line.h"
#include "src/inputs.h"

namespace twinbench {

int dump_command(const CommandOptions& options, const std::string& name, const std::vector<std::string>& sizes,
                 const std::string& out) {
  const auto cell = find_cell(name);
  if (cell.device == c10::DeviceType::CUDA && at::getNumGPUs() == 0)
    throw Error(ErrorKind::kMissingDevice, "cell", name, "no CUDA device is visible here; dump the cpu cell");
  Setting setting{*cell.input_case, cell.dtype, cell.device};
  override_sizes(setting.input_case, sizes);
  const Sizes given = setting.input_case.sizes;
  setting = completed(cell.component->spec.signature, setting);
  TensorFile file;
  file.inputs = generated_inputs(cell.component->spec, setting, options.seed);
  const auto placed = placed_inputs(file.inputs, setting.dtype, setting.device);
  const auto runnable = cell.component->make(cell.variant, placed, setting);
  runnable->run();
  file.outputs = runnable->outputs();
  file.metadata = {{"cell", name},
                   {"seed", std::to_string(options.seed)},
                   {"sizes", nlohmann::json(given).dump()},
                   {"options", nlohmann::json(setting.input_case.options).dump()}};
  write_tensor_file(out, file);
  std::cout << one_line(out) << ": " << file.inputs.size() << " inputs, " << file.outputs.size() << " outputs of "
            << name << " (seed " << options.seed << ")\n";
  return kExitPass;
}

}  // namespace twinbench
