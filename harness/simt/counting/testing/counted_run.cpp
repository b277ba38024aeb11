// Compiled once for each -O level (TWINBENCH_LEVEL is its namespace), with the hooks: the tests' kernels.
#include "harness/simt/counting/testing/counted_run.h"

#include <functional>
#include <map>

#include "harness/simt/counting/launch_counter.h"
#include "harness/simt/counting/testing/planted_kernels.h"
#include "harness/simt/example_kernels.h"
#include "harness/simt/example_team_kernels.h"
#include "harness/simt/host_team.h"
#include "harness/simt/kernel_testing.h"

namespace twinbench::kernels::simt::TWINBENCH_LEVEL {
namespace {

// A type of this translation unit alone: the linker would keep one level's code for all of them.
template <class Kernel>
struct AtThisLevel {
  static constexpr int kMaxThreads = Kernel::kMaxThreads;
  template <class Block, class Arguments>
  void operator()(Block& block, const Arguments& arguments) const {
    Kernel{}(block, arguments);
  }
};

template <class Kernel, class Arguments>
CountedRun count(Size3 grid, Size3 block, Order order, const Arguments& arguments, std::size_t dynamic_bytes = 0,
                 std::uint64_t most_threads = UINT64_MAX) {
  LaunchCounter counter(most_threads);
  const WatchLaunches watch(counter);
  const Report report =
      launch_on_host(AtThisLevel<Kernel>{}, grid, block, dynamic_bytes, {.order = order, .seed = 5}, arguments);
  return {counter.launches().at(0), report};
}

// A launch over `count` elements in and out.
template <class Kernel>
CountedRun planted_run(std::int64_t grid, std::int64_t block, Order order, std::int64_t count_of_in) {
  const Buffer in(spread(count_of_in, 1), "in", 256);
  const Buffer out(Floats(static_cast<std::size_t>(grid * block)), "out", 256);
  return count<Kernel>(grid, block, order, planted::Arrays{in.data(), out.data(), count_of_in});
}

template <int kOffset>
CountedRun pairs_run(Order order) {
  const Buffer in(spread(128, 1), "in", 256), out(Floats(32), "out", 256);
  return count<planted::ReadPairs>(1, 32, order, planted::PairArguments{in.data(), out.data(), kOffset});
}

// Twelve blocks that add up what all have written: one after the other, or at once as `team` says.
template <class Kernel>
CountedRun team_run(Order order, TeamOptions team = {}) {
  constexpr std::int64_t kBlocks = 12;
  const Buffer in(spread(kBlocks * 64, 1), "in", 256), out(Floats(kBlocks), "out", 256),
      partial(Floats(kBlocks), "partial", 256);
  const GuardedBuffer<unsigned> counter(std::vector<unsigned>{0}, "counter", 256);
  const examples::TeamArguments arguments{
      .input = in.data(), .output = out.data(), .partial = partial.data(), .counter = counter.data()};
  if (team.cluster == 1 && !team.cooperative) return count<Kernel>(kBlocks, 64, order, arguments);
  LaunchCounter counting;
  const WatchLaunches watch(counting);
  const Report report =
      launch_team_on_host(AtThisLevel<Kernel>{}, kBlocks, 64, 0, {.order = order, .seed = 5}, team, arguments);
  return {counting.launches().at(0), report};
}

using Run = std::function<CountedRun(Order)>;

const std::map<std::string, Run>& table() {
  using namespace planted;
  static const std::map<std::string, Run> runs = {
      {"uncoalesced walk", [](Order o) { return planted_run<UncoalescedWalk>(2, 256, o, 2 * 256 * 32); }},
      {"coalesced walk", [](Order o) { return planted_run<CoalescedWalk>(2, 256, o, 2 * 256 * 32); }},
      {"bank conflict", [](Order o) { return planted_run<ReadColumn<32>>(1, 32, o, 1024); }},
      {"padded column", [](Order o) { return planted_run<ReadColumn<33>>(1, 32, o, 1024); }},
      {"misaligned vector", [](Order o) { return pairs_run<1>(o); }},
      {"aligned vector", [](Order o) { return pairs_run<2>(o); }},
      {"missing atomic", [](Order o) { return planted_run<MissingAtomic>(4, 32, o, 4); }},
      {"with atomic", [](Order o) { return planted_run<WithAtomic>(4, 32, o, 4); }},
      {"reads neighbour", [](Order o) { return planted_run<ReadsNeighbour>(4, 32, o, 4); }},
      {"last block", [](Order o) { return team_run<examples::LastBlockSum<>>(o); }},
      {"last block without fence",
       [](Order o) { return team_run<examples::LastBlockSum<examples::Misuse::kNoFence>>(o); }},
      {"last block without barrier",
       [](Order o) { return team_run<examples::LastBlockSum<examples::Misuse::kNoBarrier>>(o); }},
      {"grid barrier", [](Order o) { return team_run<examples::GridSum<>>(o, {.cooperative = true}); }},
      {"no grid barrier",
       [](Order o) { return team_run<examples::GridSum<examples::Misuse::kNoBarrier>>(o, {.cooperative = true}); }},
      {"cluster", [](Order o) { return team_run<examples::ClusterSum<>>(o, {.cluster = 4}); }},
      {"divided warp", [](Order o) { return planted_run<DividedWarp>(4, 256, o, 1024); }},
      {"undivided warp", [](Order o) { return planted_run<UndividedWarp>(4, 256, o, 1024); }},
      {"redundant read", [](Order o) { return planted_run<RedundantRead>(1, 256, o, 256); }},
      {"single read", [](Order o) { return planted_run<SingleRead>(1, 256, o, 256); }},
      {"atomic hot spot", [](Order o) { return planted_run<AtomicHotSpot>(4, 256, o, 1024); }},
      {"atomic once a warp", [](Order o) { return planted_run<AtomicOnceAWarp>(4, 256, o, 1024); }},
      {"transpose",
       [](Order o) {
         const Buffer in(spread(70 * 90, 1), "in", 256), out(Floats(70 * 90), "out", 256);
         return count<examples::TiledTranspose>({3, 3}, {32, 8}, o,
                                                examples::TransposeArguments{in.data(), out.data(), 70, 90});
       }},
      {"softmax",
       [](Order o) {
         const Buffer in(spread(5 * 700, 1), "in", 256), out(Floats(5 * 700), "out", 256);
         return count<examples::RowSoftmax>(5, 256, o, examples::SoftmaxArguments{in.data(), out.data(), 700},
                                            700 * sizeof(float));
       }},
      {"histogram",
       [](Order o) {
         std::vector<int> values(3000);
         for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int>(i * 7 % 64);
         const GuardedBuffer<int> in(values, "in", 256), counts(std::vector<int>(64), "counts", 256);
         return count<examples::Histogram>(3, 256, o, examples::HistogramArguments{in.data(), counts.data(), 3000});
       }},
  };
  return runs;
}

}  // namespace

CountedRun run(const std::string& kernel, Order order) { return table().at(kernel)(order); }

CountedRun run_sampled(std::uint64_t most_threads) {
  constexpr std::int64_t kCount = 64 * 256;
  const Buffer in(spread(kCount, 1), "in", 256), out(Floats(kCount), "out", 256);
  return count<planted::UndividedWarp>(64, 256, Order::kShuffled, planted::Arrays{in.data(), out.data(), kCount}, 0,
                                       most_threads);
}

std::vector<std::string> names() {
  std::vector<std::string> found;
  for (const auto& [name, run] : table()) found.push_back(name);
  return found;
}

}  // namespace twinbench::kernels::simt::TWINBENCH_LEVEL
