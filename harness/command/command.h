// What every subcommand of the program shares: its options, and the exit codes.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "harness/command/session.h"
#include "harness/ledger/ledger.h"  // exit codes
#include "src/registry.h"

namespace twinbench {

struct CommandOptions {
  std::string filter = ".";    // regular expression on cell names
  std::string out;             // record file; empty: none is written
  std::string device = "cpu";  // cpu, cuda, simt, all
  std::uint64_t seed = 1234;
  int threads = 0;                    // 0: as many as the machine has cores
  double time_limit_s = 120;          // a child process
  bool time_limit_given = false;      // by the user: then nothing takes more, whatever it needs
  std::int64_t memory_limit_mib = 0;  // 0: 8192, and 32768 where CUDA may run, whose driver maps several GiB for itself
  bool quick = false;
  std::string tier = "full";         // quick: every check at small sizes, large cases sampled; full: everything
  std::string sample;                // decides the sample and the order; empty: the revision
  std::string held_out;              // decides the held-out cases; empty: the revision; none: there are none
  std::string shard;                 // "i/n": only that part; empty: everything
  double minutes = 0;                // no cell, twin or job is begun after that many; 0: no limit
  bool require_device = false;       // a cell that cannot run here is an error, not a skip
  std::string regime = "declared";   // hot, cold, rotating: of every twin on a device; declared: each component's own
  std::string thread_order = "all";  // of simt's threads: all (they take turns, run by run), forward, reverse, shuffled
  bool in_process = false;           // jobs run in this process: a crash ends all, and a checking tool sees all
  std::string command_line;
};

int list_command(const CommandOptions& options, bool as_json, bool cells);
int parity_command(const CommandOptions& options, const std::string& checks);
// trace_all: device activity of CPU cells too, which should be none.
int counters_command(const CommandOptions& options, const std::string& pins_file, bool pin, bool trace_all);
// `arguments`: the command line, with which the program starts itself anew under Callgrind.
int instructions_command(CommandOptions options, const std::string& pins_file, bool pin, char** arguments);
// drop: with pin, lets go of facts that are gone; otherwise they make it fail.
int coverage_command(const std::string& pins_file, const std::string& scenario_folder, bool pin, bool drop);
int bench_command(const CommandOptions& options, const SessionOptions& session,
                  const std::vector<std::string>& google_benchmark_flags);
int null_command(const CommandOptions& options, std::size_t comparisons);  // `bench --null`
int ceilings_command(const CommandOptions& options);
// timing: "all"; "only" those twins whose verdict is one of time; "without" them.
int selftest_command(const CommandOptions& options, const std::string& timing);
int dump_command(const CommandOptions& options, const std::string& cell, const std::vector<std::string>& sizes,
                 const std::string& out);
int check_command(const CommandOptions& options, const std::string& cell, const std::string& from);

// Cells the filter matches on the chosen devices. Where CUDA is asked for and absent: throws kMissingDevice. None throws
// kUnknownName, unless the filter means `others` that are not listed: held-out cells.
std::vector<Cell> selected_cells(const CommandOptions& options, bool others = false);

// Asks without starting the driver in this process where children are forked afterwards, which then may use the card.
bool cuda_is_present(bool forks_follow = true);
void require_cuda(
    bool forks_follow = true);  // throws kMissingDevice, with the state and its remedy, where there is none

// "K=V" pairs as sizes; throws kUnknownName (with the case's own sizes) or kOutOfRange.
void override_sizes(Case& input_case, const std::vector<std::string>& pairs);

}  // namespace twinbench
