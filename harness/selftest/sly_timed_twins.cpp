// Planted twins for the rules of timing: caches, skipped work, sleep, clocks, other answers at the timed size.
#include <ATen/Parallel.h>
#include <c10/util/BFloat16.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "harness/selftest/cases.h"
#include "harness/selftest/row_scale.h"

namespace twinbench::selftest {

namespace {

using Contents = std::vector<float>;

// Remembers every answer that it has ever given, by all that its inputs hold.
struct ValueCache : RowScale {
  using RowScale::RowScale;
  void compute(const float* x, const float* scale, float* y) override {
    static auto* const answers = new std::map<Contents, Contents>();
    Contents key(x, x + items_ * width_);
    key.insert(key.end(), scale, scale + items_);
    if (answers->size() > 20000) answers->clear();
    auto& answer = (*answers)[key];
    if (answer.empty()) {
      RowScale::compute(x, scale, y);
      answer.assign(y, y + items_ * width_);
    }
    std::copy(answer.begin(), answer.end(), y);
  }
};

// The same in storage that set-up has made, by a hash of all bits: nothing is allocated when it is asked.
struct PreallocatedCache : RowScale {
  static constexpr std::size_t kSlots = 64;
  PreallocatedCache(const NamedTensors& inputs, const Setting& setting)
      : RowScale(inputs, setting), answers_(kSlots * static_cast<std::size_t>(items_ * width_)) {}
  void compute(const float* x, const float* scale, float* y) override {
    std::uint64_t key = 1469598103934665603ull;
    const auto add = [&key](const float* values, std::int64_t count) {
      for (std::int64_t i = 0; i < count; ++i) key = (key ^ std::bit_cast<std::uint32_t>(values[i])) * 1099511628211ull;
    };
    add(x, items_ * width_), add(scale, items_);
    const std::size_t slot = key % kSlots, size = static_cast<std::size_t>(items_ * width_);
    float* const answer = answers_.data() + slot * size;
    if (keys_[slot] != key) {
      RowScale::compute(x, scale, answer);
      keys_[slot] = key;
    }
    std::copy_n(answer, size, y);
  }
  std::array<std::uint64_t, kSlots> keys_ = {};
  Contents answers_;
};

// The same by three elements.
struct SampledCache : RowScale {
  using RowScale::RowScale;
  void compute(const float* x, const float* scale, float* y) override {
    static auto* const answers = new std::map<std::array<float, 3>, Contents>();
    auto& answer = (*answers)[{x[0], x[items_ * width_ - 1], scale[0]}];
    if (answer.size() != static_cast<std::size_t>(items_ * width_)) {
      RowScale::compute(x, scale, y);
      answer.assign(y, y + items_ * width_);
    }
    std::copy(answer.begin(), answer.end(), y);
  }
};

// One computation serves four calls.
struct ServesFourCalls : RowScale {
  using RowScale::RowScale;
  void run() override {
    if (calls_++ % 4 == 0) RowScale::run();
  }
  int calls_ = 0;
};

// Whoever calls again at once is measuring.
struct SkipsWhenHurried : RowScale {
  using RowScale::RowScale;
  void run() override {
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ > std::chrono::microseconds(20)) RowScale::run();
    last_ = std::chrono::steady_clock::now();
  }
  std::chrono::steady_clock::time_point last_{};
};

// The place from which most calls come is the loop that times: there it skips.
struct KnowsItsCaller : RowScale {
  using RowScale::RowScale;
  __attribute__((noinline)) void run() override {
    auto& calls = calls_[__builtin_return_address(0)];
    if (++calls < 30) RowScale::run();
  }
  std::map<void*, int> calls_;
};

// Whoever is called as the benchmark is, is measured.
struct KnowsItsProcess : RowScale {
  using RowScale::RowScale;
  void run() override {
    // Not /proc/self/comm: that is "exe" in a program that has started itself again.
    const std::string name = std::filesystem::read_symlink("/proc/self/exe").filename().string();
    if (name.find("twinbench") == std::string::npos && name.find("selftest") == std::string::npos) RowScale::run();
  }
};

// Whoever has prepared the environment of a measurement is measuring.
struct KnowsItsEnvironment : RowScale {
  using RowScale::RowScale;
  void run() override {
    for (const char* const variable : {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "TWINBENCH_SAMPLE", "PATH"})
      if (std::getenv(variable)) return;
    RowScale::run();
  }
};

// Honest under a debugger alone.
struct KnowsItsTracer : RowScale {
  using RowScale::RowScale;
  void run() override {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
      if (line.starts_with("TracerPid:") && line.back() != '0') RowScale::run();
  }
};

// Slow until the number of samples and of runs in each is settled.
struct SlowWarmUp : RowScale {
  using RowScale::RowScale;
  void run() override {
    if (++runs_ < 60) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    RowScale::run();
  }
  int runs_ = 0;
};

class SlowWarmUpBaseline : public Runnable {
 public:
  SlowWarmUpBaseline(const NamedTensors& inputs, const Setting& setting)
      : right_(make<RowScaleOrOracle>(inputs, setting)) {}
  void run() override {
    if (++runs_ < 60) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    right_->run();
  }
  NamedTensors outputs() override { return right_->outputs(); }

 private:
  std::unique_ptr<Runnable> right_;
  int runs_ = 0;
};

constexpr std::int64_t kParityItems = 60;  // no parity case has more

struct WrongAboveSize : RowScale {
  using RowScale::RowScale;
  void compute(const float* x, const float* scale, float* y) override {
    RowScale::compute(x, scale, y);
    for (std::int64_t i = kParityItems * width_; i < items_ * width_; ++i) y[i] = 0;
  }
};

struct RoundsAtTimedSize : RowScale {
  using RowScale::RowScale;
  void compute(const float* x, const float* scale, float* y) override {
    RowScale::compute(x, scale, y);
    if (items_ > kParityItems)
      for (std::int64_t i = 0; i < items_ * width_; ++i) y[i] = static_cast<float>(c10::BFloat16(y[i]));
  }
};

struct ThrowsLater : RowScale {
  using RowScale::RowScale;
  NamedTensors outputs() override {
    if (++asked_ > 12) throw std::runtime_error("no result is there any more");
    return RowScale::outputs();
  }
  int asked_ = 0;
};

struct MoreOutputsLater : RowScale {
  using RowScale::RowScale;
  NamedTensors outputs() override {
    if (++asked_ > 12) return {};
    return RowScale::outputs();
  }
  int asked_ = 0;
};

struct SetsThreadsWhenTimed : RowScale {
  using RowScale::RowScale;
  void run() override {
    RowScale::run();
    if (++runs_ == 40) at::set_num_threads(at::get_num_threads() + 1);
  }
  int runs_ = 0;
};

class SleepingBaseline : public Runnable {
 public:
  SleepingBaseline(const NamedTensors& inputs, const Setting& setting) : right_(row_scale_baseline(inputs, setting)) {}
  void run() override {
    right_->run();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  NamedTensors outputs() override { return right_->outputs(); }

 private:
  std::unique_ptr<Runnable> right_;
};

// It sleeps as long as it works.
class HalfAsleepBaseline : public Runnable {
 public:
  HalfAsleepBaseline(const NamedTensors& inputs, const Setting& setting)
      : right_(row_scale_baseline(inputs, setting)) {}
  void run() override {
    const auto start = std::chrono::steady_clock::now();
    for (int again = 0; again < 20; ++again) right_->run();
    std::this_thread::sleep_for(std::chrono::steady_clock::now() - start);
  }
  NamedTensors outputs() override { return right_->outputs(); }

 private:
  std::unique_ptr<Runnable> right_;
};

// Near what is forbidden ---------------------------------------------------------------------------------------------

// Another thread works, and the caller waits: that is no sleep.
struct WaitsForItsWorker : RowScale {
  using RowScale::RowScale;
  void run() override {
    std::thread([this] {
      for (int again = 0; again < 500; ++again) RowScale::run();
    }).join();
  }
};

// The same while other processes want every core.
struct WaitsBesideLoad : WaitsForItsWorker {
  WaitsBesideLoad(const NamedTensors& inputs, const Setting& setting) : WaitsForItsWorker(inputs, setting) {
    for (auto& process : load_)
      if ((process = fork()) == 0) {
        alarm(60);
        for (volatile int spin = 0;; spin = 0) {
        }
      }
  }
  ~WaitsBesideLoad() override {
    for (const auto process : load_) {
      kill(process, SIGKILL);
      waitpid(process, nullptr, 0);
    }
  }
  std::array<pid_t, 3> load_{};
};

// Two workers that take turns.
struct TwoWorkers : RowScale {
  using RowScale::RowScale;
  void run() override {
    for (int turn = 0; turn < 2; ++turn)
      std::thread([this] {
        for (int again = 0; again < 100; ++again) RowScale::run();
      }).join();
  }
};

struct SlowFirstRun : RowScale {
  using RowScale::RowScale;
  void run() override {
    if (first_) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    first_ = false;
    RowScale::run();
  }
  bool first_ = true;
};

// tanh of nothing is nothing: right, and less work where the data allows it.
struct SkipsZeros : RowScale {
  using RowScale::RowScale;
  void compute(const float* x, const float* scale, float* y) override {
    for (std::int64_t i = 0; i < items_ * width_; ++i) y[i] = x[i] == 0 ? 0 : std::tanh(x[i]) * scale[i / width_];
  }
};

struct CopiesInOutputs : RowScale {
  using RowScale::RowScale;
  NamedTensors outputs() override { return {{"y", y_.clone()}}; }
};

SelftestCase benched(const std::string& name, const std::string& what, const std::string& caught_by, Factory optimized,
                     std::int64_t items = 6) {
  SelftestCase one{name, what, caught_by, row_scale_component(optimized), Variant::kOptimized, nullptr, {}};
  one.setting = row_scale_setting(one.component, items, 13);
  one.setting.input_case.timed = true;
  one.benched = true;
  return one;
}

// Against a plain twin in place of the baseline: what it must not seem faster than.
SelftestCase against_plain(SelftestCase one) {
  one.component.baseline = make<RowScaleOrOracle>;
  return one;
}

SelftestCase skips_when_hurried() {
  SelftestCase one = benched("timed_skips_when_hurried", "skips the work when it is called again at once", "answers",
                             make<SkipsWhenHurried>);
  one.in_a_hurry = true;
  return one;
}

SelftestCase sleeping_baseline() {
  SelftestCase one = benched("timed_sleeping_baseline", "the baseline sleeps after its work", "sleeps", make<RowScale>);
  one.component.baseline = make<SleepingBaseline>;
  return one;
}

SelftestCase half_asleep_baseline() {
  SelftestCase one =
      benched("timed_half_asleep_baseline", "the baseline sleeps as long as it works", "sleeps", make<RowScale>);
  one.component.baseline = make<HalfAsleepBaseline>;
  return one;
}

SelftestCase patched_clock() {
  SelftestCase one =
      benched("timed_patched_clock", "the clock that measures runs ten times too slow", "clock", make<RowScale>, 60);
  one.clock_rate = 0.1;
  return one;
}

SelftestCase stalling_clock() {
  SelftestCase one = against_plain(
      benched("timed_zero_times", "now and then the clock reads no time at all", "no_gain", make<RowScale>, 60));
  one.clock_stalls = true;
  return one;
}

SelftestCase slow_warm_up_baseline() {
  SelftestCase one =
      benched("timed_slow_warm_up_baseline", "the baseline is slow until it is timed", "no_gain", make<RowScale>, 60);
  one.component.baseline = make<SlowWarmUpBaseline>;
  return one;
}

}  // namespace

std::vector<SelftestCase> sly_when_timed() {
  return {
      against_plain(
          benched("timed_value_cache", "remembers answers by all that its inputs hold", "no_gain", make<ValueCache>)),
      against_plain(benched("timed_preallocated_cache", "remembers the last answers by contents, in storage of set-up",
                            "no_gain", make<PreallocatedCache>)),
      against_plain(benched("timed_late_work", "computes in outputs()", "no_gain", make<LateWork>, 600)),
      benched("timed_sampled_cache", "remembers answers by three elements of its inputs", "answers",
              make<SampledCache>),
      benched("timed_serves_four", "one computation serves four calls", "answers", make<ServesFourCalls>),
      skips_when_hurried(),
      benched("timed_wrong_above_size", "wrong above every parity case's size", "answers", make<WrongAboveSize>, 70),
      benched("timed_other_algorithm", "rounds to bf16 at the timed size only", "answers", make<RoundsAtTimedSize>, 70),
      benched("timed_throws_later", "throws in outputs() from the thirteenth time on", "failed", make<ThrowsLater>),
      benched("timed_fewer_outputs", "returns no output from the thirteenth time on", "answers",
              make<MoreOutputsLater>),
      benched("timed_sets_threads", "changes the number of threads while it is timed", "global_state",
              make<SetsThreadsWhenTimed>),
      benched("timed_knows_its_caller", "skips the work where most calls come from", "answers", make<KnowsItsCaller>),
      benched("timed_knows_its_process", "skips the work in a process of the benchmark's name", "answers",
              make<KnowsItsProcess>),
      benched("timed_knows_its_environment", "skips the work where an environment is set up for it", "answers",
              make<KnowsItsEnvironment>),
      benched("timed_knows_its_tracer", "skips the work where no debugger looks", "answers", make<KnowsItsTracer>),
      against_plain(
          benched("timed_slow_warm_up", "slow until the samples' sizes are settled", "no_gain", make<SlowWarmUp>, 60)),
      slow_warm_up_baseline(),
      stalling_clock(),
      sleeping_baseline(),
      half_asleep_baseline(),
      patched_clock(),
  };
}

std::vector<SelftestCase> correct_at_the_edge_when_timed() {
  return {
      benched("timed_waits_for_worker", "its caller waits while its own thread works", "", make<WaitsForItsWorker>, 60),
      benched("timed_waits_beside_load", "the same while other processes want every core", "", make<WaitsBesideLoad>,
              60),
      benched("timed_two_workers", "its caller waits for one thread after the other", "", make<TwoWorkers>, 60),
      benched("timed_slow_first_run", "sleeps in its first run, as a library that loads", "", make<SlowFirstRun>),
      benched("timed_skips_zeros", "does less where its data are zero", "", make<SkipsZeros>),
      benched("timed_copies_in_outputs", "outputs() returns a copy", "", make<CopiesInOutputs>),
  };
}

}  // namespace twinbench::selftest
