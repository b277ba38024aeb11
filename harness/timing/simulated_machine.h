// For tests only: simulated time with drift, clock steps, noise and spikes drawn from a printed seed.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include "harness/timing/calibration.h"
#include "harness/timing/clock.h"
#include "src/common/philox.h"

namespace twinbench {

struct Noise {
  double deviation = 0;                      // of the logarithm of one sample
  double drift = 0;                          // added to the logarithm after each sample
  double wander = 0;                         // innovation of a walk that forgets half a per cent a sample
  double step = 0;                           // size of a two-level clock state ...
  double step_chance = 0;                    // ... and the chance that it toggles at a sample
  double spike_chance = 0, spike_scale = 0;  // one-sided, exponential
};

class SimulatedMachine : public Clock {
 public:
  SimulatedMachine(std::uint64_t seed, const Noise& noise) : seed_(seed), noise_(noise) {}

  std::int64_t now() override { return time_ns_ += 25; }

  // A side whose iteration takes `seconds` on a quiet machine.
  Side side(const std::string& name, double seconds) {
    Side side;
    side.name = name;
    side.prepare = [this] { begin_sample(); };
    side.run = [this, seconds] {
      ++runs_;
      time_ns_ += std::llround(seconds * 1e9 * std::exp(log_factor_));
    };
    return side;
  }

  double elapsed_s() const { return static_cast<double>(time_ns_) * 1e-9; }
  std::int64_t runs() const { return runs_; }

 private:
  void begin_sample() {
    const PhiloxWords w = philox(seed_, counter_++, 0, 0, 0);
    const NormalPair normal = philox_normal_pair(w.w[0], w.w[1]);
    const NormalPair other = philox_normal_pair(w.w[2], w.w[3]);
    const PhiloxWords u = philox(seed_, counter_, 1, 0, 0);
    walk_ = 0.995 * walk_ + noise_.wander * static_cast<double>(other.cosine);
    if (philox_uniform(u.w[0]) < noise_.step_chance) stepped_ = !stepped_;
    drifted_ += noise_.drift;
    const bool spike = philox_uniform(u.w[1]) < noise_.spike_chance;
    const double height = -std::log(static_cast<double>(philox_uniform_open(u.w[2]))) * noise_.spike_scale;
    log_factor_ = drifted_ + walk_ + (stepped_ ? noise_.step : 0) + (spike ? height : 0) +
                  noise_.deviation * static_cast<double>(normal.cosine);
  }

  std::uint64_t seed_;
  Noise noise_;
  std::int64_t time_ns_ = 0, runs_ = 0;
  std::uint32_t counter_ = 0;
  double walk_ = 0, drifted_ = 0, log_factor_ = 0;
  bool stepped_ = false;
};

}  // namespace twinbench
