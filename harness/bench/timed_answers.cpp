// Changed inputs, the tensors they are written into, and what is compared.
#include "harness/bench/timed_answers.h"

#include <ATen/ATen.h>
#include <sys/resource.h>
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "harness/compare/inputs.h"
#include "harness/memory/tensor_hash.h"
#include "harness/parity/later_step.h"
#include "harness/timing/processor_time.h"
#include "src/common/error.h"
#include "src/inputs.h"

namespace twinbench {
namespace {

constexpr std::uint64_t kMostSeeds = 3;  // a mixed set may be no case: too many items near a decision, say
constexpr double kRunToRun = 1e-3;       // of a device
constexpr double kQuickRun = 2e-3;       // seconds: shorter ones are judged in turns too
constexpr double kSlowRun = 20e-3;       // longer ones are judged on changed inputs alone, once each time
constexpr double kFirstToLater = 5;      // warming memory, files and caches takes less
constexpr std::uint64_t kFirstRuns = 6;  // all of them slow: then no other load has been
constexpr double kNoRun = 3e-4;          // seconds: of shorter first runs nothing can be said
constexpr double kFault_s = 1e-6;        // a page of memory that is touched for the first time
constexpr double kNewToSeen = 3;         // branches that are foreseen the second time take less
constexpr int kQuickRounds = 3, kTries = 3;
constexpr double kFreshToLater = 10;  // of a state: what goes on needs no memory anew
constexpr int kFewestOn = 10, kMostOn = 1000;
constexpr double kGoingOn_s = 0.2;

// Does the contract leave open whether set-up or run() reads the data? It does without batch items and state.
bool may_read_in_setup(const ComponentSpec& spec) { return spec.batch_size.empty() && !spec.signature.has_state(); }

// Data that changes between timed runs.
std::vector<std::string> data_inputs(const ComponentSpec& spec, const Setting& setting) {
  std::vector<std::string> names;
  const auto read = inputs_read_by_run(spec, setting);
  for (const auto& input : inputs_of(spec.signature, completed(spec.signature, setting)))
    if (input.role == Role::kData && (may_read_in_setup(spec) || read.count(input.name))) names.push_back(input.name);
  return names;
}

bool same_form(const NamedTensors& a, const NamedTensors& b) {
  for (const auto& [name, tensor] : a)
    if (!b.contains(name) || b[name].sizes() != tensor.sizes() || b[name].dtype() != tensor.dtype()) return false;
  return true;
}

// Into the tensor's memory behind LibTorch's back: its version counter does not move, so that nobody can watch it.
void overwrite(const at::Tensor& tensor, const at::Tensor& contents) {
  if (tensor.numel() == 0) return;
  at::from_blob(tensor.mutable_data_ptr(), tensor.sizes(), tensor.strides(), tensor.options()).copy_(contents);
}

bool agree(const at::Tensor& now, const at::Tensor& then, double relative) {
  if (then.is_complex()) return agree(at::view_as_real(now.resolve_conj()), at::view_as_real(then), relative);
  if (!then.is_floating_point()) return now.eq(then).all().item<bool>();
  const auto both_nan = now.isnan().logical_and(then.isnan());
  if (relative == 0) return now.eq(then).logical_or(both_nan).all().item<bool>();
  if (!now.isnan().eq(then.isnan()).all().item<bool>()) return false;
  const auto before = then.masked_fill(both_nan, 0).to(at::kDouble),
             after = now.masked_fill(both_nan, 0).to(at::kDouble);
  const auto apart = (after - before).masked_fill(before.eq(after), 0);  // equal infinities are no difference
  return apart.norm().item<double>() <= relative * before.norm().item<double>();
}

std::uint64_t bits_of(const NamedTensors& tensors) {
  std::uint64_t sum = 0;
  for (const auto& [name, tensor] : tensors)
    sum = (sum * 31 + std::hash<std::string>()(name)) * 31 + (tensor.defined() ? hash_of(tensor) : 0);
  return sum;
}

long page_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

bool is_of_its_own(const at::Tensor& output, const NamedTensors& inputs) {
  return std::none_of(inputs.begin(), inputs.end(),
                      [&](const auto& input) { return input.second.storage().data() == output.storage().data(); });
}

// Of three runs, and of quick ones of ten: one that is disturbed must not hide what it did not compute.
double quickest_run(Runnable& runnable) {
  double seconds = seconds_of_run(runnable);
  for (int again = 1; again < (seconds > kSlowRun ? 3 : 10); ++again)
    seconds = std::min(seconds, seconds_of_run(runnable));
  return seconds;
}

}  // namespace

double seconds_of_run(Runnable& runnable, double (*clock)()) {
  const long faults = page_faults();
  const double start = clock();
  runnable.run();
  const NamedTensors outputs = runnable.outputs();
  return clock() - start - kFault_s * static_cast<double>(page_faults() - faults);
}

std::string difference(const NamedTensors& now, const NamedTensors& then, double relative) {
  if (now.size() < then.size()) return "there are fewer outputs than in the first run";
  for (const auto& [name, tensor] : then) {
    const auto& other = now[name];
    if (!other.sizes().equals(tensor.sizes()))
      return "output '" + name + "' has another shape than that of the first run";
    if (!agree(other, tensor, relative)) return "output '" + name + "' differs from that of the first run";
  }
  return "";
}

TimedAnswers::TimedAnswers(const Component& component, const Setting& setting, std::uint64_t seed)
    : component_(component),
      setting_(setting),
      seed_(seed),
      own_(generated_inputs(component.spec, setting, seed)),
      foreign_(generated_inputs(component.spec, setting, seed + kMostSeeds + 1)) {
  std::string why;
  for (std::uint64_t attempt = 1; attempt <= kMostSeeds; ++attempt) {
    changed_ = with_other_data(seed + attempt);
    expect_answers_to_changed();
    why = wrong(reference_->baseline());
    if (!why.empty()) continue;
    if (may_read_in_setup(component_.spec) && changes_in_place() && !baseline_follows()) {
      in_place_.clear();
      changed_ = own_;
      expect_answers_to_changed();
    }
    return;
  }
  throw Error(
      ErrorKind::kOutOfRange, component.spec.id() + " case " + setting.input_case.name,
      "seeds " + std::to_string(seed + 1) + " to " + std::to_string(seed + kMostSeeds),
      "the baseline itself fails on changed inputs, so nothing can be judged: " + why + "; take another --seed");
}

void TimedAnswers::expect_answers_to_changed() {
  reference_ = std::make_unique<Reference>(component_, setting_, changed_);
  hash_ = hash();
  accepted_.clear();
}

bool TimedAnswers::baseline_follows() const {
  NamedTensors inputs = placed_inputs(own_, setting_.dtype, setting_.device);
  const auto baseline = component_.make(Variant::kBaseline, inputs, setting_);
  const auto is_right = [&] {
    baseline->start_over();
    baseline->run();
    return wrong(copied_outputs(*baseline)).empty();
  };
  if (is_right()) return false;  // the data make no difference
  for (const auto& name : in_place_) overwrite(inputs[name], changed_[name]);
  return is_right();
}

NamedTensors TimedAnswers::never_seen(std::uint64_t number) const {
  return generated_inputs(component_.spec, setting_, seed_ + 2 * kMostSeeds + number);
}

NamedTensors TimedAnswers::fresh(std::uint64_t number) const {
  const NamedTensors other = never_seen(number);
  NamedTensors contents = own_;
  for (const auto& name : in_place_) {
    if (!same_form({{name, own_[name]}}, other)) return {};
    contents.set(name, other[name]);
  }
  return contents;
}

NamedTensors TimedAnswers::with_other_data(std::uint64_t seed) {
  const NamedTensors other = generated_inputs(component_.spec, setting_, seed);
  in_place_.clear();
  NamedTensors changed = own_;
  for (const auto& name : data_inputs(component_.spec, setting_)) {
    if (!same_form({{name, own_[name]}}, other)) {
      in_place_.clear();
      return own_;
    }
    changed.set(name, other[name]);
    in_place_.push_back(name);
  }
  return changed;
}

std::uint64_t TimedAnswers::hash() const {
  std::uint64_t sum = reference_->hash();
  for (const auto* set : {&own_, &changed_})
    for (const auto& [name, tensor] : *set) sum = sum * 31 + hash_of(tensor);
  return sum;
}

std::string TimedAnswers::wrong(const NamedTensors& outputs) const {
  const std::uint64_t bits = bits_of(outputs);
  if (accepted_.count(bits)) return "";
  if (hash() != hash_) return "the expected values were overwritten";
  CheckResult result;
  reference_->judge(outputs, result);
  if (result.reason.empty()) accepted_.insert(bits);
  return result.reason;
}

std::string TimedAnswers::wrong_step(const NamedTensors& found, const NamedTensors& before,
                                     const NamedTensors& after) const {
  NamedTensors inputs = own_;
  for (const auto& name : in_place_) inputs.set(name, found[name].to(own_[name].options()));
  return wrong_step_from(component_, setting_, std::move(inputs), before, after);
}

void TimedAnswers::require_another_answer(const NamedTensors& own_outputs) const {
  if (!changes_in_place() && bits_of(never_seen(1)) == bits_of(own_))
    throw Error(ErrorKind::kInternal, component_.spec.id() + " case " + setting_.input_case.name,
                "the same inputs under every seed",
                "a variant that keeps its answer would pass; time a case whose data are drawn");
  if (changes_in_place() && wrong(own_outputs).empty())
    throw Error(ErrorKind::kInternal, component_.spec.id() + " case " + setting_.input_case.name,
                "the same answer to other data",
                "a variant that ignores its inputs would pass; time a case whose answer depends on them");
}

JudgedVariant::JudgedVariant(Variant variant, Device path, const TimedAnswers& answers, std::size_t copies,
                             bool changing)
    : variant_(variant), path_(path), answers_(answers), run_to_run_(path == c10::DeviceType::CPU ? 0 : kRunToRun) {
  const Component& component = answers.component();
  const Setting& setting = answers.setting();
  const bool reusable = same_form(answers.own(), answers.foreign());
  for (std::size_t copy = 0; copy < copies; ++copy) {
    inputs_.push_back(
        placed_inputs(copy == 0 && reusable ? answers.foreign() : answers.own(), setting.dtype, setting.device));
    if (copy == 0) {
      component
          .make(variant, path,
                reusable ? inputs_.front() : placed_inputs(answers.foreign(), setting.dtype, setting.device), setting)
          ->run();
      if (reusable) write(answers.own());
    }
    runnables_.push_back(component.make(variant, path, inputs_.back(), setting));
    const double first_s = seconds_of_run(*runnables_.back());
    if (copy == 0) first_s_ = first_s;
    if (changing) walks_.emplace_back(inputs_.back(), answers.own(), answers.changed(), answers.in_place());
  }
  first_ = copied_outputs(*runnables_.front());
}

void JudgedVariant::timed_run() {
  if (!walks_.empty()) walks_[copy_].step();
  runnables_[copy_]->run();
  runnables_[copy_]->outputs();
  timed_ = true;
}

NamedTensors JudgedVariant::repeatable(const NamedTensors& outputs) const {
  return without_measured(output_specs(answers_.component().spec, answers_.setting()), outputs);
}

void JudgedVariant::run_each() {
  for (const auto& runnable : runnables_) {
    runnable->start_over();
    runnable->run();
  }
}

void JudgedVariant::write(const NamedTensors& contents) {
  for (const auto& inputs : inputs_)
    for (const auto& [name, tensor] : inputs) overwrite(tensor, contents[name]);
  timed_ = false;
}

std::string JudgedVariant::wrong_on_changed_inputs(bool from_almost_the_same) {
  write(answers_.changed());
  if (from_almost_the_same && !is_slow() && !walks_.empty() &&
      walks_.front().can_change()) {  // a key of a few elements sees nothing
    for (auto& walk : walks_) walk.set_apart(true);
    run_each();
    for (auto& walk : walks_) walk.set_apart(false);
  }
  SteadyClock clock;
  const auto start = clock.now();
  run_each();
  run_s_ = seconds_between(start, clock.now());
  const NamedTensors outputs = copied_outputs(*runnables_.front());
  std::string wrong = answers_.wrong(outputs);
  for (const auto& runnable : runnables_)
    if (wrong.empty() && runnable != runnables_.front())
      wrong = difference(runnable->outputs(), repeatable(outputs), run_to_run_);
  write(answers_.own());
  for (auto& walk : walks_) walk.go_on();
  return wrong;
}

// One launch that serves several calls, whichever of them it serves: in each pattern some call has new inputs.
std::string JudgedVariant::wrong_in_turns() {
  if (!answers_.changes_in_place() || walks_.empty() || run_s_ > kQuickRun) return "";
  write(answers_.changed());
  run_each();
  const NamedTensors right = copied_outputs(*runnables_.front());
  std::string wrong;
  int run = 0;
  for (const char turn : std::string("occoccoocococ")) {
    ++run;
    write(turn == 'o' ? answers_.own() : answers_.changed());
    runnables_.front()->start_over();
    runnables_.front()->run();
    wrong = difference(runnables_.front()->outputs(), repeatable(turn == 'o' ? first_ : right), run_to_run_);
    if (wrong.empty()) continue;
    wrong = "run " + std::to_string(run) + " of a series whose inputs change: " + wrong;
    break;
  }
  write(answers_.own());
  for (auto& walk : walks_) walk.go_on();
  return wrong;
}

double JudgedVariant::seconds_on(const NamedTensors& contents) {
  write(contents);
  runnables_.front()->start_over();
  return seconds_of_run(*runnables_.front());
}

// The same is written twice, before one run after the other: all that differs is what the run before has seen. The
// quickest of each kind are compared.
std::string JudgedVariant::remembers_contents() {
  if (variant_ == Variant::kBaseline) return "";  // it would only make its twin look slower
  double new_s = 1e30, seen_s = 1e30;
  std::uint64_t number = 0;
  for (int attempt = 0; attempt == 0 || (attempt < kTries && new_s >= kNewToSeen * seen_s); ++attempt)
    for (int round = 0; round < (is_slow() ? 1 : kQuickRounds); ++round) {
      const NamedTensors contents = answers_.fresh(++number);
      if (contents.empty()) return "";
      (void)seconds_on(answers_.own());  // what drawing the contents has taken out of the caches comes back
      new_s = std::min(new_s, seconds_on(contents));
      seen_s = std::min(seen_s, seconds_on(contents));
    }
  write(answers_.own());
  for (auto& walk : walks_) walk.go_on();
  if (new_s < kNewToSeen * seen_s) return "";
  char times[24];
  std::snprintf(times, sizeof times, "%.1f", new_s / seen_s);
  return "remembers: on contents that it has not seen a run takes " + std::string(times) +
         " times as long as the next one on the same: that one does not compute";
}

// No reference follows a state for long, so that whoever stops working after a while has no wrong answer.
std::string JudgedVariant::stops_working() {
  if (variant_ == Variant::kBaseline || !answers_.component().spec.signature.has_state()) return "";
  Runnable& runnable = *runnables_.front();
  double on_s = 1e30, fresh_s = 1e30;
  const double start = processor_seconds();
  int runs = 0;
  for (runnable.start_over(); runs < kFewestOn || (runs < kMostOn && processor_seconds() - start < kGoingOn_s); ++runs)
    runnable.run();
  const NamedTensors before = copied_outputs(runnable);
  runnable.run();
  const NamedTensors after = copied_outputs(runnable);
  for (int again = 0; again < kQuickRounds; ++again) on_s = std::min(on_s, seconds_of_run(runnable));
  for (int again = 0; again < kQuickRounds; ++again) {
    runnable.start_over();
    fresh_s = std::min(fresh_s, seconds_of_run(runnable));
  }
  if (fresh_s < kNoRun) {
    const std::string wrong = answers_.wrong_step(inputs_.front(), before, after);
    return wrong.empty() ? ""
                         : "remembers: behind " + std::to_string(runs) + " runs that go on from each other: " + wrong;
  }
  if (fresh_s < kFreshToLater * on_s) return "";
  return "remembers: behind " + std::to_string(runs) +
         " runs that go on from each other one takes less than a tenth of a run that starts over: it does not compute";
}

std::string JudgedVariant::remembers_setup() {
  const NamedTensors left = runnables_.front()->outputs();
  for (const auto& [name, tensor] : left)
    if (is_of_its_own(tensor, inputs_.front())) overwrite(tensor, at::zeros_like(tensor));
  run_each();
  if (const auto wrong = answers_.wrong(runnables_.front()->outputs()); !wrong.empty())
    return "remembers: after its outputs were overwritten, a run leaves: " + wrong;
  double first_s = first_s_, later_s = quickest_run(*runnables_.front());
  for (std::uint64_t fresh = 1; fresh <= kFirstRuns; ++fresh) {  // one may be disturbed, and so may some more
    if (first_s < kNoRun || first_s < kFirstToLater * later_s) return "";
    const Setting& setting = answers_.setting();
    const NamedTensors inputs = placed_inputs(answers_.never_seen(fresh), setting.dtype, setting.device);
    const auto runnable = answers_.component().make(variant_, path_, inputs, setting);
    first_s = seconds_of_run(*runnable);
    later_s = quickest_run(*runnable);
  }
  if (first_s < kFirstToLater * later_s) return "";
  return "remembers: on new data a first run takes " + std::to_string(std::llround(first_s / later_s)) +
         " times as long as the next ones: they do not compute";
}

// A device's inputs do not walk: instead each half changes alone first, so that a key of some elements stays the same
// while others change.
std::string JudgedVariant::wrong_after_half_a_change() {
  if (!answers_.changes_in_place() || !walks_.empty()) return "";
  std::string wrong;
  for (const bool first_half : {true, false}) {
    NamedTensors mixed = answers_.own();
    for (const auto& name : answers_.in_place()) {
      at::Tensor contents = answers_.own()[name].contiguous().clone();
      const at::Tensor other = answers_.changed()[name].contiguous();
      const std::int64_t half = contents.numel() / 2, from = first_half ? 0 : half;
      const std::int64_t count = first_half ? half : contents.numel() - half;
      contents.view({-1}).narrow(0, from, count).copy_(other.view({-1}).narrow(0, from, count));
      mixed.set(name, contents);
    }
    for (const auto* set : {&answers_.own(), static_cast<const NamedTensors*>(&mixed), &answers_.changed()}) {
      write(*set);
      run_each();
    }
    wrong = answers_.wrong(copied_outputs(*runnables_.front()));
    if (!wrong.empty()) break;
  }
  write(answers_.own());
  return wrong;
}

std::string JudgedVariant::judge_before() {
  std::string wrong = wrong_on_changed_inputs(true);
  if (wrong.empty()) wrong = wrong_after_half_a_change();
  if (!wrong.empty()) return "answer_before_timing: on changed inputs " + wrong;
  wrong = wrong_in_turns();
  if (!wrong.empty()) return "answer_before_timing: " + wrong;
  return path_ == c10::DeviceType::CPU && !answers_.changes_in_place() ? remembers_setup() : "";
}

std::string JudgedVariant::difference_from_first() {
  if (answers_.component().spec.signature.has_state()) run_each();  // timed runs went on from where the last one ended
  for (const auto& runnable : runnables_)
    if (const std::string found = difference(runnable->outputs(), repeatable(first_), run_to_run_); !found.empty())
      return found;
  return "";
}

bool JudgedVariant::is_slow() const { return std::min(first_s_, run_s_ > 0 ? run_s_ : first_s_) > kSlowRun; }

std::string JudgedVariant::left_by_timed_run() {
  if (!timed_ || answers_.component().spec.signature.has_state()) return "";
  Runnable& runnable = *runnables_[copy_];
  const NamedTensors left = copied_outputs(runnable);
  runnable.run();
  const std::string found = difference(runnable.outputs(), repeatable(left), run_to_run_);
  return found.empty() ? "" : "run again on what the last timed run had: " + found;
}

std::string JudgedVariant::judge_while() {
  if (!is_slow())
    if (const std::string changed = left_by_timed_run(); !changed.empty()) return "answer_while_timed: " + changed;
  const std::string wrong = wrong_on_changed_inputs();
  return wrong.empty() ? "" : "answer_while_timed: on changed inputs " + wrong;
}

std::string JudgedVariant::judge_after() {
  if (!walks_.empty() && !is_slow()) {
    if (const std::string changed = left_by_timed_run(); !changed.empty())
      return "answer_changed_while_timed: " + changed;
    write(answers_.own());
    run_each();
  }
  if (walks_.empty() || !is_slow())
    if (const std::string changed = difference_from_first(); !changed.empty())
      return "answer_changed_while_timed: " + changed;
  if (const std::string wrong = wrong_on_changed_inputs(); !wrong.empty())
    return "answer_after_timing: on changed inputs " + wrong;
  if (path_ != c10::DeviceType::CPU) return "";
  const std::string stopped = stops_working();
  return stopped.empty() && answers_.changes_in_place() ? remembers_contents() : stopped;
}

}  // namespace twinbench
