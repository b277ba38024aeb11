// The order in which twins get their time.
#include "harness/bench/twin_order.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "harness/record/earlier_records.h"
#include "src/common/error.h"

namespace twinbench {
namespace {

std::vector<Twin> all_twins() {
  std::vector<Cell> cells;
  for (const auto& cell : all_cells())
    if (cell.device == c10::DeviceType::CPU) cells.push_back(cell);
  return twins_of(cells);
}

std::set<std::string> names_of(const std::vector<Twin>& twins) {
  std::set<std::string> names;
  for (const auto& twin : twins) names.insert(twin.name());
  return names;
}

TEST(TwinOrder, LosesNothingAndIsTheSameForTheSameSample) {
  const auto ordered = most_valuable_first(all_twins(), {}, "abc");
  EXPECT_EQ(ordered.size(), all_twins().size());
  EXPECT_EQ(names_of(ordered), names_of(all_twins()));
  const auto again = most_valuable_first(all_twins(), {}, "abc");
  for (std::size_t i = 0; i < ordered.size(); ++i) EXPECT_EQ(ordered[i].name(), again[i].name());
}

TEST(TwinOrder, ClaimsThenKernelsAndEveryComponentBeforeASecondTwinOfOne) {
  const auto ordered = most_valuable_first(all_twins(), {}, "abc");
  std::map<const Component*, int> seen;
  const auto worth = [](const Twin& twin) {
    return std::pair(twin.component->spec.claims.empty(), !twin.component->has_kernel);
  };
  for (std::size_t i = 1; i < ordered.size(); ++i)
    EXPECT_LE(worth(ordered[i - 1]), worth(ordered[i])) << ordered[i].name();
  int rank = 0;
  for (const auto& twin : ordered) {
    if (worth(twin) != worth(ordered.front())) break;
    const int mine = seen[twin.component]++;
    EXPECT_GE(mine, rank) << twin.name();
    rank = mine;
  }
}

TEST(TwinOrder, DecidedTwinsComeLast) {
  const std::string path = testing::TempDir() + "earlier.json",
                    first = most_valuable_first(all_twins(), {}, "abc").front().name();
  const auto slash = first.find('/');
  const auto second = first.find('/', slash + 1), third = first.find('/', second + 1);
  const auto row = [&](const std::string& name, const std::string& verdict) {
    return R"({"component": ")" + first.substr(0, slash) + R"(", "device": "cpu", "dtype": ")" +
           first.substr(second + 1, third - second - 1) + R"(", "case": ")" + name + R"(", "verdict": ")" + verdict +
           R"("})";
  };
  std::ofstream(path) << R"({"twinbench": {"speedups": [)" << row(first.substr(third + 1), "faster") << ", "
                      << row("other", "inconclusive") << "]}}";
  const auto decided = decided_twins({path});
  EXPECT_EQ(decided, (std::set<std::string>{first})) << "an inconclusive one is not decided";
  EXPECT_EQ(most_valuable_first(all_twins(), decided, "abc").back().name(), first);
  std::ofstream(path) << "{}";
  EXPECT_THROW(decided_twins({path}), Error);
  EXPECT_THROW(decided_twins({path + ".missing"}), Error);
}

}  // namespace
}  // namespace twinbench
