// `twinbench ceilings`: what this machine can do at best, measured in a child process, as a record of its own.
#include "harness/roofline/ceilings.h"

#include <cstdio>
#include <iostream>

#include "harness/command/command.h"
#include "harness/command/jobs.h"
#include "harness/device/bench/bench_device.h"
#include "harness/device/bench/device_rows.h"
#include "harness/ledger/ledger.h"
#include "harness/record/record.h"
#include "src/common/error.h"
#include "src/common/filter_pattern.h"

namespace twinbench {
namespace {

// {"ceilings": rows, "refused": ["name: reason"]}.
nlohmann::json measure_ceilings(c10::DeviceType device, bool quick) {
  if (device == c10::DeviceType::CUDA) return measured_device_ceilings(*open_cuda_bench_device(), quick);
  nlohmann::json rows = nlohmann::json::array();
  for (const auto& ceiling : measure_cpu_ceilings(quick)) rows.push_back(to_json(ceiling));
  return {{"ceilings", rows}, {"refused", nlohmann::json::array()}};
}

std::string name_of(c10::DeviceType type) { return type == c10::DeviceType::CUDA ? "ceilings cuda" : "ceilings cpu"; }

void print_ceiling(const nlohmann::json& row) {
  const auto text = [&](const char* field) { return row[field].get<std::string>(); };
  std::printf("%-5s %-18s %10.4g %s", text("device").c_str(), text("name").c_str(), row["value"].get<double>(),
              text("unit").c_str());
  if (row["data_sheet"].is_number()) std::printf(", data sheet %.4g", row["data_sheet"].get<double>());
  std::printf("  (%s)\n", text("method").c_str());
}

}  // namespace

int ceilings_command(const CommandOptions& options) {
  if (options.device == "simt")
    throw Error(ErrorKind::kBadArgument, "--device", "simt", "it has no ceilings: its times mean nothing");
  std::vector<c10::DeviceType> devices;
  if (options.device != "cuda") devices.push_back(c10::DeviceType::CPU);
  if (options.device == "cuda") require_cuda();
  if (options.device == "cuda" || (options.device == "all" && cuda_is_present()))
    devices.push_back(c10::DeviceType::CUDA);

  const FilterPattern wanted(options.filter);
  std::erase_if(devices, [&](c10::DeviceType type) { return !wanted.found_in(name_of(type)); });
  if (devices.empty())
    throw Error(ErrorKind::kUnknownName, "--filter", options.filter, "there are 'ceilings cpu' and 'ceilings cuda'");
  Ledger ledger;
  Record record = open_record(options, "ceilings");
  std::vector<Job> jobs;
  for (const auto type : devices) {
    const std::string name = name_of(type);
    ledger.plan(name);
    jobs.push_back(
        limited_job(options, name, 0, [type, quick = options.quick] { return measure_ceilings(type, quick); }));
  }
  run_with_progress(jobs, record, [&](const JobResult& result) {
    if (!result.ok()) {
      record_failure(ledger, result.name, result);
      return;
    }
    for (const auto& row : result.value["ceilings"]) {
      record.add("ceilings", row);
      print_ceiling(row);
    }
    std::string refused;
    for (const auto& line : result.value["refused"]) refused += (refused.empty() ? "" : "; ") + line.get<std::string>();
    if (result.value["ceilings"].empty())
      ledger.record(result.name, Outcome::kInconclusive, "no ceiling was measured " + refused);
    else if (!refused.empty())
      ledger.record(result.name, Outcome::kInconclusive, refused);
    else
      ledger.record(result.name, Outcome::kPass);
  });
  return finish("ceilings", options, ledger, record);
}

}  // namespace twinbench
