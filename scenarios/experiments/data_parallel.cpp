// Kind `data_parallel`: a window's items over several processes, gradients added up between them, against one process
// on all of them. A rank that ends, hangs or drifts is named; with `lost_at_window` one does, on purpose, and the run
// goes on from its last checkpoint.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <numeric>

#include "harness/command/tensor_file.h"
#include "harness/memory/tensor_hash.h"
#include "harness/runner/runner.h"
#include "scenarios/runner/experiment.h"
#include "scenarios/runner/observe.h"
#include "src/common/error.h"
#include "src/formats/checkpoint_file.h"
#include "src/formats/file_io.h"
#include "src/process_group.h"

namespace twinbench::experiments::data_parallel {
namespace {

using nlohmann::json;

// Gradients in the order in which a backward pass has them, the last parameter's first.
std::vector<at::Tensor> reversed(const NamedTensors& gradients) {
  std::vector<at::Tensor> tensors;
  for (const auto& [name, tensor] : gradients) tensors.insert(tensors.begin(), tensor);
  return tensors;
}

// Which tensors travel together: each bucket is filled up to `bytes`; a larger tensor has one of its own.
std::vector<std::vector<at::Tensor>> buckets_of(const NamedTensors& gradients, double bytes) {
  std::vector<std::vector<at::Tensor>> buckets;
  double filled = 0;
  for (const auto& tensor : reversed(gradients)) {
    const auto more = static_cast<double>(tensor.nbytes());
    if (buckets.empty() || filled + more > bytes) buckets.emplace_back(), filled = 0;
    buckets.back().push_back(tensor);
    filled += more;
  }
  return buckets;
}

// A bucket is on its way while the next one is packed. Returns the share of them that had been reduced by the time
// the last was packed.
double reduce_in_buckets(ProcessGroup& group, const NamedTensors& gradients, double bytes) {
  const auto buckets = buckets_of(gradients, bytes);
  std::vector<at::Tensor> packed;
  for (const auto& bucket : buckets) {
    std::vector<at::Tensor> flat;
    for (const auto& tensor : bucket) flat.push_back(tensor.reshape({-1}));
    packed.push_back(at::cat(flat).cpu());
    group.begin_all_reduce(packed.back());
  }
  const auto overlap = static_cast<double>(group.done()) / static_cast<double>(buckets.size());
  group.wait_all();
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    std::int64_t place = 0;
    for (const auto& tensor : buckets[i]) {
      tensor.copy_(packed[i].narrow(0, place, tensor.numel()).view(tensor.sizes()));
      place += tensor.numel();
    }
  }
  return overlap;
}

// The baseline's way: after every micro-batch, one blocking call a tensor.
void micro_step_and_reduce(ProcessGroup& group, WindowRun& run, std::int64_t begin, std::int64_t count) {
  const auto gradients = run.gradients();
  const auto so_far = copies_of(gradients);
  for (const auto& [name, tensor] : gradients) tensor.zero_();
  run.micro_step(begin, count);
  for (const auto& tensor : reversed(gradients)) group.all_reduce(tensor);
  for (const auto& [name, tensor] : gradients) tensor.add_(so_far[name].to(tensor.device()));
}

struct Share {
  std::int64_t begin = 0, rows = 0;
};

std::int64_t micro_steps(const ScenarioConfig& config) {
  // As many in every rank, or one would wait for another: by the rank with most rows.
  const auto counts = config.counts("rows_by_rank");
  const auto most = *std::max_element(counts.begin(), counts.end()), rows = config.count("micro_batch_rows");
  return rows == 0 ? 1 : std::max<std::int64_t>(1, (most + rows - 1) / rows);
}

enum class Loss { kNone, kDeath, kSilence };

// One start of all ranks. The next one in the same folder goes on from what this one saved.
struct Attempt {
  std::string folder;
  int number = 0;  // by which its ranks meet
  bool saves = false;
  Loss loss = Loss::kNone;  // of the rank and at the window that the scenario names

  std::string file(const std::string& name) const { return folder + "/" + name + "_" + std::to_string(number); }
  std::string checkpoint() const { return folder + "/last.efck"; }
};

void save(WindowRun& run, std::int64_t windows, const Attempt& attempt) {
  TensorFile file;
  for (const auto& [name, tensor] : run.state()) file.outputs.set(name, tensor.cpu().contiguous());
  file.outputs.set("windows", at::full({1}, windows, at::kLong));
  write_tensor_file(attempt.folder + "/saved.safetensors", file);
  checkpoint_from_safetensors(attempt.folder + "/saved.safetensors", attempt.checkpoint(), SectionCodec::kPlanes);
}

// Puts the last checkpoint's state in place; returns how many windows it has behind it.
std::int64_t load(WindowRun& run, const Attempt& attempt, int rank) {
  if (!std::filesystem::exists(attempt.checkpoint())) return 0;
  const auto path = attempt.file("loaded_" + std::to_string(rank));
  checkpoint_to_safetensors(CheckpointFile(attempt.checkpoint()).view(), path);
  const auto saved = read_tensor_file(path).outputs;
  NamedTensors state;
  for (const auto& [name, tensor] : saved)
    if (name != "windows") state.set(name, tensor);
  run.set_state(state);
  return saved["windows"].item<std::int64_t>();
}

void lose(Loss loss) {
  if (loss == Loss::kDeath) ::kill(::getpid(), SIGKILL);
  for (;;) ::pause();  // the runner ends it
}

json run_rank(const Trial& trial, Variant variant, int rank, const std::vector<Share>& shares, const Attempt& attempt,
              JobContext& context) {
  const auto& config = trial.config;
  at::set_num_threads(1);  // the ranks share the machine's cores
  const auto workload = trial.source.prepare(config);
  const auto made = workload->make(trial.setting(variant));
  auto& run = windows_of(*made);
  const std::int64_t begin = load(run, attempt, rank);
  ProcessGroup group(attempt.file("store"), rank, static_cast<int>(shares.size()), config.real("timeout_s"));
  const Share share = shares[static_cast<std::size_t>(rank)];
  const auto each = config.count("micro_batch_rows") == 0 ? share.rows : config.count("micro_batch_rows");
  TensorFile file;
  json digests = json::array();
  double overlap = 0;
  for (std::int64_t w = begin; w < config.count("windows"); ++w) {
    if (attempt.loss != Loss::kNone && rank == config.count("lost_rank") && w + 1 == config.count("lost_at_window"))
      lose(attempt.loss);
    run.begin_window();
    for (std::int64_t i = 0; i < micro_steps(config); ++i) {
      const auto from = std::min(share.rows, i * each), count = std::min(each, share.rows - from);
      if (variant == Variant::kBaseline) {
        micro_step_and_reduce(group, run, share.begin + from, count);
      } else if (count > 0) {
        run.micro_step(share.begin + from, count);
      }
      context.alive();
    }
    if (variant != Variant::kBaseline) overlap = reduce_in_buckets(group, run.gradients(), config.real("bucket_bytes"));
    for (const auto& [name, tensor] : copies_of(run.gradients()))
      file.outputs.set(std::to_string(w) + "/" + name, tensor);
    run.finish_window();
    std::uint64_t digest = 0;
    for (const auto& [name, tensor] : run.parameters()) digest = digest * 1099511628211ull + hash_of(tensor);
    digests.push_back(std::to_string(digest));
    if (attempt.saves && rank == 0 && (w + 1) % config.count("save_every") == 0) save(run, w + 1, attempt);
  }
  for (const auto& [name, tensor] : copies_of(run.parameters())) file.outputs.set("end/" + name, tensor);
  const auto path = attempt.file("rank_" + std::to_string(rank));
  write_tensor_file(path, file);
  return {{"digests", digests}, {"calls", group.calls()}, {"bytes", group.bytes()},
          {"file", path},       {"overlap", overlap},     {"begin", begin}};
}

bool names_a_loss(const JobResult& result) { return result.what.find("all-reduce of rank") != std::string::npos; }

std::vector<JobResult> start_ranks(const Trial& trial, Variant variant, const std::vector<Share>& shares,
                                   const Attempt& attempt) {
  const double timeout = trial.config.real("timeout_s");
  std::vector<Job> jobs;
  for (std::size_t rank = 0; rank < shares.size(); ++rank) {
    Job job;
    job.name = to_string(variant) + " rank " + std::to_string(rank);
    job.run = [&, rank](JobContext& context) {
      return run_rank(trial, variant, static_cast<int>(rank), shares, attempt, context);
    };
    job.limits.silence_s = 2 * timeout;  // the others have given up by then
    job.limits.wall_s = 60 + 4 * timeout;
    jobs.push_back(std::move(job));
  }
  RunnerOptions options;
  options.parallel = jobs.size();
  const auto report = run_jobs(jobs, options);
  if (report.results.size() < jobs.size())
    throw Error(ErrorKind::kInternal, "data parallel", "interrupted", "start it again");
  return report.results;
}

// What the ranks returned; throws, naming it, where one failed. A rank that only lost another is not the one to name.
std::vector<json> values_of(const std::vector<JobResult>& results) {
  const JobResult* failed = nullptr;
  for (const auto& result : results) {
    if (!result.ok() && (failed == nullptr || !names_a_loss(result))) failed = &result;
    if (failed == &result && !names_a_loss(result)) break;
  }
  if (failed != nullptr)
    throw Error(
        ErrorKind::kInternal, "data parallel: " + failed->name, failed->reason(),
        "it ended the run of all " + std::to_string(results.size()) + " ranks; its output: " + failed->output_tail);
  std::vector<json> values;
  for (const auto& result : results) values.push_back(result.value);
  return values;
}

NamedTensors part_of(const NamedTensors& all, const std::string& prefix) {
  NamedTensors part;
  for (const auto& [name, tensor] : all)
    if (name.starts_with(prefix)) part.set(name.substr(prefix.size()), tensor);
  return part;
}

std::vector<Share> shares_of(const ScenarioConfig& config) {
  std::vector<Share> shares;
  std::int64_t begin = 0;
  for (const auto rows : config.counts("rows_by_rank")) {
    shares.push_back({begin, rows});
    begin += rows;
  }
  return shares;
}

void judge_variant(const Trial& trial, Variant variant, const std::vector<json>& ranks, const Workload& workload,
                   Findings& findings) {
  const auto& config = trial.config;
  const auto relative = config.real("relative");
  const auto windows = config.count("windows");
  const auto made = workload.make(trial.setting(variant));
  auto& alone = windows_of(*made);
  const auto rows = shares_of(config);
  if (rows.back().begin + rows.back().rows != alone.items())
    throw Error(ErrorKind::kOutOfRange, config.file + ": rows_by_rank",
                std::to_string(rows.back().begin + rows.back().rows),
                "they must add up to the window's " + std::to_string(alone.items()) + " rows");
  const auto prefix = to_string(variant) + ".";
  auto& measures = findings.measures;
  const auto reduced = read_tensor_file(ranks.front()["file"].get<std::string>()).outputs;
  VariantRow row{variant, alone.items(), 1, {}, {}, json::array()};
  double gradient = 0;
  for (std::int64_t w = 0; w < windows; ++w) {
    alone.begin_window();
    alone.micro_step(0, alone.items());
    gradient = std::max(gradient, norm_ratio(part_of(reduced, std::to_string(w) + "/"), alone.gradients(), relative));
    if (w + 1 == windows) break;
    alone.finish_window();
  }
  double sum = 0, bytes = 0;
  for (const auto& [name, tensor] : alone.gradients()) {
    sum += tensor.abs().sum().item<double>();
    bytes += static_cast<double>(tensor.nbytes());
  }
  const double calls = variant == Variant::kBaseline
                           ? static_cast<double>(alone.gradients().size()) * static_cast<double>(micro_steps(config))
                           : static_cast<double>(buckets_of(alone.gradients(), config.real("bucket_bytes")).size());
  bytes *= variant == Variant::kBaseline ? static_cast<double>(micro_steps(config)) : 1;
  alone.finish_window();

  double diverged = 0, more_calls = 0, more_bytes = 0;
  std::string who;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const auto& mine = ranks[rank]["digests"];
    for (std::size_t w = 0; w < mine.size(); ++w) {
      if (mine[w] == ranks.front()["digests"][w]) continue;
      ++diverged;
      who += (who.empty() ? "" : "; ") + std::string("rank ") + std::to_string(rank) +
             " has other parameters than rank 0 after window " + std::to_string(w);
      break;
    }
    const auto off = [&](const char* name, double predicted) {
      return std::abs(ranks[rank][name].get<double>() - predicted * static_cast<double>(windows));
    };
    more_calls = std::max(more_calls, off("calls", calls));
    more_bytes = std::max(more_bytes, off("bytes", bytes));
  }
  measures[prefix + "gradient_ratio"] = {gradient, ""};
  measures[prefix + "parameter_ratio"] = {norm_ratio(part_of(reduced, "end/"), alone.parameters(), relative), ""};
  measures[prefix + "diverged_ranks"] = {diverged, who};
  measures[prefix + "gradient_sum"] = {sum, ""};
  measures[prefix + "calls_per_window"] = {ranks.front()["calls"].get<double>() / static_cast<double>(windows), ""};
  measures[prefix + "bytes_per_window"] = {ranks.front()["bytes"].get<double>() / static_cast<double>(windows), ""};
  measures[prefix + "calls_off"] = {more_calls, ""};
  measures[prefix + "bytes_off"] = {more_bytes, ""};
  findings.variants.push_back(to_json(row));
}

// A run that lost a rank, and the one that went on from its checkpoint.
struct LostRun {
  TemporaryDirectory folder;
  std::vector<JobResult> lost;
  std::vector<json> resumed;
};

std::unique_ptr<LostRun> lose_a_rank(const Trial& trial, const std::vector<Share>& shares, Loss loss) {
  auto run = std::make_unique<LostRun>();
  Attempt attempt{run->folder.path(), 0, true, loss};
  run->lost = start_ranks(trial, Variant::kOptimized, shares, attempt);
  ++attempt.number;
  attempt.loss = Loss::kNone;
  run->resumed = values_of(start_ranks(trial, Variant::kOptimized, shares, attempt));
  return run;
}

void judge_losses(const Trial& trial, const std::vector<std::unique_ptr<LostRun>>& runs,
                  const NamedTensors& undisturbed, Findings& findings) {
  const auto lost_rank = static_cast<std::size_t>(trial.config.count("lost_rank"));
  double unnamed = 0, slowest = 0, mismatches = 0, begin = static_cast<double>(trial.config.count("windows"));
  std::string said;
  for (const auto& run : runs) {
    for (std::size_t rank = 0; rank < run->lost.size(); ++rank) {
      const auto& result = run->lost[rank];
      const bool names = rank == lost_rank ? !result.ok() && !names_a_loss(result) : names_a_loss(result);
      unnamed += names ? 0 : 1;
      if (!names)
        said += result.name + ": " + (result.ok() ? "ended as if nothing had happened" : result.reason()) + "; ";
      if (rank != lost_rank) slowest = std::max(slowest, result.seconds);
    }
    for (const auto& rank : run->resumed) {
      const auto end = read_tensor_file(rank["file"].get<std::string>()).outputs;
      mismatches += static_cast<double>(mismatched_bits(part_of(undisturbed, "end/"), part_of(end, "end/")));
      begin = std::min(begin, rank["begin"].get<double>());
    }
  }
  findings.measures["optimized.unnamed_ranks"] = {unnamed, said};
  findings.measures["optimized.seconds_to_name"] = {slowest, ""};
  findings.measures["optimized.resumed_at_window"] = {begin, ""};
  findings.measures["optimized.resumed_mismatches"] = {mismatches, ""};
}

void check(const ScenarioConfig& config) {
  if (const auto at = config.count("lost_at_window"); at > 0) {
    const auto ranks = static_cast<std::int64_t>(config.counts("rows_by_rank").size());
    if (config.count("lost_rank") >= ranks)
      throw Error(ErrorKind::kOutOfRange, config.file + ": lost_rank", std::to_string(config.count("lost_rank")),
                  "ranks are counted from 0, and there are " + std::to_string(ranks));
    if (at > config.count("windows") || at <= config.count("save_every"))
      throw Error(ErrorKind::kOutOfRange, config.file + ": lost_at_window", std::to_string(at),
                  "one of the run's " + std::to_string(config.count("windows")) + " windows, after the first save at " +
                      std::to_string(config.count("save_every")));
  }
  const auto rows = config.counts("rows_by_rank");
  if (rows.size() > 16)
    throw Error(ErrorKind::kOutOfRange, config.file + ": rows_by_rank", std::to_string(rows.size()) + " ranks",
                "give at most 16");
  if (std::accumulate(rows.begin(), rows.end(), std::int64_t{0}) == 0)
    throw Error(ErrorKind::kOutOfRange, config.file + ": rows_by_rank", "no row in any rank", "give one a row");
}

Findings run(const Trial& trial) {
  const auto shares = shares_of(trial.config);
  const std::vector<Variant> variants = {Variant::kBaseline, Variant::kOptimized};
  // All ranks first: this process forks them, so it must not have run anything in parallel yet.
  std::vector<std::unique_ptr<TemporaryDirectory>> folders;
  std::vector<std::vector<json>> ranks;
  for (const auto variant : variants) {
    folders.push_back(std::make_unique<TemporaryDirectory>());
    ranks.push_back(values_of(start_ranks(trial, variant, shares, {folders.back()->path()})));
  }
  std::vector<std::unique_ptr<LostRun>> lost;
  if (trial.config.count("lost_at_window") > 0)
    for (const auto loss : {Loss::kDeath, Loss::kSilence}) lost.push_back(lose_a_rank(trial, shares, loss));
  const auto workload = trial.source.prepare(trial.config);
  Findings findings;
  for (std::size_t i = 0; i < variants.size(); ++i) judge_variant(trial, variants[i], ranks[i], *workload, findings);
  const auto& optimized = ranks.back();
  findings.measures["optimized.overlap"] = {optimized.front()["overlap"].get<double>(), ""};
  if (!lost.empty())
    judge_losses(trial, lost, read_tensor_file(optimized.front()["file"].get<std::string>()).outputs, findings);
  return findings;
}

}  // namespace

Experiment make_experiment() {
  Experiment kind;
  kind.proves = "a window over several processes: the gradient of one process, equal parameters, bytes as predicted";
  kind.keys = {
      counts_key("rows_by_rank", 0, 1e9, 2, "rows of each rank, in order; together the window's"),
      count_key("windows", 1, 1000, "windows with an update after each").or_else(2),
      count_key("micro_batch_rows", 0, 1e9, "rows of a rank's micro-batch; 0: all of its rows").or_else(0),
      real_key("bucket_bytes", 1, 0x1p40, "bytes of gradients that the optimized run sends together")
          .or_else(25.0 * 1024 * 1024),
      real_key("relative", 1e-12, kLoosestRelative, "relative L2 tolerance of a parameter's gradient"),
      real_key("timeout_s", 0.5, 600, "after which a rank is lost to the others").or_else(30.0),
      count_key("lost_at_window", 0, 1000, "at which a rank ends, and in another run hangs; 0: none").or_else(0),
      count_key("lost_rank", 0, 15, "the rank that does").or_else(1),
      count_key("save_every", 1, 1000, "windows after which a run that loses a rank saves").or_else(1)};
  for (const auto half : {Half::kBaseline, Half::kOptimized}) {
    const std::string variant = to_string(half);
    const bool required = half == Half::kOptimized;
    kind.measures.push_back({variant + ".gradient_ratio", half, "worst error / allowed against one process", required,
                             Values::kErrorRatio});
    kind.measures.push_back(
        {variant + ".parameter_ratio", half, "the same of the parameters at the end", required, Values::kErrorRatio});
    kind.measures.push_back({variant + ".diverged_ranks", half, "ranks whose parameters differ in any bit", required});
    kind.measures.push_back({variant + ".bytes_off", half, "bytes reduced beyond or below the prediction", required});
    kind.measures.push_back({variant + ".calls_off", half, "calls beyond or below the prediction", required});
    kind.measures.push_back({variant + ".calls_per_window", half, "all-reduce calls of a rank", !required});
    kind.measures.push_back({variant + ".bytes_per_window", half, "bytes of a rank that were reduced"});
    kind.measures.push_back({variant + ".gradient_sum", half, "sum of all gradients' magnitudes: zeros prove nothing"});
  }
  for (const auto& [name, meaning] : {std::pair{"unnamed_ranks", "ranks that did not say that another was lost"},
                                      {"seconds_to_name", "until the last of them had said it, start included"},
                                      {"resumed_at_window", "windows that the last checkpoint had behind it"},
                                      {"resumed_mismatches", "elements that differ from the undisturbed run's"}})
    kind.measures.push_back({std::string("optimized.") + name, Half::kOptimized, meaning});
  kind.measures.push_back({"optimized.overlap", Half::kNeither,
                           "share of the last window's buckets reduced before the last one was packed", false,
                           Values::kShare});
  kind.needs_windows = true;
  kind.check = check;
  kind.run = run;
  return kind;
}

}  // namespace twinbench::experiments::data_parallel
