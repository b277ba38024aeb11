// Watching operators through LibTorch's own hooks.
#include "harness/bench/operator_share.h"

#include <ATen/record_function.h>
#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <utility>
#include <vector>

#include "harness/compare/inputs.h"
#include "harness/instructions/counted_cells.h"
#include "harness/timing/processor_time.h"
#include "src/inputs.h"

namespace twinbench {
namespace {

constexpr int kMostRuns = 5;
constexpr double kEnough_s = 0.3;

thread_local int depth = 0;
thread_local double entered_at = 0, inside_s = 0;
thread_local std::int64_t operators = 0;

std::unique_ptr<at::ObserverContext> enter(const at::RecordFunction&) {
  if (depth++ == 0) entered_at = thread_seconds();
  return nullptr;
}
void leave(const at::RecordFunction&, at::ObserverContext*) {
  if (--depth > 0) return;
  inside_s += thread_seconds() - entered_at;
  ++operators;
}

// The registered allocator, but that the time in which results of operators are given back is theirs: a large one's
// pages go back to the system, which takes as long as an operator.
class ReleasesWatched final : public c10::Allocator {
 public:
  explicit ReleasesWatched(c10::Allocator* wrapped) : wrapped_(wrapped) { own_release = wrapped->raw_deleter(); }
  c10::DataPtr allocate(std::size_t bytes) override {
    void* const data = wrapped_->raw_allocate(bytes);
    return {data, data, release, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return release; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { wrapped_->copy_data(to, from, bytes); }

 private:
  static void release(void* data) {
    const bool is_outermost = depth++ == 0;
    const double start = is_outermost ? thread_seconds() : 0;
    own_release(data);
    if (is_outermost) inside_s += thread_seconds() - start;
    --depth;
  }
  static inline c10::DeleterFnPtr own_release = nullptr;  // a block may outlive the watch
  c10::Allocator* wrapped_;
};

// Around all runs, so that what one leaves for the next to give back is watched, too.
class WatchReleases {
 public:
  WatchReleases() : allocator_(c10::GetCPUAllocator()), releases_(allocator_) {
    c10::SetCPUAllocator(&releases_, kEveryPriority);
  }
  ~WatchReleases() { c10::SetCPUAllocator(allocator_, kEveryPriority); }
  WatchReleases(const WatchReleases&) = delete;
  WatchReleases& operator=(const WatchReleases&) = delete;

 private:
  static constexpr std::uint8_t kEveryPriority = 255;
  c10::Allocator* const allocator_;
  ReleasesWatched releases_;
};

class Watch {
 public:
  Watch()
      : handle_(at::addThreadLocalCallback(at::RecordFunctionCallback(enter, leave)
                                               .scopes({at::RecordScope::FUNCTION, at::RecordScope::CUSTOM_CLASS}))) {
    depth = 0, inside_s = 0, operators = 0;
  }
  ~Watch() { at::removeCallback(handle_); }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  at::CallbackHandle handle_;
};

double run_seconds(Runnable& runnable) {
  const double start = thread_seconds();
  runnable.run();
  const NamedTensors outputs = runnable.outputs();
  return thread_seconds() - start;
}

}  // namespace

double elements_of(const Case& input_case) {
  double elements = 1;
  for (const auto& [symbol, size] : input_case.sizes) elements *= static_cast<double>(std::max<std::int64_t>(size, 1));
  return elements;
}

const Case* small_case_for(const Cell& timed) {
  std::vector<Cell> small;
  for (const Case& one : timed.component->spec.cases)
    if (one.pass == timed.input_case->pass)
      small.push_back({timed.component, timed.variant, timed.device, timed.dtype, &one});
  const Case* best = nullptr;
  std::pair<bool, double> most;
  for (const Cell& counted : counted_by_instructions(small)) {
    const Case& one = *counted.input_case;
    const std::pair<bool, double> now{one.options == timed.input_case->options, elements_of(one)};
    if (!best || now > most) most = now, best = &one;
  }
  return best;
}

OperatorShare operator_share(Runnable& runnable) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  OperatorShare least{kNone, 0, kNone};
  const WatchReleases releases;
  double spent = 0;
  for (int run = 0; run < kMostRuns && (run < 2 || spent < kEnough_s); ++run) {
    least.unwatched_s = std::min(least.unwatched_s, run_seconds(runnable));
    const Watch watch;
    const double watched = run_seconds(runnable);
    spent += watched;
    if (run > 0 && watched - inside_s >= least.beside_s()) continue;
    least.watched_s = watched;
    least.inside_s = inside_s;
    least.operators = operators;
  }
  return least;
}

std::string padding_of(const OperatorShare& timed, const OperatorShare& small, bool host) {
  constexpr double kShare = 0.15, kGrows = 2, kNoise_s = 1e-6, kFaster = 1.25, kShort_s = 1e-3;
  // Of what is shipped the largest share is 0.51, where an operator takes 0.8 us beside itself.
  constexpr double kMostShare = 0.65, kMostBeside_s = 2e-6;
  char text[240];
  if (timed.unwatched_s > kFaster * timed.watched_s + kShort_s) {
    std::snprintf(text, sizeof text, "it takes %.3g s, and %.3g s where its operators are watched", timed.unwatched_s,
                  timed.watched_s);
    return text;
  }
  if (!host && timed.share() > kMostShare && timed.beside_one_s() > kMostBeside_s) {
    std::snprintf(text, sizeof text,
                  "%.0f %% of its time is beside operators, %.3g us an operator, and no host_work is declared",
                  100 * timed.share(), 1e6 * timed.beside_one_s());
    return text;
  }
  if (small.watched_s == 0 || timed.share() <= kShare) return "";
  if (timed.beside_one_s() <= kGrows * small.beside_one_s() + kNoise_s) return "";
  if (host && timed.beside_s() / timed.elements <= kGrows * small.beside_s() / small.elements) return "";
  std::snprintf(
      text, sizeof text,
      "%.0f %% of its time is beside operators, %.3g us an operator; in the largest counted small case that is %.3g",
      100 * timed.share(), 1e6 * timed.beside_one_s(), 1e6 * small.beside_one_s());
  return text;
}

BesideOperators beside_operators(const Cell& timed, Runnable& runnable, std::uint64_t seed) {
  constexpr int kMostTries = 3;  // other load on the machine strikes once, and twice, but padding is always there
  BesideOperators beside{{}, {}, !timed.component->has_kernel || !timed.component->spec.host_work.empty()};
  const Case* const small_case = small_case_for(timed);
  std::unique_ptr<Runnable> small;
  if (small_case != nullptr) {
    const Setting setting = Cell{timed.component, timed.variant, timed.device, timed.dtype, small_case}.setting();
    small = timed.component->make(
        timed.variant,
        placed_inputs(generated_inputs(timed.component->spec, setting, seed), setting.dtype, setting.device), setting);
  }
  for (int tried = 0; tried == 0 || (tried < kMostTries && !beside.padding().empty()); ++tried) {
    beside.timed = operator_share(runnable);
    beside.timed.elements = elements_of(*timed.input_case);
    if (small == nullptr) continue;
    small->start_over();
    beside.small = operator_share(*small);
    beside.small.elements = elements_of(*small_case);
  }
  return beside;
}

nlohmann::json to_json(const BesideOperators& beside) {
  return {{"share", beside.timed.share()},
          {"operators", beside.timed.operators},
          {"of_one_us", 1e6 * beside.timed.beside_one_s()},
          {"of_one_small_us", beside.small.watched_s > 0 ? 1e6 * beside.small.beside_one_s() : 0}};
}

}  // namespace twinbench
