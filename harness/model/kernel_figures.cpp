// Reading the pins of compiled kernels; scaling of sampled counts to the whole grid.
#include "harness/model/kernel_figures.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "src/common/error.h"
#include "src/formats/json_text.h"

namespace twinbench::model {
namespace {

namespace simt = kernels::simt;
using kernels::simt::Access;
using nlohmann::json;

json kernels_of(const std::string& path) {
  const json root = read_json_file(path, "pins of compiled kernels");
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

KernelFigures::Code code_of(const json& row) {
  KernelFigures::Code code;
  code.instructions = optional_number(row, "instructions");
  for (const char* kind : {"global_loads", "global_stores", "global_atomics", "shared", "asynchronous_copies"})
    code.memory_instructions += optional_number(row, kind);
  code.fma = optional_number(row, "fma");
  code.special = optional_number(row, "special");
  return code;
}

// How often a piece of code was run in all, and what stands in it.
void add(LaunchWork& work, double executions, const KernelFigures::Code& code) {
  work.instructions += executions * code.instructions;
  work.fma_instructions += executions * code.fma;
  work.special_instructions += executions * code.special;
}

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
      number(code, "instructions", machine_code + ": " + where);
      figures.copies_in_flight = code.value("copies_in_flight", 1.0);
      figures.tensor = optional_number(code, "tensor");
      figures.copies = optional_number(code, "asynchronous_copies");
      figures.all = code_of(code);
      figures.with_products = code_of(code.value("with_products", json::object()));
      figures.with_copies = code_of(code.value("with_copies", json::object()));
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
  work.memory_bytes = 32 * (counts.read_sectors_of_grid + whole * static_cast<double>(counts.written_sectors));
  work.barriers = whole * static_cast<double>(counts.barriers);
  const double products = whole * static_cast<double>(counts.bf16_products + counts.tf32_products);
  work.warp_operations = whole * static_cast<double>(counts.warp_operations - counts.matrix_loads) - products;
  work.bf16_flops = whole * static_cast<double>(counts.bf16_products) * (2 * 16 * 8 * 16);
  work.tf32_flops = whole * static_cast<double>(counts.tf32_products) * (2 * 16 * 8 * 8);
  work.copy_requests = whole * static_cast<double>(counts.asynchronous_copies) / simt::kWarpSize;
  work.copies_in_flight = figures.copies_in_flight;
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
  work.load_requests = std::max(0.0, work.load_requests - work.copy_requests);
  KernelFigures::Code rest = figures.all;
  const auto take = [&](double executions, const KernelFigures::Code& code) {
    add(work, executions, code);
    requests -= executions * code.memory_instructions;
    rest.instructions -= code.instructions;
    rest.memory_instructions -= code.memory_instructions;
    rest.fma -= code.fma;
    rest.special -= code.special;
  };
  if (figures.tensor > 0) take(products / figures.tensor, figures.with_products);
  if (figures.copies > 0) take(work.copy_requests / figures.copies, figures.with_copies);
  if (rest.memory_instructions > 0) add(work, std::max(0.0, requests) / rest.memory_instructions, rest);
  return work;
}

}  // namespace twinbench::model
