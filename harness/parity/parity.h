// The parity engine: everything that must hold of one cell's answers, through the component's record alone.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "harness/parity/check_result.h"
#include "src/registry.h"

namespace twinbench {

class SharedCases;

struct ParityOptions {
  std::set<std::string> checks;  // empty: all
  int repeats = 8;               // runs of one runnable that must agree bit for bit
  double repeat_seconds = 2;     // and no longer than this, once there are two
  // Above this many elements of inputs and outputs only oracle, vacuity, determinism, input_mutation and invariant run,
  // and threads, with many of them, of an optimized variant: the other checks are about indexing and state, which
  // smaller cases show.
  std::int64_t thorough_elements = 2'000'000;
  int gradient_directions = 2;     // through all entries of a gradient, checked by central differences
  int gradient_samples = 64;       // and so many single entries
  double gradient_seconds = 60;    // and no longer than this, once a direction of each is done
  bool gradients_of_large = true;  // of timed cases too
  bool all_thread_counts = true;   // 1, 2, 8 and a drawn one; else 1 and one of the others, which cases take in turn
  int turns = 1;                   // a case takes one in so many of the rules that need further runs; see takes_turn()
  // Of a held-out draw: a cell's checks take the baseline, or on simt the candidate, some twenty to a hundred times,
  // and a child has two minutes. Counted, so that every machine draws alike.
  std::int64_t most_operators = 100'000;  // of the baseline, where no formula bounds them beforehand
  std::uint64_t most_turns = 10'000'000;  // of threads on the host: two seconds
  double overlap_seconds = 0.03;          // of runs whose pieces overlap, a number of threads
  std::string sample;  // the revision: it draws numbers of threads and of runs, so that they take turns
};

// The numbers of threads with which a cell is judged beside `present`, that of the process.
std::vector<int> drawn_thread_counts(const std::string& cell, const ParityOptions& options, int present);

// The number of an optimized large case, in which there is work for as many pieces as a large machine makes of it.
int drawn_many_threads(const std::string& cell, const ParityOptions& options);

// Whether a case takes that rule now: another revision draws others. Its variants take it together, for they share what
// it needs. A component's first case and the held-out one take all of them.
bool takes_turn(const std::string& rule, const Component& component, const Setting& setting,
                const ParityOptions& options);

// Names, in the order they run:
//   specimen           cases that show a documented mistake: the comparison rejects it (and no other check applies)
//   golden             worked examples of the specification (first case of the component only)
//   refusal            spoiled inputs are refused with the typed error that the specification names (first case and
//                      dtype only)
//   oracle             against the baseline in fp64 on the CPU, by the rules of harness/compare/compare.h
//   vacuity            the comparison rejects wrong answers; one output at least must be able to fail
//   determinism        two runnables, the second made in another thread, and `repeats` runs of that one, each after
//                      reset(): the same bits; short runs as many times more as 5 ms hold, and one behind those
//   input_mutation     run() leaves its inputs as they were, the state's among them
//   guard_bands        no byte outside a block is written, none is read before it is written (CPU: every allocation
//                      between bands and filled with 0xff; elsewhere the inputs lie between bands)
//   non_contiguous     strided inputs give the same answer, or are refused with a typed error (then skip)
//   stale              changed contents at the same addresses give the new answer, from the same runnable (batched
//                      inputs; its setup may copy some, which is said) and from a fresh one
//   batch_invariance   an item alone gives what it gives in the batch
//   poisoned_neighbour NaN in one item changes no bit of another
//   gradient           the oracle's gradients against central differences (backward cases, baseline cells on the CPU)
//   invariant          the component's own properties (forward cases); of a baseline, once: some wrong answer to a
//                      small case breaks each of them
//   relation           the same in two settings: bit for bit, or within tolerance
//   ways               right in every way that set-up could have taken, where it chooses among several
//   threads            right with 1, 2, 8 and a drawn number of threads (256 at most), and the same where their pieces
//                      overlap
//   carried            two to four runs that go on from each other's state give what the baseline's do, and one of
//                      the 5th to 16th does from the state that it found
//   instances          two live instances on different inputs, weights too, do not see each other
//   sensitivity        with every input changed, weights and neutral values too, the answer follows; of a baseline:
//                      some small case's answer depends on each input, and each output varies in one (once a pass)
//   precision          the same computation in bf16 is rejected where fp32 is due (baseline cells)
//   late               inputs overwritten between run() and outputs() change nothing, nor does a second outputs()
//   global_state       set-up, run and outputs leave the process as it was: threads, generator, floating-point mode
//   outlives           no thread, process or open file is left when its life is over
// Every other judged run starts with start_over(). Outputs that are measured are compared with nothing.
// A check that does not apply gives no row; one that applies but cannot be judged is skip with its reason; an exception
// is an error row. Never throws for what a variant does; throws kUnknownName for an unknown check name.
// `cases` keeps what the variants of a case have in common from one call to the next; consecutive calls should be of
// the same case (then of the same dtype).
std::vector<CheckResult> check_cell(const Component& component, Variant variant, const Setting& setting,
                                    std::uint64_t seed, const ParityOptions& options, SharedCases& cases);
std::vector<CheckResult> check_cell(const Component& component, Variant variant, const Setting& setting,
                                    std::uint64_t seed, const ParityOptions& options = {});

const std::vector<std::string>& parity_check_names();

}  // namespace twinbench
