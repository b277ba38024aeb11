// What the command line says, by subcommand.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

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
  double comparison_s = 0;           // seconds of pairs a comparison may take; 0: as the mode says
  std::string regime = "declared";   // hot, cold, rotating: of every twin on a device; declared: each component's own
  std::string thread_order = "all";  // of simt's threads: all (they take turns, run by run), forward, reverse, shuffled
  bool in_process = false;           // jobs run in this process: a crash ends all, and a checking tool sees all
  std::string command_line;
};

struct SessionOptions {
  std::vector<std::string> from;     // records whose ceilings and null test stand in for measuring them again
  std::vector<std::string> earlier;  // records whose decided twins come last
  bool only = false;                 // measure the session and no twin
  int null_cells = 5;                // twins compared with themselves
  int null_blocks = 0;               // ABBA blocks a cell, however narrow the interval gets; 0: as for any comparison
};

struct ScenarioOptions {
  std::string name;  // of one scenario, or its file; empty: all below `folder`
  std::string folder = "scenarios";
  std::string tier = "full";  // the largest that is run: smoke, std, full
};

struct KernelsOptions {
  std::string filter = ".";
  std::string pins = "ci/kernel_counts.json", budgets = "ci/kernel_budgets.json", machine_code = "ci/kernel_sass.json";
  std::string cards = "ci/cards";
  std::string out;                 // record file; empty: none is written
  std::vector<std::string> sizes;  // "flows=5000": of every cell instead of its case's; such cells are never pinned
  std::uint64_t seed = 1234;
  std::uint64_t most_threads = 1 << 19;  // of a launch that is counted whole
  double minutes = 0;                    // 0: no limit
  std::string sample;                    // draws the order under a limit; empty: the revision
  // In cases of many items, whose blocks are all alike, fewer stand for all.
  std::uint64_t most_threads_of_many = 1 << 14;
  std::int64_t many_items = 4096;
  bool pin = false, as_json = false, timed_only = false, pins_only = false;
};

struct DataOptions {
  std::string action;  // make, info, convert
  std::vector<std::string> inputs;
  std::string out;
  bool as_json = false, normalise = false, drop_invalid = false;
  std::string stored;            // fp32, bf16; empty: as the source
  long long width = 0;           // 0: any
  std::vector<long long> words;  // fewest and most words of a sentence that is kept; empty: the default
  long long rows = -1;           // most pairs made from text, thinned evenly; 0: all; -1: the default
};

struct ConfigurationOptions {
  std::string name;  // of one configuration, or its file; empty: a table of all below `folder`
  std::string folder = "configurations";
  double memory_gb = 32;  // of the card, 1e9 bytes each
  bool as_json = false;
};

}  // namespace twinbench
