// The best of several samples of each work, and the table of data sheets, which travels inside the program.
#include "harness/device/device_ceilings.h"

#include <algorithm>
#include <exception>
#include <limits>
#include <nlohmann/json.hpp>

#include "harness/device/data_sheets_text.h"
#include "harness/device/device_sample.h"
#include "src/common/error.h"

namespace twinbench {
namespace {

constexpr int kRounds = 9;  // a ceiling is what the device can do, so noise only ever hides it

double host_seconds(const std::function<void()>& body, DeviceTimer& timer, Clock& host) {
  timer.synchronize();
  const std::int64_t start = host.now();
  body();
  const double seconds = seconds_between(start, host.now());
  timer.synchronize();
  return seconds;
}

}  // namespace

Ceiling measure_device_ceiling(const CeilingWork& work, DeviceTimer& timer, Clock& host,
                               const std::string& device_name) {
  const auto body = work.set_up();
  take_device_sample(timer, host, body, {});
  take_device_sample(timer, host, body, {});
  double best_s = std::numeric_limits<double>::infinity();
  for (int round = 0; round < kRounds; ++round) {
    if (work.measure == CeilingMeasure::kHostCost) {
      best_s = std::min(best_s, host_seconds(body, timer, host));
      continue;
    }
    const DeviceSample sample = take_device_sample(timer, host, body, {false, work.measure == CeilingMeasure::kRate});
    if (sample.span_s > 0 && !sample.hold_expired) best_s = std::min(best_s, sample.span_s);
  }
  if (!(best_s > 0) || best_s == std::numeric_limits<double>::infinity())
    throw Error(ErrorKind::kInternal, "ceiling", work.name, "no sample of it gave a time");
  const double value = work.measure == CeilingMeasure::kRate ? work.amount / best_s : best_s / work.amount;
  Ceiling ceiling{
      "cuda", work.name, work.unit, value, std::nullopt, "best of " + std::to_string(kRounds) + ": " + work.method, ""};
  add_data_sheet(ceiling, device_name);
  return ceiling;
}

std::vector<Ceiling> measure_device_ceilings(const std::vector<CeilingWork>& works, DeviceTimer& timer, Clock& host,
                                             const std::string& device_name, std::vector<std::string>& refused) {
  std::vector<Ceiling> ceilings;
  for (const auto& work : works) try {
      ceilings.push_back(measure_device_ceiling(work, timer, host, device_name));
    } catch (const std::exception& error) {
      refused.push_back(work.name + ": " + error.what());
    }
  return ceilings;
}

void add_data_sheet(Ceiling& ceiling, const std::string& device_name) {
  static const auto table = nlohmann::json::parse(kDataSheetsText);
  for (const auto& device : table.at("devices"))
    for (const auto& name : device.at("names")) {
      if (name != device_name) continue;
      if (device.contains(ceiling.name) && device[ceiling.name].is_number()) {
        ceiling.data_sheet = device[ceiling.name].get<double>();
        ceiling.data_sheet_source = device.at("source");
      } else {
        ceiling.data_sheet_source = device.at("source").get<std::string>() + " does not state it";
      }
      return;
    }
  ceiling.data_sheet_source = "'" + device_name + "' is not in harness/device/data_sheets.json";
}

}  // namespace twinbench
