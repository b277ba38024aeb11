// What the card does while something runs, sampled by a thread: utilisation, power, clock, temperature, memory.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "harness/gpu/nvml.h"

namespace twinbench {

// Samples from construction to stop(), the first and the last included. Where NVML is absent there is no thread and no
// sample.
class DeviceTimeline {
 public:
  // Seconds count from `origin`.
  explicit DeviceTimeline(double period_s = 0.05, const std::string& pci_bus_id = "",
                          std::chrono::steady_clock::time_point origin = std::chrono::steady_clock::now());
  ~DeviceTimeline();  // stops the thread
  DeviceTimeline(const DeviceTimeline&) = delete;
  DeviceTimeline& operator=(const DeviceTimeline&) = delete;

  struct Sample {
    double seconds = 0;  // since the origin
    NvmlSample reading;
  };

  void stop();
  const std::vector<Sample>& samples() const { return samples_; }  // after stop()
  // {"period_s", "seconds": [...], "utilisation_percent": [...], "power_w": [...], ..., "energy_j": ...}; null without
  // NVML.
  nlohmann::json to_json() const;
  // Why to_json() is null; empty otherwise.
  std::string reason() const;

 private:
  void watch();

  double period_s_;
  std::chrono::steady_clock::time_point origin_;
  std::unique_ptr<Nvml> nvml_;
  std::vector<Sample> samples_;
  std::mutex guard_;
  std::condition_variable wake_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace twinbench
