// Watching operators through LibTorch's own hooks.
#include "harness/bench/operator_share.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>
#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "harness/compare/inputs.h"
#include "harness/counters/operator_kind.h"
#include "harness/instructions/counted_cells.h"
#include "harness/timing/processor_time.h"
#include "src/inputs.h"

namespace twinbench {
namespace {

// A small case of ten operators tells by its least run what one takes only after many.
constexpr int kMostRuns = 5, kMostShortRuns = 100;
constexpr double kEnough_s = 0.3, kShortRuns_s = 0.01;

thread_local bool is_watching = false;
thread_local int depth = 0, counted_depth = 0;
thread_local double entered_at = 0, inside_s = 0;
thread_local std::int64_t operators = 0;

// As the counters see it: not a view, metadata or a composite, which anybody may call at will without being counted,
// nor what brackets a step of autograd. An operator is known by where its name stands, for as long as it is.
bool is_counted(const at::RecordFunction& function) {
  if (function.scope() == at::RecordScope::CUSTOM_CLASS) return true;
  thread_local std::unordered_map<const char*, bool> known;
  const auto [found, is_new] = known.try_emplace(function.name(), false);
  if (is_new) {
    const auto name = function.operator_name();
    const auto handle = name ? c10::Dispatcher::singleton().findSchema(*name) : std::nullopt;
    found->second = handle && classify(*handle).kind != OperatorKind::kTransparent;
  }
  return found->second;
}

std::unique_ptr<at::ObserverContext> enter(const at::RecordFunction& function) {
  if (is_counted(function)) operators += counted_depth++ == 0;
  if (depth++ == 0) entered_at = thread_seconds();
  return nullptr;
}
void leave(const at::RecordFunction& function, at::ObserverContext*) {
  if (--depth == 0) inside_s += thread_seconds() - entered_at;
  counted_depth -= is_counted(function);
}

// The registered allocator, but that the time in which results of operators are given back is theirs: a large one's
// pages go back to the system, which takes as long as an operator. Only where operators are watched: reading the clock
// twice for each of the thousands that an operator over lists gives back would make the unwatched run the slower one.
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
    if (!is_watching) return own_release(data);
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
    depth = counted_depth = 0, inside_s = 0, operators = 0;
    is_watching = true;
  }
  ~Watch() {
    is_watching = false;
    at::removeCallback(handle_);
  }
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

double work_beside_operators(const Cell& cell) {
  const auto& spec = cell.component->spec;
  return spec.host_bytes ? spec.host_bytes(completed(spec.signature, cell.setting())) : work_of(cell);
}

}  // namespace

std::vector<const Case*> small_cases_for(const Cell& timed, bool host) {
  const auto& cases = timed.component->spec.cases;
  const auto cell_of = [&](const Case& one) {
    return Cell{timed.component, timed.variant, timed.device, timed.dtype, &one};
  };
  const Options way = way_of(timed);
  const auto rank = [&](const Cell& cell) {
    const Options other = way_of(cell);
    const auto shared = [&](const auto& option) {
      return other.contains(option.first) && other.at(option.first) == option.second;
    };
    return std::pair(std::ranges::count_if(way, shared), work_of(cell));
  };
  std::vector<Cell> small;
  for (const Case& one : cases)
    if (one.pass == timed.input_case->pass && is_countable(cell_of(one))) small.push_back(cell_of(one));
  if (small.empty()) return {};
  const auto counted = counted_by_instructions(small);
  std::vector<const Case*> result = {std::ranges::max_element(counted, {}, rank)->input_case};
  if (!host) return result;
  const Case* const most = std::ranges::max_element(small, {}, rank)->input_case;
  if (most != result.front()) result.push_back(most);
  return result;
}

OperatorShare operator_share(Runnable& runnable) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  OperatorShare least{kNone, 0, kNone};
  const WatchReleases releases;
  double spent = 0;
  const auto goes_on = [&](int run) {
    return run < 2 || (run < kMostRuns ? spent < kEnough_s : run < kMostShortRuns && spent < kShortRuns_s);
  };
  for (int run = 0; goes_on(run); ++run) {
    // Each from the same state, on which what a run takes may depend.
    runnable.start_over();
    least.unwatched_s = std::min(least.unwatched_s, run_seconds(runnable));
    runnable.start_over();
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
  constexpr double kShare = 0.15, kMore = 0.2, kGrows = 2, kFaster = 1.25, kShort_s = 1e-3;
  constexpr double kMostShare = 0.65, kMostBeside_s = 2e-6;
  char text[240];
  if (timed.unwatched_s > kFaster * timed.watched_s + kShort_s) {
    std::snprintf(text, sizeof text, "it takes %.3g s, and %.3g s where its operators are watched", timed.unwatched_s,
                  timed.watched_s);
    return text;
  }
  if (small.watched_s == 0) {
    if (host || timed.share() <= kMostShare || timed.beside_one_s() <= kMostBeside_s) return "";
    std::snprintf(text, sizeof text,
                  "%.0f %% of its time is beside operators, %.3g us an operator, and no host_work is declared",
                  100 * timed.share(), 1e6 * timed.beside_one_s());
    return text;
  }
  const double more = timed.share() * (1 - small.beside_one_s() / timed.beside_one_s());
  if (timed.share() <= kShare || more <= kMore) return "";
  if (host && timed.beside_s() / timed.work <= kGrows * small.beside_s() / small.work) return "";
  std::snprintf(text, sizeof text,
                "%.0f %% of its time is beside operators, %.3g us an operator; in a small case that is %.3g",
                100 * timed.share(), 1e6 * timed.beside_one_s(), 1e6 * small.beside_one_s());
  return text;
}

std::string BesideOperators::padding() const {
  if (small.empty()) return padding_of(timed, {}, host);
  for (const OperatorShare& one : small)
    if (auto padding = padding_of(timed, one, host); !padding.empty()) return padding;
  return "";
}

BesideOperators beside_operators(const Cell& timed, Runnable& runnable, std::uint64_t seed) {
  constexpr int kMostTries = 5;  // other load on the machine strikes once, and twice, but padding is always there
  BesideOperators beside{{}, {}, !timed.component->has_kernel || !timed.component->spec.host_work.empty()};
  std::vector<std::unique_ptr<Runnable>> small;
  std::vector<double> work;
  for (const Case* const one : small_cases_for(timed, beside.host)) {
    const Cell cell{timed.component, timed.variant, timed.device, timed.dtype, one};
    const Setting setting = cell.setting();
    small.push_back(timed.component->make(
        timed.variant,
        placed_inputs(generated_inputs(timed.component->spec, setting, seed), setting.dtype, setting.device), setting));
    work.push_back(work_beside_operators(cell));
  }
  for (int tried = 0; tried == 0 || (tried < kMostTries && !beside.padding().empty()); ++tried) {
    const double quickest_s = tried == 0 ? std::numeric_limits<double>::infinity() : beside.timed.unwatched_s;
    beside.timed = operator_share(runnable);
    beside.timed.unwatched_s = std::min(beside.timed.unwatched_s, quickest_s);
    if (!small.empty()) beside.timed.work = work_beside_operators(timed);
    beside.small.clear();
    for (std::size_t i = 0; i < small.size(); ++i) {
      beside.small.push_back(operator_share(*small[i]));
      beside.small.back().work = work[i];
    }
  }
  return beside;
}

nlohmann::json to_json(const BesideOperators& beside) {
  return {{"share", beside.timed.share()},
          {"operators", beside.timed.operators},
          {"of_one_us", 1e6 * beside.timed.beside_one_s()},
          {"of_one_small_us", beside.small.empty() ? 0 : 1e6 * beside.small.front().beside_one_s()}};
}

}  // namespace twinbench
