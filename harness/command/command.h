// The subcommands of the program, and what they share.
#pragma once

#include <c10/core/Device.h>

#include <string>
#include <vector>

#include "harness/command/options.h"
#include "harness/ledger/ledger.h"  // exit codes
#include "src/registry.h"

namespace twinbench {

int list_command(const CommandOptions& options, bool as_json, bool cells);
int parity_command(const CommandOptions& options, const std::string& checks);
// trace_all: device activity of CPU cells too, which should be none.
int counters_command(const CommandOptions& options, const std::string& pins_file, bool pin, bool trace_all);
// `timed`: of baselines where they are timed. `arguments`: the command line, with which the program starts itself anew
// under Callgrind.
int instructions_command(CommandOptions options, const std::string& pins_file, bool pin, bool timed, char** arguments);
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

// Cells the filter matches on the chosen devices, present or not. None throws kUnknownName, unless the filter means
// `others` that are not listed: held-out cells.
std::vector<Cell> matching_cells(const CommandOptions& options, bool others = false);
// Those, to run them: throws kMissingDevice where CUDA is asked for and absent.
std::vector<Cell> selected_cells(const CommandOptions& options, bool others = false);

// Asks without starting the driver in this process where children are forked afterwards, which then may use the card.
bool cuda_is_present(bool forks_follow = true);
void require_cuda(
    bool forks_follow = true);  // throws kMissingDevice, with the state and its remedy, where there is none

// "K=V" pairs as sizes; throws kUnknownName (with the case's own sizes) or kOutOfRange.
void override_sizes(Case& input_case, const std::vector<std::string>& pairs);

}  // namespace twinbench
