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
  const json root = read_json_file(path, "pins of compiled kernels", kCounts);
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

// [kind], [kind, file, line, text], or that with the helper's file, line and text behind it.
KernelPlace place_of(const json& row, const std::string& where) {
  const auto is_line = [&](std::size_t at) {
    return row.size() >= at + 3 && row[at].is_string() && row[at + 1].is_number_integer() && row[at + 2].is_string();
  };
  const bool good =
      row.is_array() && !row.empty() && row[0].is_string() &&
      (row.size() == 1 || (row.size() == 4 && is_line(1)) || (row.size() == 7 && is_line(1) && is_line(4)));
  if (!good) throw Error(ErrorKind::kBadFile, where, "place " + row.dump(), "pin the file anew");
  KernelPlace place{.what = row[0], .at = {}};
  if (row.size() > 1) place.at = {row[1], present_line(row[1], row[2], row[3]), "", 0};
  if (row.size() > 4) {
    place.at.through_file = row[4];
    place.at.through_line = present_line(row[4], row[5], row[6]);
  }
  return place;
}

std::vector<CodePiece::Use> uses_of(const json& piece, const char* key, std::size_t places, const std::string& where) {
  std::vector<CodePiece::Use> uses;
  for (const json& use : piece.value(key, json::array())) {
    const bool good = use.is_array() && use.size() == 2 && use[0].is_number_unsigned() &&
                      use[0].get<std::size_t>() < places && use[1].is_number() && use[1].get<double>() > 0;
    if (!good) throw Error(ErrorKind::kBadFile, where, key + (" " + use.dump()), "pin the file anew");
    uses.push_back({use[0], use[1]});
  }
  return uses;
}

std::vector<CodePiece> pieces_of(const json& rows, std::size_t places, const std::string& where) {
  if (!rows.is_array() || rows.empty())
    throw Error(ErrorKind::kBadFile, where, "pieces are missing", "pin the file anew");
  std::vector<CodePiece> pieces;
  for (const json& row : rows) {
    CodePiece piece;
    piece.instructions = number(row, "instructions", where);
    piece.fma = optional_number(row, "fma");
    piece.special = optional_number(row, "special");
    piece.within = row.value("within", pieces.empty() ? -1 : 0);
    if (piece.within >= static_cast<int>(pieces.size()))
      throw Error(ErrorKind::kBadFile, where, "within " + std::to_string(piece.within), "an earlier piece");
    piece.at = uses_of(row, "at", places, where);
    piece.guarded = uses_of(row, "if", places, where);
    pieces.push_back(std::move(piece));
  }
  return pieces;
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
      figures.instructions = number(code, "instructions", machine_code + ": " + where);
      figures.copies_in_flight = code.value("copies_in_flight", 1.0);
      for (const json& place : of_code[kernel].value("places", json::array()))
        figures.places.push_back(place_of(place, machine_code + ": " + where));
      figures.pieces = pieces_of(code.value("pieces", json()), figures.places.size(), machine_code + ": " + where);
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
  for (const auto& site : counts.sites) {
    if (site.shared) {
      work.wavefronts += whole * static_cast<double>(site.units);
    } else {
      work.sectors += whole * static_cast<double>(site.units);
      if (site.access == Access::kRead) work.load_requests += whole * static_cast<double>(site.requests);
    }
  }
  work.load_requests = std::max(0.0, work.load_requests - work.copy_requests);
  const JoinedPlaces joined = join(figures.places, counted_places(counts));
  if (joined.all > 0) work.known_share = joined.known / joined.all;
  work.executions = executions_of(figures.pieces, joined.words);
  for (std::size_t i = 0; i < work.executions.size(); ++i) {
    double& executions = work.executions[i] *= whole;
    work.instructions += executions * figures.pieces[i].instructions;
    work.fma_instructions += executions * figures.pieces[i].fma;
    work.special_instructions += executions * figures.pieces[i].special;
  }
  return work;
}

}  // namespace twinbench::model
