// Every size symbol of every small cell at the edges of what a number can be: 0, 1, -1, 2^31 and 2^63 - 1. Outside
// the signature's range that is an error that names the size; inside it a run, or a typed error: never a crash, a hang,
// or memory without end. In children, for what one of them does must not end the others.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <map>

#include "harness/compare/inputs.h"
#include "harness/runner/batch.h"
#include "harness/runner/components_in_turn.h"
#include "harness/runner/told_error.h"
#include "src/common/error.h"
#include "src/inputs.h"
#include "src/make_runnable.h"
#include "src/registry.h"

namespace twinbench {
namespace {

constexpr std::int64_t kEdges[] = {0, 1, -1, std::int64_t{1} << 31, INT64_MAX};
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;
constexpr double kMostSeconds = 30;

struct Edge {
  Cell cell;
  std::string size;
  std::int64_t value;
  std::string name() const { return cell.name() + " " + size + "=" + std::to_string(value); }
};

// Empty, or what is wrong with the way in which the cell takes that size.
std::string broken(const Edge& edge) {
  const Signature& signature = edge.cell.component->spec.signature;
  bool outside = false;
  for (const SizeSpec& size : signature.sizes)
    if (size.name == edge.size) outside = edge.value < size.low || edge.value > size.high;
  try {
    Setting setting{*edge.cell.input_case, edge.cell.dtype, edge.cell.device};
    setting.input_case.sizes[edge.size] = edge.value;
    setting = completed(signature, setting);
    if (outside) return "it is taken, outside of its range";
    const NamedTensors inputs =
        placed_inputs(generated_inputs(edge.cell.component->spec, setting, 1), setting.dtype, setting.device);
    const auto runnable = edge.cell.component->make(edge.cell.variant, inputs, setting);
    runnable->run();
    (void)runnable->outputs();
  } catch (const Error& error) {
    if (outside && (error.kind() != ErrorKind::kOutOfRange || error.field() != edge.size))
      return std::string("another error than out_of_range of the size: ") + error.what();
    if (error.kind() == ErrorKind::kInternal) return error.what();
  } catch (const std::exception& error) {
    if (!refused_memory_in(error.what())) return "no typed error: " + told(error);
  }
  return "";
}

// Every cell that runs on any machine, but for the timed ones, whose other sizes take long: each has small ones beside
// it.
std::vector<Cell> small_cells() {
  std::vector<Cell> cells;
  for (const Cell& cell : all_cells())
    if (!cell.device.is_cuda() && !cell.input_case->timed) cells.push_back(cell);
  return cells;
}

// Of one component. A revision takes some of them: the training step alone has thousands.
std::vector<Edge> edges_in_turn(const std::vector<Cell>& cells) {
  constexpr std::size_t kMost = 250;
  std::vector<Edge> edges;
  for (const Cell& cell : cells)
    for (const auto& [size, given] : cell.input_case->sizes)
      for (const std::int64_t value : kEdges) edges.push_back({cell, size, value});
  return taken_in_turn(edges, kMost, [](const Edge& edge) { return edge.name(); });
}

// "cell size=value: what is wrong", of all edges of those cells; a child each component.
std::vector<std::string> failures_of(const std::vector<Cell>& cells, std::size_t* tried) {
  std::map<std::string, std::vector<Cell>> of_component;
  for (const Cell& cell : cells) of_component[cell.component->spec.id()].push_back(cell);
  std::map<std::string, std::vector<Edge>> edges;
  for (const auto& [id, its_cells] : of_component) edges[id] = edges_in_turn(its_cells);
  std::vector<Batch> batches;
  for (const auto& [id, group] : edges) {
    if (group.empty()) continue;
    Batch batch;
    batch.name = id;
    for (const Edge& edge : group) batch.members.push_back(edge.name());
    batch.work = [&group = group](std::size_t member) {
      at::set_num_threads(1);
      return MemberOutcome{broken(group[member]), true};
    };
    batch.limits.memory_bytes = kMostBytes;
    batch.limits.part_s = kMostSeconds;
    batch.limits.wall_s = batch.limits.silence_s = kMostSeconds * static_cast<double>(group.size());
    batches.push_back(std::move(batch));
    *tried += group.size();
  }
  std::vector<std::string> failures;
  run_batches(batches, {.on_start = {},
                        .on_result =
                            [&](const JobResult& result) {
                              const std::string what = result.ok() ? result.value.get<std::string>() : result.reason();
                              // The limit that ends a child is a refusal as good as the allocator's.
                              if (!what.empty() && result.status != JobStatus::kOutOfMemory)
                                failures.push_back(result.name + ": " + what + "\n" + result.output_tail);
                            },
                        .enough = {}});
  return failures;
}

TEST(SizeEdges, EveryCellTakesThemOrRefusesThemByName) {
  std::size_t tried = 0;
  for (const std::string& failure : failures_of(small_cells(), &tried)) ADD_FAILURE() << failure;
  std::cout << tried << " sizes at an edge, TWINBENCH_SAMPLE=" << sample_of_tests() << "\n";
  EXPECT_GT(tried, 100);
}

// A planted crash, an untyped error and a size without a range are seen, and what comes after them still runs.
class Fragile final : public Runnable {
 public:
  Fragile(const NamedTensors&, const Setting& setting) : flows_(setting.size("flows")) {}
  void run() override {
    if (flows_ == 0) std::raise(SIGFPE);
    if (flows_ == 1) throw std::runtime_error("planted");
  }
  NamedTensors outputs() override { return {}; }

 private:
  std::int64_t flows_;
};

TEST(SizeEdges, PlantedMistakesAreSeen) {
  Component component = find_component("energy_flow.simple_neuron");
  component.optimized = make<Fragile>;
  for (SizeSpec& size : component.spec.signature.sizes) size.low = std::min<std::int64_t>(size.low, 0);
  Case one;
  for (const Case& known : component.spec.cases)
    if (known.name == "tiny") one = known;
  std::size_t tried = 0;
  const auto failures = failures_of({{&component, Variant::kOptimized, Device(), Dtype::kFp32, &one}}, &tried);
  std::string all;
  for (const std::string& failure : failures) all += failure + "\n";
  EXPECT_NE(all.find("flows=0: crashed"), std::string::npos) << all;
  EXPECT_NE(all.find("flows=1: no typed error: planted"), std::string::npos) << all;
  EXPECT_EQ(tried, one.sizes.size() * std::size(kEdges));
}

}  // namespace
}  // namespace twinbench
