// Adds CUPTI activity records up to a DeviceActivity: pure functions over records, no library behind them.
#pragma once

#include <cupti.h>

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/gpu/device_activity.h"
#include "harness/gpu/intervals.h"

namespace twinbench {

// The name of a callback id in the runtime's or driver's domain, as CUPTI gives it ("cudaLaunchKernel_v7000").
using CallbackName = std::function<std::string(CUpti_CallbackDomain, std::uint32_t)>;

class ActivityRecords {
 public:
  // One record of any kind. Kinds that are not traced are ignored. Copies what the record points to.
  void add(const CUpti_Activity& record);
  void add_dropped(std::size_t count) { dropped_ += static_cast<std::int64_t>(count); }

  // Calls and synchronisations count if they start within [first, last] (nanoseconds of CUPTI's clock): the observer's
  // own stay out. Work of the device counts wherever it ends. Fills all but runs, wall_s.
  DeviceActivity summary(std::uint64_t first, std::uint64_t last, const CallbackName& callback_name) const;

 private:
  struct HostCall {
    CUpti_CallbackDomain domain;
    std::uint32_t id, correlation;
    std::uint64_t start;
  };
  struct Synchronisation {
    CUpti_ActivitySynchronizationType type;
    std::uint32_t correlation;
    std::uint64_t start;
  };

  void add_kernel(const CUpti_ActivityKernel10& record);
  void add_copy(std::uint8_t source, std::uint8_t destination, std::uint8_t flags, std::uint64_t bytes,
                std::uint64_t start, std::uint64_t end);
  double add_interval(std::uint64_t start, std::uint64_t end);
  void add_graph_node(std::uint64_t node, std::uint32_t correlation);

  DeviceActivity totals_;
  std::map<std::string, KernelUse> kernels_;  // by mangled name
  std::vector<DeviceInterval> intervals_;
  std::vector<HostCall> calls_;
  std::vector<Synchronisation> synchronisations_;
  std::set<std::uint32_t> graph_correlations_;
  std::int64_t dropped_ = 0, untimed_ = 0;
};

// "cudaLaunchKernel_v7000" and "cudaLaunchKernel_ptsz_v7000" -> "cudaLaunchKernel".
std::string plain_call_name(const std::string& callback);

// Demangled and without the parameter list.
std::string readable_kernel_name(const std::string& mangled);

}  // namespace twinbench
