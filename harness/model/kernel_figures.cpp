// Reading the pins of compiled kernels; scaling of sampled counts to the whole grid.
#include "harness/model/kernel_figures.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "src/common/error.h"

namespace twinbench::model {
namespace {

using kernels::simt::Access;
using nlohmann::json;

json kernels_of(const std::string& path) {
  std::ifstream stream(path);
  json root = json::parse(stream, nullptr, false);
  if (!root.is_object() || !root.value("kernels", json()).is_object())
    throw Error(ErrorKind::kBadFile, path, "no object of kernels",
                "write it anew with --pin of the script of its name");
  return root["kernels"];
}

double number(const json& row, const char* field, const std::string& where) {
  if (!row.contains(field) || !row[field].is_number())
    throw Error(ErrorKind::kBadFile, where, std::string(field) + " is missing or no number", "pin the file anew");
  return row[field];
}

double optional_number(const json& row, const char* field) { return row.value(field, 0.0); }

}  // namespace

CompiledKernels CompiledKernels::load(const std::string& budgets, const std::string& machine_code) {
  CompiledKernels kernels;
  const json of_budgets = kernels_of(budgets), of_code = kernels_of(machine_code);
  for (const auto& [kernel, architectures] : of_budgets.items())
    for (const auto& [architecture, row] : architectures.items()) {
      if (!of_code.contains(kernel) || !of_code[kernel].contains(architecture)) continue;
      const std::string where = kernel + " " + architecture;
      const json& code = of_code[kernel][architecture];
      KernelFigures figures;
      figures.registers = static_cast<int>(number(row, "registers", budgets + ": " + where));
      figures.spill_bytes = static_cast<int>(number(row, "spill_store_bytes", budgets + ": " + where));
      figures.warps_per_multiprocessor = number(row, "warps_per_sm", budgets + ": " + where);
      figures.loads_in_flight = number(code, "loads_in_flight", machine_code + ": " + where);
      figures.instructions = number(code, "instructions", machine_code + ": " + where);
      for (const char* kind : {"global_loads", "global_stores", "global_atomics", "shared", "asynchronous_copies"})
        figures.memory_instructions += optional_number(code, kind);
      figures.fma = optional_number(code, "fma");
      figures.special = optional_number(code, "special");
      kernels.figures_[{kernel, architecture}] = figures;
    }
  return kernels;
}

const KernelFigures* CompiledKernels::find(const std::string& kernel, const std::string& architecture) const {
  const auto found = figures_.find({kernel, architecture});
  return found == figures_.end() ? nullptr : &found->second;
}

LaunchWork work_of(const kernels::simt::LaunchCounts& counts, const KernelFigures& figures) {
  LaunchWork work;
  work.blocks = static_cast<double>(counts.grid.x) * counts.grid.y * counts.grid.z;
  work.threads_per_block = static_cast<double>(counts.block.x) * counts.block.y * counts.block.z;
  work.warps_per_multiprocessor = figures.warps_per_multiprocessor;
  work.loads_in_flight = figures.loads_in_flight;
  const double whole = counts.blocks == 0 ? 0 : work.blocks / static_cast<double>(counts.blocks);
  work.memory_bytes = 32 * whole * static_cast<double>(counts.read_sectors + counts.written_sectors);
  work.barriers = whole * static_cast<double>(counts.barriers);
  work.warp_operations = whole * static_cast<double>(counts.warp_operations);
  double requests = 0;
  for (const auto& site : counts.sites) {
    requests += whole * static_cast<double>(site.requests);
    if (site.shared) {
      work.wavefronts += whole * static_cast<double>(site.units);
    } else {
      work.sectors += whole * static_cast<double>(site.units);
      if (site.access == Access::kRead) work.load_requests += whole * static_cast<double>(site.requests);
    }
  }
  if (figures.memory_instructions > 0) {
    const double executions = requests / figures.memory_instructions;
    work.instructions = executions * figures.instructions;
    work.fma_instructions = executions * figures.fma;
    work.special_instructions = executions * figures.special;
  }
  return work;
}

}  // namespace twinbench::model
