// For tests only: a device beside a host, each with its own time. Launches cost the host, a queue holds them, a cache
// is warm or not, the clock throttles. Every safeguard can be planted broken.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <stdexcept>
#include <vector>

#include "harness/device/device_timer.h"
#include "harness/timing/clock.h"

namespace twinbench {

struct SimulatedFaults {
  bool flush_does_nothing = false;
  bool flush_runs_late = false;         // part of it still runs inside the timed window
  bool flush_keeps_persisting = false;  // lines that somebody made persistent survive it
  bool hold_does_nothing = false;
  bool clock_unknown = false;
};

class SimulatedDevice : public DeviceTimer, public Clock {
 public:
  static constexpr double kLaunch = 3e-6, kEvent = 0.7e-6, kNominalHz = 1.98e9, kHoldLimit = 5, kCache = 60e6;
  static constexpr std::size_t kQueue = 1000;

  explicit SimulatedDevice(SimulatedFaults faults = {}) : faults_(faults) {}

  std::int64_t now() override { return std::llround((host_s_ += 25e-9) * 1e9); }
  double elapsed_s() const { return host_s_; }

  // Clock of the n-th sample as a share of the nominal one.
  std::function<double(std::int64_t sample)> clock = [](std::int64_t) { return 1.0; };

  // What a variant's run does: so many launches, each so long with its data in cache and out of it.
  std::function<void()> work(int launches, double warm_s, double cold_s, bool synchronises = false, int data = 1) {
    return [this, launches, warm_s, cold_s, synchronises, data] {
      for (int i = 0; i < launches; ++i)
        launch([this, warm_s, cold_s, data] {
          const bool resident = resident_ == data;
          resident_ = data;
          const double seconds = resident ? warm_s : cold_s;
          busy_s_ += seconds * slowdown_;
          return seconds;
        });
      if (synchronises) synchronize();
    };
  }

  // Work beside the stream: no mark sees it.
  std::function<void()> work_elsewhere(double seconds) {
    return [this, seconds] {
      host_s_ += kLaunch;
      busy_s_ += seconds;
    };
  }
  void persist(int data) { persisting_ = data; }  // in the cache
  double busy_s() const { return busy_s_; }       // of all work so far; marks, flushes and holds are not work

  // Between the two, launches are kept instead of run. The replay queues them all for the host's price of one launch.
  void begin_capture() { captured_.emplace(); }
  std::function<void()> end_capture() {
    const auto graph = std::move(*captured_);
    captured_.reset();
    return [this, graph] {
      launch([graph] {
        double seconds = 0;
        for (const auto& work : graph) seconds += work();
        return seconds;
      });
    };
  }

  void synchronize() override {
    if (captured_) throw std::runtime_error("simulated: operation not permitted when the stream is capturing");
    if (holding_) expire();
    host_s_ = std::max(host_s_, device_s_) + 5e-6;
  }
  void flush_cache() override {
    launch([this] {
      if (!faults_.flush_does_nothing) resident_ = faults_.flush_keeps_persisting ? persisting_ : 0;
      return 40e-6;
    });
    leaks_ = faults_.flush_runs_late;
  }
  void read_resident() override { work(1, 20e-6, 55e-6, false, -1)(); }
  void hold() override {
    expired_ = false;
    if (!faults_.hold_does_nothing) holding_ = true;
    host_s_ += kLaunch;
  }
  void release() noexcept override {
    if (!holding_) return;
    holding_ = false;
    device_s_ = std::max(device_s_, host_s_);
    for (const auto& queued : queue_) device_s_ += queued() * slowdown_;
    queue_.clear();
  }
  void mark_start() override {
    if (on_mark) on_mark();
    slowdown_ = 1 / clock(samples_++);
    launch([this, leak_s = leaks_ ? 10e-6 : 0.0] {
      start_s_ = device_s_;
      return leak_s;
    });
    leaks_ = false;
  }
  void mark_stop() override {
    launch([this] {
      stop_s_ = device_s_ + kEvent;
      return kEvent;
    });
  }
  DeviceReading read() override {
    DeviceReading reading{stop_s_ - start_s_, std::nullopt, expired_};
    if (!faults_.clock_unknown) reading.clock_hz = kNominalHz / slowdown_;
    expired_ = false;
    return reading;
  }
  void rest(double seconds) override {
    host_s_ += seconds;
    rests.push_back(seconds);
  }
  double cache_bytes() const override { return kCache; }

  bool holding() const { return holding_; }
  std::vector<double> rests;
  std::function<void()> on_mark;

 private:
  using Work = std::function<double()>;  // does its effect, returns its seconds at the nominal clock

  void launch(const Work& work) {
    if (captured_) {
      captured_->push_back(work);
      return;
    }
    host_s_ += kLaunch;
    if (holding_ && queue_.size() >= kQueue) expire();
    if (holding_) {
      queue_.push_back(work);
      return;
    }
    device_s_ = std::max(device_s_, host_s_);
    device_s_ += work() * slowdown_;
  }
  void expire() {
    host_s_ += kHoldLimit;
    release();
    expired_ = true;
  }

  SimulatedFaults faults_;
  double host_s_ = 0, device_s_ = 0, start_s_ = 0, stop_s_ = 0, slowdown_ = 1, busy_s_ = 0;
  int resident_ = 0, persisting_ = 0;
  bool holding_ = false, expired_ = false, leaks_ = false;
  std::int64_t samples_ = 0;
  std::deque<Work> queue_;
  std::optional<std::vector<Work>> captured_;
};

}  // namespace twinbench
