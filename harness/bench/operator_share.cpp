// Watching operators through LibTorch's own hooks.
#include "harness/bench/operator_share.h"

#include <ATen/record_function.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <limits>

#include "harness/compare/inputs.h"
#include "src/inputs.h"

namespace twinbench {
namespace {

constexpr int kMostRuns = 5;
constexpr double kEnough_s = 0.3;

double thread_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

thread_local int depth = 0;
thread_local double entered = 0, inside = 0;
thread_local std::int64_t operators = 0;

std::unique_ptr<at::ObserverContext> enter(const at::RecordFunction&) {
  if (depth++ == 0) entered = thread_seconds();
  return nullptr;
}
void leave(const at::RecordFunction&, at::ObserverContext*) {
  if (--depth > 0) return;
  inside += thread_seconds() - entered;
  ++operators;
}

class Watch {
 public:
  Watch()
      : handle_(at::addThreadLocalCallback(at::RecordFunctionCallback(enter, leave)
                                               .scopes({at::RecordScope::FUNCTION, at::RecordScope::CUSTOM_CLASS}))) {
    depth = 0, inside = 0, operators = 0;
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

// The largest small case of that pass, of the same options where there is one.
const Case* small_case_for(const Cell& timed) {
  const Case* best = nullptr;
  double most = -1;
  for (const Case& one : timed.component->spec.cases) {
    if (one.timed || one.degenerate || !one.specimen.empty() || one.pass != timed.input_case->pass) continue;
    double elements = one.options == timed.input_case->options ? 1e30 : 1;  // beyond every size
    for (const auto& [symbol, size] : one.sizes) elements *= static_cast<double>(size);
    if (elements > most) most = elements, best = &one;
  }
  return best;
}

}  // namespace

OperatorShare operator_share(Runnable& runnable) {
  OperatorShare least{std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity(), 0};
  double spent = 0;
  for (int run = 0; run < kMostRuns && (run < 2 || spent < kEnough_s); ++run) {
    const double alone = run_seconds(runnable);
    least.total_s = std::min(least.total_s, alone);
    const Watch watch;
    spent += alone + run_seconds(runnable);
    if (inside >= least.inside_s) continue;
    least.inside_s = inside;
    least.operators = operators;
  }
  return least;
}

std::string padding_of(const OperatorShare& timed, const OperatorShare& small) {
  constexpr double kShare = 0.15, kGrows = 3, kNoise_s = 2e-6;
  if (timed.share() <= kShare) return "";
  if (small.operators == 0 || timed.outside_of_one_s() <= kGrows * small.outside_of_one_s() + kNoise_s) return "";
  char text[200];
  std::snprintf(text, sizeof text,
                "%.0f %% of its time is beside operators, %.3g us an operator; in the largest small case that is %.3g",
                100 * timed.share(), 1e6 * timed.outside_of_one_s(), 1e6 * small.outside_of_one_s());
  return text;
}

BesideOperators beside_operators(const Cell& timed, Runnable& runnable, std::uint64_t seed) {
  BesideOperators beside;
  beside.timed = operator_share(runnable);
  if (const Case* const one = small_case_for(timed)) {
    const Setting setting = Cell{timed.component, timed.variant, timed.device, timed.dtype, one}.setting();
    const NamedTensors inputs =
        placed_inputs(generated_inputs(timed.component->spec, setting, seed), setting.dtype, setting.device);
    const auto small = timed.component->make(timed.variant, inputs, setting);
    small->start_over();
    beside.small = operator_share(*small);
  }
  return beside;
}

nlohmann::json to_json(const BesideOperators& beside) {
  return {{"share", beside.timed.share()},
          {"operators", beside.timed.operators},
          {"of_one_us", 1e6 * beside.timed.outside_of_one_s()},
          {"of_one_small_us", 1e6 * beside.small.outside_of_one_s()}};
}

}  // namespace twinbench
