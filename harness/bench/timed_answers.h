// The right answer for what is timed: every timed variant is judged on changed inputs before and after its samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/bench/content_walk.h"
#include "harness/parity/reference.h"
#include "harness/timing/clock.h"
#include "harness/timing/processor_time.h"
#include "src/registry.h"

namespace twinbench {

// The inputs of one twin, the same with other data, and the right answer to the latter: one oracle and one baseline run
// serve all variants. Set-ups may pack weights, so only data changes under a set-up runnable. Where a component has
// neither batch items nor state, what the baseline reads in run() every variant reads there. Where the baseline's
// set-up takes the data (it writes a file, say), or data of another seed has other shapes, nothing changes in place and
// the right answer is that of the twin's own inputs.
class TimedAnswers {
 public:
  // `setting.device` is where the tensors lie. Throws Error(kOutOfRange) where no seed near gives a valid case.
  TimedAnswers(const Component& component, const Setting& setting, std::uint64_t seed);

  const Component& component() const { return component_; }
  const Setting& setting() const { return setting_; }
  const NamedTensors& own() const { return own_; }          // as generated: what is timed
  const NamedTensors& changed() const { return changed_; }  // other data, the same weights
  const NamedTensors& foreign() const { return foreign_; }  // a third set, weights too
  NamedTensors never_seen(std::uint64_t number) const;      // another set for each number, weights too
  // The same with the twin's own weights, to be written in place; nothing where its shapes are others.
  NamedTensors fresh(std::uint64_t number) const;
  bool changes_in_place() const { return !in_place_.empty(); }

  const std::vector<std::string>& in_place() const { return in_place_; }  // the inputs that changed() changes

  // Empty, or why these are not the outputs for the changed inputs. Also: that somebody wrote to the expected values.
  std::string wrong(const NamedTensors& outputs) const;
  // Empty, or why `after` is not what one run on these inputs makes of the state that `before` holds, what the run
  // before it gave. Also empty where nobody can say: a state that does not come out, one that the baseline refuses.
  std::string wrong_step(const NamedTensors& found, const NamedTensors& before, const NamedTensors& after) const;
  // Throws Error(kInternal) where the answer to the twin's own inputs would pass for the changed ones, or where nothing
  // changes with the seed: nothing could fail.
  void require_another_answer(const NamedTensors& own_outputs) const;

 private:
  NamedTensors with_other_data(std::uint64_t seed);
  void expect_answers_to_changed();
  bool baseline_follows() const;  // a change of its data under a set-up
  std::uint64_t hash() const;

  const Component& component_;
  Setting setting_;
  std::uint64_t seed_;
  NamedTensors own_, changed_, foreign_;
  std::vector<std::string> in_place_;
  std::unique_ptr<Reference> reference_;
  std::uint64_t hash_ = 0;                    // of the right answers and of what is written into the inputs
  mutable std::set<std::uint64_t> accepted_;  // the bits of outputs that were judged right: they need no judging again
};

// A variant set up for timing on tensors of its own.
class JudgedVariant {
 public:
  // Before the set-up that is timed another one runs on the same tensors with foreign contents: what a variant keeps
  // beyond a set-up, by address or at all, is then wrong. `copies`: so many sets of tensors with a runnable each.
  // `path`: the device whose code path runs (see Component::make). `changing`: timed() changes contents in each run.
  JudgedVariant(Variant variant, Device path, const TimedAnswers& answers, std::size_t copies = 1,
                bool changing = false);

  const std::vector<std::unique_ptr<Runnable>>& copies() const { return runnables_; }
  // Of the first copy's first run, on the twin's own inputs.
  const NamedTensors& first() const { return first_; }

  // One timed run: run() and obtaining the outputs, on contents that no run before has seen (see ContentWalk).
  void timed_run();
  // Between samples: the next copy's addresses from here on.
  void next_copy() { copy_ = (copy_ + 1) % runnables_.size(); }

  // The rules. Each returns nothing, or its name and what broke it. All write other data into the very tensors
  // that the timed runnables read, run, compare, and put the inputs back. The outputs are the other data's until the
  // next run. Before: also runs on inputs that change and stay by turns, each of which must give its answer.
  std::string judge_before();
  // Between samples: what the last timed run left is what the same runnable gives again.
  std::string judge_while();
  // Also compares with the first run's outputs, and looks whether runs remember.
  std::string judge_after();

  // Empty, or which output of any copy is not what the first run gave on the same inputs: bit for bit on the CPU.
  // Atomic sums of a device come in another order each run, so that an honest variant may differ in the last digits
  // there.
  std::string difference_from_first();

 private:
  NamedTensors repeatable(const NamedTensors& outputs) const;
  void run_each();  // from the state that set-up was given
  void write(const NamedTensors& contents);
  // `from_almost_the_same`: a run on inputs that are another in one element only comes first.
  std::string wrong_on_changed_inputs(bool from_almost_the_same = false);
  std::string wrong_in_turns();
  std::string wrong_after_half_a_change();
  std::string left_by_timed_run();
  // Where nothing changes in place, no change can show that a run computes. Then it must write its outputs anew, and a
  // first run on data that nobody has seen may not take many times as long as those after it.
  std::string remembers_setup();
  // Else a run on contents that it has not seen may not take much longer than the next one on the same: what keeps
  // answers, whole or by tile, gains from a walk that changes one element a run, or none where all data are integers.
  std::string remembers_contents();
  double seconds_on(const NamedTensors& contents);
  // Runs that go on from each other may not come to take a small part of one that starts over; where one is too quick
  // to say so, a last one must make of its state what the baseline makes of it.
  std::string stops_working();
  bool is_slow() const;

  Variant variant_;
  Device path_;
  const TimedAnswers& answers_;
  double run_to_run_;  // what may lie between two runs, see difference()
  std::vector<NamedTensors> inputs_;
  std::vector<std::unique_ptr<Runnable>> runnables_;
  std::vector<ContentWalk> walks_;  // one a copy; empty where contents do not change while timed
  std::size_t copy_ = 0;
  bool timed_ = false;  // since the inputs were written
  double run_s_ = 0;    // of the last judged run, all copies
  double first_s_ = 0;  // of the first copy's first run
  NamedTensors first_;
};

// Of run() and obtaining the outputs, by the processor's time, which waiting beside others does not stretch; less what
// new memory costs, which first runs take.
double seconds_of_run(Runnable& runnable, double (*clock)() = processor_seconds);

// Which output of a later run differs from that of an earlier one on the same inputs; empty where none does. `relative`
// 0: bit for bit, NaN equal to NaN. Above 0: NaN in the same places, and the rest within so much of it by L2 norm;
// integers bit for bit always.
std::string difference(const NamedTensors& now, const NamedTensors& then, double relative);

}  // namespace twinbench
