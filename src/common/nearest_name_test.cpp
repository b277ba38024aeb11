// Names that are near, names that are not, and the phrase.
#include "src/common/nearest_name.h"

#include <gtest/gtest.h>

namespace twinbench {
namespace {

const std::vector<std::string> kNames = {"sem.cayley", "trainer2.loader", "energy_flow.simple_neuron"};

TEST(NearestName, FindsSwapsAndMissingLetters) {
  EXPECT_EQ(nearest_names("sem.calyey", kNames).front(), "sem.cayley");
  EXPECT_EQ(nearest_names("energy_flow.simple_nueron", kNames).front(), "energy_flow.simple_neuron");
}

TEST(NearestName, KeepsNamesThatContainTheWord) {
  EXPECT_EQ(nearest_names("loader", kNames).front(), "trainer2.loader");
}

TEST(NearestName, SaysNothingWhereNothingIsNear) {
  EXPECT_TRUE(nearest_names("quantum_chromodynamics", kNames).empty());
  EXPECT_EQ(did_you_mean("quantum_chromodynamics", kNames), "");
  EXPECT_EQ(did_you_mean("anything", {}), "");
}

TEST(NearestName, PhrasesUpToThree) {
  EXPECT_EQ(did_you_mean("sem.cayly", kNames), "; did you mean 'sem.cayley'?");
  EXPECT_EQ(nearest_names("a", {"a1", "a2", "a3", "a4"}).size(), 3u);
}

}  // namespace
}  // namespace twinbench
