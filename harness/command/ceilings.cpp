// `twinbench ceilings`: what this machine can do at best, measured in a child process, as a record of its own.
#include "harness/roofline/ceilings.h"

#include <cstdio>
#include <iostream>

#include "harness/command/command.h"
#include "harness/command/jobs.h"
#include "harness/ledger/ledger.h"
#include "harness/record/record.h"
#include "src/common/error.h"

namespace twinbench {
namespace {

std::vector<Ceiling> measure_ceilings(c10::DeviceType device, bool quick) {
  if (device == c10::DeviceType::CPU) return measure_cpu_ceilings(quick);
  throw Error(ErrorKind::kMissingDevice, "--device", "cuda", "this build measures the ceilings of the CPU only");
}

}  // namespace

int ceilings_command(const CommandOptions& options) {
  std::vector<c10::DeviceType> devices;
  if (options.device != "cuda") devices.push_back(c10::DeviceType::CPU);
  if (options.device == "cuda") require_cuda();
  if (options.device == "cuda" || (options.device == "all" && cuda_is_present())) devices.push_back(c10::DeviceType::CUDA);

  Ledger ledger;
  Record record = open_record(options, "ceilings");
  std::vector<Job> jobs;
  for (const auto type : devices) {
    const std::string name = type == c10::DeviceType::CUDA ? "ceilings cuda" : "ceilings cpu";
    ledger.plan(name);
    jobs.push_back(limited_job(options, name, [type, quick = options.quick] {
      nlohmann::json rows = nlohmann::json::array();
      for (const auto& ceiling : measure_ceilings(type, quick)) rows.push_back(to_json(ceiling));
      return rows;
    }));
  }
  run_with_progress(jobs, record, [&](const JobResult& result) {
    if (!result.ok()) {
      ledger.record(result.name, Outcome::kError, failure_of(result));
      return;
    }
    for (const auto& row : result.value) {
      record.add("ceilings", row);
      std::printf("%-5s %-12s %10.4g %s  (%s)\n", row["device"].get<std::string>().c_str(), row["name"].get<std::string>().c_str(),
                  row["value"].get<double>(), row["unit"].get<std::string>().c_str(), row["method"].get<std::string>().c_str());
    }
    if (result.value.empty()) ledger.record(result.name, Outcome::kInconclusive, "no ceiling was measured");
    else ledger.record(result.name, Outcome::kPass);
  });
  std::cout << "ceilings: " << ledger.summary_line() << '\n';
  for (const auto& failure : ledger.failures()) std::cout << "  " << failure << '\n';
  record.set_ledger(ledger.to_json());
  if (!options.out.empty()) record.write(options.out);
  return ledger.exit_code();
}

}  // namespace twinbench
