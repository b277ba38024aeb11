// Cards: each constant must be there, above zero and have a source; a breach is refused by name.
#include "harness/model/card.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "src/common/error.h"

namespace twinbench::model {
namespace {

nlohmann::json h200() {
  std::ifstream stream(std::string(TWINBENCH_CARDS) + "/h200.json");
  return nlohmann::json::parse(stream);
}

std::string refused(const nlohmann::json& root) {
  const std::string path = testing::TempDir() + "card_test.json";
  std::ofstream(path) << root;
  std::string text;
  try {
    load_card(path);
  } catch (const Error& error) {
    text = error.what();
  }
  std::remove(path.c_str());
  return text;
}

TEST(Card, BothAreRead) {
  const auto cards = load_cards(TWINBENCH_CARDS);
  ASSERT_EQ(cards.size(), 2u);
  EXPECT_EQ(cards[0].name, "H200");
  EXPECT_EQ(cards[0].architecture, "sm_90");
  EXPECT_EQ(cards[0].multiprocessors, 132);
  EXPECT_EQ(cards[1].multiprocessors, 170);
  EXPECT_THROW(load_cards(testing::TempDir() + "no_such_folder"), Error);
}

TEST(Card, EveryMissingOrNegativeConstantIsRefusedByName) {
  ASSERT_EQ(refused(h200()), "");
  ASSERT_GT(h200()["constants"].size(), 15u);
  const nlohmann::json right = h200();
  for (const auto& [name, row] : right["constants"].items()) {
    nlohmann::json bad = h200();
    bad["constants"].erase(name);
    EXPECT_NE(refused(bad).find(name + " is missing"), std::string::npos) << refused(bad);
    for (const nlohmann::json& value : {nlohmann::json(-1), nlohmann::json(0), nlohmann::json("1"), nlohmann::json()}) {
      bad = h200();
      bad["constants"][name]["value"] = value;
      EXPECT_NE(refused(bad).find(name), std::string::npos) << value;
    }
    bad = h200();
    bad["constants"][name]["source"] = "";
    EXPECT_NE(refused(bad).find(name), std::string::npos);
  }
  nlohmann::json more = h200();
  more["constants"]["clok"] = more["constants"]["clock"];
  EXPECT_NE(refused(more).find("clok"), std::string::npos);
}

}  // namespace
}  // namespace twinbench::model
