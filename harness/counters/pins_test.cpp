// Pins: round trip, every single drift fails and names old and new, unpinned cells fail with the command, bad files.
#include "harness/counters/pins.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <tuple>

#include "src/common/error.h"
#include "src/formats/text_file.h"

namespace twinbench {
namespace {

CounterSnapshot sample() {
  CounterSnapshot snapshot;
  snapshot.dispatches = 3;
  snapshot.allocations = 2;
  snapshot.allocated_bytes = 4096;
  snapshot.live_bytes = -512;
  snapshot.by_name = {{"aten::add", 2}, {"aten::mul", 1}};
  snapshot.forward_calls = 1;
  snapshot.forward_calls_by_name = {{"a.b", 1}};
  return snapshot;
}

std::string temporary_path(const std::string& name) {
  return (std::filesystem::temp_directory_path() / ("twinbench_pins_" + std::to_string(::getpid()) + name)).string();
}

TEST(Pins, RoundTripIsExactAndOneLineACell) {
  const std::string path = temporary_path("round.json");
  Pins pins;
  pins.set("b/cell", sample());
  pins.set("a/cell", {});
  pins.save(path);
  const Pins read = Pins::load(path);
  EXPECT_EQ(read.cells(), pins.cells());
  std::ifstream file(path);
  std::string line;
  int lines = 0;
  while (std::getline(file, line)) ++lines;
  EXPECT_EQ(lines, 4);
  std::filesystem::remove(path);
}

TEST(Pins, EveryDriftFailsAndNamesOldAndNew) {
  Pins pins;
  pins.set("cell", sample());
  EXPECT_TRUE(pins.check("cell", sample()).pass);
  for (const auto& [name, field] : counter_fields())
    for (const int change : {1, -1}) {
      CounterSnapshot drifted = sample();
      drifted.*field += change;
      const auto verdict = pins.check("cell", drifted);
      EXPECT_FALSE(verdict.pass);
      EXPECT_TRUE(verdict.pinned);
      EXPECT_NE(verdict.reason.find(std::to_string(sample().*field) + " -> " + std::to_string(drifted.*field)),
                std::string::npos)
          << verdict.reason;
    }
  std::vector<std::string> maps;
  for (const auto& [name, map] : counter_maps()) {
    maps.push_back(name);
    CounterSnapshot drifted = sample();
    ++(drifted.*map)["views"];
    EXPECT_FALSE(pins.check("cell", drifted).pass) << name;
  }
  EXPECT_EQ(maps, (std::vector<std::string>{"by_name", "forward_calls_by_name", "launches_by_kernel",
                                            "products_by_shape", "process_calls", "layout"}));
  CounterSnapshot other_operator = sample();
  other_operator.by_name = {{"aten::add", 2}, {"aten::div", 1}};  // the same total, another operator
  EXPECT_NE(pins.check("cell", other_operator).reason.find("aten::mul 1 -> 0, aten::div 0 -> 1"), std::string::npos);
}

TEST(Pins, ThePeakOfALibrarysThreadsAloneIsAboutTheSame) {
  Pins pins;
  CounterSnapshot one = sample();
  one.peak_bytes = 10000;
  for (const char* cell : {"a.b/library/cpu/fp32/c", "a.b/baseline/cpu/fp32/c"}) pins.set(cell, one);
  one.peak_bytes = 9900;
  EXPECT_TRUE(pins.check("a.b/library/cpu/fp32/c", one).pass);
  EXPECT_FALSE(pins.check("a.b/baseline/cpu/fp32/c", one).pass);
  one.peak_bytes = 9899;
  EXPECT_FALSE(pins.check("a.b/library/cpu/fp32/c", one).pass);
}

TEST(Pins, RegionsOfLibraryProductsAreTheProcessorsOwnAndOthersAreNot) {
  Pins pins;
  CounterSnapshot one = sample();
  one.process_calls = {{"heap", 9}, {"parallel", 12}};
  pins.set("loops", one);
  one.by_name["aten::mm"] = 1;
  pins.set("products", one);
  CounterSnapshot without = one;
  without.process_calls.erase("parallel");
  EXPECT_TRUE(pins.check("products", without).pass);
  without.process_calls["heap"] = 10;
  EXPECT_FALSE(pins.check("products", without).pass);
  without.process_calls["heap"] = 9;
  without.layout["views"] = 1;
  EXPECT_FALSE(pins.check("products", without).pass);
  without.layout.clear();
  without.by_name.erase("aten::mm");
  EXPECT_FALSE(pins.check("loops", without).pass);
}

TEST(Pins, UnpinnedFailsWithTheCommand) {
  const auto verdict = Pins().check("p.c/baseline/cpu/fp32/tiny", sample());
  EXPECT_FALSE(verdict.pass);
  EXPECT_FALSE(verdict.pinned);
  EXPECT_NE(verdict.reason.find("twinbench counters --pin --filter '^p.c/baseline/cpu/fp32/tiny$'"), std::string::npos);
}

TEST(Pins, BadFilesAreTypedErrors) {
  EXPECT_TRUE(Pins::load(temporary_path("none.json")).cells().empty());
  const std::string path = temporary_path("bad.json");
  Pins of_nothing;
  CounterSnapshot none = sample();
  none.layout["views"] = 0;
  of_nothing.set("c", none);
  of_nothing.save(temporary_path("none_of_it.json"));
  EXPECT_THROW(Pins::load(temporary_path("none_of_it.json")), Error) << "a count of 0 is pinned by leaving it out";
  for (const char* text :
       {"{", "[]", "{\"c\": 3}", "{\"c\": {\"dispatches\": 1}}", "{\"c\": {\"dispatches\": \"1\"}}"}) {
    std::ofstream(path) << text;
    try {
      Pins::load(path);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kBadFile) << error.what();
    }
  }
  std::ofstream(path) << R"({"context": {}, "benchmarks": [], "twinbench": {}})";
  try {
    Pins::load(path);
    ADD_FAILURE() << "a record";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("a record, not pins"), std::string::npos) << error.what();
  }
  // A count that would wrap around, and a cell or counter of which only the last would count.
  Pins pins;
  pins.set("cell", sample());
  pins.save(path);
  const std::string good = read_text_file(path, "pins");
  for (const auto& [from, to, named] : {std::tuple{":3,", ":9223372036854775808,", "of cell dispatches"},
                                        {"\"allocations\"", "\"dispatches\"", "cell dispatches appears twice"},
                                        {"{\n", "{\n\"cell\": {},\n", "cell appears twice"}}) {
    std::string text = good;
    ASSERT_NE(text.find(from), std::string::npos) << from;
    std::ofstream(path) << text.replace(text.find(from), std::string(from).size(), to);
    try {
      Pins::load(path);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kBadFile);
      EXPECT_NE(std::string(error.what()).find(named), std::string::npos) << error.what();
    }
  }
  std::filesystem::remove(path);
  EXPECT_THROW(Pins().save("/nonexistent/folder/pins.json"), Error);
}

TEST(Snapshot, ValuesByName) {
  EXPECT_EQ(sample().value("allocated_bytes"), 4096);
  EXPECT_EQ(sample().value("forward_calls.a.b"), 1);
  EXPECT_EQ(sample().value("aten::add"), 2);
  EXPECT_EQ(sample().value("aten::never"), 0);
  EXPECT_THROW((void)sample().value("dispatch"), Error);
}

}  // namespace
}  // namespace twinbench
