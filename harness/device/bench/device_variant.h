// One variant of a twin on a device: set up, counted, and measured by the passes that stand beside the paired samples.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/bench/timed_answers.h"
#include "harness/device/bench/bench_device.h"
#include "harness/device/device_side.h"
#include "harness/timing/decomposition.h"
#include "src/registry.h"

namespace twinbench {

struct GraphReplay {
  std::optional<double> seconds;  // median of one replay on the published clock's terms: held span, or wall
  std::string reason;             // why there is none
};

class DeviceVariant {
 public:
  // Sets the variant up on `copies` copies of the inputs, runs each once (kernels load, caches of algorithms fill), and
  // counts what one run asks of the device. `answers` lives as long.
  DeviceVariant(const Cell& cell, const TimedAnswers& answers, std::size_t copies, BenchDevice& device);
  DeviceVariant(const DeviceVariant&) = delete;
  DeviceVariant& operator=(const DeviceVariant&) = delete;

  const Cell& cell() const { return cell_; }
  const RunCounts& counts() const { return counts_; }
  // The runs of the copies, valid as long as this object.
  std::vector<std::function<void()>> runs() const;
  JudgedVariant& judged() { return judged_; }
  // The rules of JudgedVariant once the paired samples are taken.
  std::string judge_after();

  // Medians of runs with nothing held, one of each variant at a time: what happens in a training loop.
  static void measure_in_place(const std::vector<DeviceVariant*>& variants, Regime regime);
  const MeasuredTimes& in_place() const { return in_place_; }

  // The captured run, replayed under `sampling`, `iterations` replays a sample. A replay that computes something else
  // has no time.
  GraphReplay measure_graph_replay(const DeviceSampling& sampling, std::int64_t iterations);

  // Fills in_place().busy_s, or says why it stays unknown. Observes: call it after every timed pass.
  std::string trace_busy_time(Regime regime);

 private:
  Cell cell_;
  BenchDevice& device_;
  const std::vector<std::unique_ptr<Runnable>>& copies() const { return judged_.copies(); }

  JudgedVariant judged_;
  RunCounts counts_;
  MeasuredTimes in_place_;
};

}  // namespace twinbench
