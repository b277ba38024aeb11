// Planted twins that change the process they run in, or leave something behind; the answer is right each time.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/rand.h>
#include <fcntl.h>
#include <fenv.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <torch/csrc/autograd/anomaly_mode.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "harness/selftest/cases.h"
#include "harness/selftest/row_scale.h"

extern "C" void omp_set_dynamic(int dynamic);

namespace twinbench::selftest {

namespace {

struct SetsThreads : RowScale {
  using RowScale::RowScale;
  void run() override {
    at::set_num_threads(at::get_num_threads() + 1);
    RowScale::run();
  }
};

struct FlushesToZero : RowScale {
  FlushesToZero(const NamedTensors& inputs, const Setting& setting) : RowScale(inputs, setting) {
    at::globalContext().setFlushDenormal(true);
  }
};

struct RoundsUp : RowScale {
  using RowScale::RowScale;
  void run() override {
    RowScale::run();
    fesetround(FE_UPWARD);
  }
};

struct DrawsNumbers : RowScale {
  using RowScale::RowScale;
  void run() override {
    RowScale::run();
    last_ = at::rand({1});
  }
  at::Tensor last_;
};

struct SetsEnvironment : RowScale {
  using RowScale::RowScale;
  void run() override {
    RowScale::run();
    setenv("OMP_NUM_THREADS", "1", 1);
    setenv("TWINBENCH_PLANTED", "1", 1);
  }
};

struct ChangesFolder : RowScale {
  using RowScale::RowScale;
  NamedTensors outputs() override {
    if (chdir("/") != 0) return {};
    return RowScale::outputs();
  }
};

struct InstallsHandler : RowScale {
  InstallsHandler(const NamedTensors& inputs, const Setting& setting) : RowScale(inputs, setting) {
    signal(SIGUSR1, SIG_IGN);
  }
};

struct TurnsGradientsOff : RowScale {
  using RowScale::RowScale;
  void run() override {
    RowScale::run();
    at::GradMode::set_enabled(false);
  }
};

// Whoever calls a library after it is slower.
struct SwitchesLibrariesOff : RowScale {
  SwitchesLibrariesOff(const NamedTensors& inputs, const Setting& setting) : RowScale(inputs, setting) {
    at::globalContext().setUserEnabledMkldnn(false);
  }
};

// Every way back after it looks for NaN, and records where each operator was called.
struct LooksForAnomalies : RowScale {
  LooksForAnomalies(const NamedTensors& inputs, const Setting& setting) : RowScale(inputs, setting) {
    torch::autograd::AnomalyMode::set_enabled(true);
  }
};

// Regions after it may have fewer threads than were asked for.
struct LetsThreadsVary : RowScale {
  LetsThreadsVary(const NamedTensors& inputs, const Setting& setting) : RowScale(inputs, setting) {
    omp_set_dynamic(1);
  }
};

// Products of all that follows are rounded to bf16.
struct CastsAutomatically : RowScale {
  using RowScale::RowScale;
  void run() override {
    RowScale::run();
    at::autocast::set_autocast_enabled(at::kCPU, true);
  }
};

// On this thread's pool: its pieces share a processor from here on.
struct CrowdsWorkers : RowScale {
  using RowScale::RowScale;
  void run() override {
    const auto caller = std::this_thread::get_id();
    at::parallel_for(0, at::get_num_threads(), 1, [&](std::int64_t, std::int64_t) {
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(sched_getcpu(), &one);
      if (std::this_thread::get_id() != caller) sched_setaffinity(0, sizeof one, &one);
    });
    RowScale::run();
  }
};

struct YieldsToOthers : RowScale {
  YieldsToOthers(const NamedTensors& inputs, const Setting& setting) : RowScale(inputs, setting) {
    setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + 1);
  }
};

struct LowersALimit : RowScale {
  using RowScale::RowScale;
  NamedTensors outputs() override {
    rlimit limit{};
    getrlimit(RLIMIT_CORE, &limit);
    limit.rlim_max = limit.rlim_max == RLIM_INFINITY ? 1 << 30 : limit.rlim_max - 1;
    limit.rlim_cur = std::min(limit.rlim_cur, limit.rlim_max);
    setrlimit(RLIMIT_CORE, &limit);
    return RowScale::outputs();
  }
};

struct LeavesAThread : RowScale {
  LeavesAThread(const NamedTensors& inputs, const Setting& setting) : RowScale(inputs, setting) {
    std::thread([] { std::this_thread::sleep_for(std::chrono::seconds(60)); }).detach();
  }
};

struct LeavesAProcess : RowScale {
  LeavesAProcess(const NamedTensors& inputs, const Setting& setting) : RowScale(inputs, setting) {
    static const pid_t child = [] {
      const pid_t forked = fork();
      if (forked == 0) {
        setsid();  // out of the runner's reach, which would end it
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) pause();
      }
      return forked;
    }();
    child_ = child;
  }
  pid_t child_ = 0;
};

struct LeavesAFile : RowScale {
  LeavesAFile(const NamedTensors& inputs, const Setting& setting)
      : RowScale(inputs, setting), file_(open("/dev/null", O_RDONLY)) {}
  int file_;
};

// Near what is forbidden ---------------------------------------------------------------------------------------------

struct PutsThreadsBack : RowScale {
  using RowScale::RowScale;
  void run() override {
    const int threads = at::get_num_threads();
    at::set_num_threads(1);
    RowScale::run();
    at::set_num_threads(threads);
  }
};

struct PutsLibrariesBack : RowScale {
  using RowScale::RowScale;
  void run() override {
    const bool before = at::globalContext().userEnabledMkldnn();
    at::globalContext().setUserEnabledMkldnn(!before);
    RowScale::run();
    at::globalContext().setUserEnabledMkldnn(before);
  }
};

struct PutsRoundingBack : RowScale {
  using RowScale::RowScale;
  void run() override {
    const int mode = fegetround();
    fesetround(FE_UPWARD);
    fesetround(mode);
    RowScale::run();
  }
};

struct OwnGenerator : RowScale {
  OwnGenerator(const NamedTensors& inputs, const Setting& setting)
      : RowScale(inputs, setting), numbers_(at::rand({4}, at::detail::createCPUGenerator(7))) {}
  at::Tensor numbers_;
};

struct ClosesItsFile : RowScale {
  ClosesItsFile(const NamedTensors& inputs, const Setting& setting)
      : RowScale(inputs, setting), file_(open("/dev/null", O_RDONLY)) {}
  ~ClosesItsFile() override { close(file_); }
  int file_;
};

// A worker that lives as long as the twin.
struct EndsItsThread : RowScale {
  EndsItsThread(const NamedTensors& inputs, const Setting& setting)
      : RowScale(inputs, setting), worker_([this] {
          while (!over_.load()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }) {}
  ~EndsItsThread() override {
    over_.store(true);
    worker_.join();
  }
  std::atomic<bool> over_{false};
  std::thread worker_;
};

SelftestCase plant(const std::string& name, const std::string& what, const std::string& caught_by, Factory optimized) {
  SelftestCase planted{name, what, caught_by, row_scale_component(optimized), Variant::kOptimized, nullptr, {}};
  planted.setting = row_scale_setting(planted.component, 6, 13);
  return planted;
}

SelftestCase harmless(const std::string& name, const std::string& what, Factory optimized) {
  return plant(name, what, "", optimized);
}

}  // namespace

std::vector<SelftestCase> meddlers() {
  return {
      plant("sets_threads", "changes the number of threads", "global_state", make<SetsThreads>),
      plant("flushes_to_zero", "its set-up makes denormals zero for all that follows", "global_state",
            make<FlushesToZero>),
      plant("rounds_up", "leaves another rounding mode", "global_state", make<RoundsUp>),
      plant("draws_numbers", "consumes the default random generator", "global_state", make<DrawsNumbers>),
      plant("sets_environment", "sets environment variables", "global_state", make<SetsEnvironment>),
      plant("changes_folder", "changes the working directory in outputs()", "global_state", make<ChangesFolder>),
      plant("installs_handler", "its set-up takes over a signal", "global_state", make<InstallsHandler>),
      plant("turns_gradients_off", "leaves gradients switched off", "global_state", make<TurnsGradientsOff>),
      plant("switches_libraries_off", "its set-up switches LibTorch's library for products off", "global_state",
            make<SwitchesLibrariesOff>),
      plant("looks_for_anomalies", "its set-up leaves autograd's anomaly mode on", "global_state",
            make<LooksForAnomalies>),
      plant("lets_threads_vary", "its set-up lets later regions have fewer threads", "global_state",
            make<LetsThreadsVary>),
      plant("casts_automatically", "leaves automatic casts on: others compute in bf16", "global_state",
            make<CastsAutomatically>),
      plant("crowds_workers", "leaves the worker threads on one processor", "global_state", make<CrowdsWorkers>),
      plant("yields_to_others", "its set-up lowers the priority of what runs after it", "global_state",
            make<YieldsToOthers>),
      plant("lowers_a_limit", "lowers a limit of the process", "global_state", make<LowersALimit>),
      plant("leaves_a_thread", "leaves a thread behind", "outlives", make<LeavesAThread>),
      plant("leaves_a_process", "leaves a process behind", "outlives", make<LeavesAProcess>),
      plant("leaves_a_file", "leaves a file open", "outlives", make<LeavesAFile>),
      harmless("puts_threads_back", "changes the number of threads and puts it back", make<PutsThreadsBack>),
      harmless("puts_libraries_back", "switches a library and puts the switch back", make<PutsLibrariesBack>),
      harmless("puts_rounding_back", "changes the rounding mode and puts it back", make<PutsRoundingBack>),
      harmless("own_generator", "draws from a generator of its own", make<OwnGenerator>),
      harmless("closes_its_file", "holds a file open while it lives", make<ClosesItsFile>),
      harmless("ends_its_thread", "has a thread while it lives", make<EndsItsThread>),
  };
}

}  // namespace twinbench::selftest
