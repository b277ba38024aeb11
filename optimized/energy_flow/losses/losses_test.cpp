// What the engines do not ask of energy_flow.losses: the pass that makes gradients makes the losses, too.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "optimized/energy_flow/common/word_overlap.h"
#include "optimized/energy_flow/losses/plan.h"
#include "src/inputs.h"
#include "src/registry.h"

namespace twinbench::energy_flow::losses {
namespace {

TEST(Losses, GradientsAndLossesComeFromOnePass) {
  const Component& component = find_component("energy_flow.losses");
  Setting setting;
  setting.input_case = component.spec.cases.front();
  setting.input_case.sizes = {{"rows", 5}, {"cells", 3001}, {"decoder_max_batch", 4}};
  setting = completed(component.spec.signature, setting);
  NamedTensors inputs = generate_inputs(component.spec, setting, 3);
  const auto forward = component.make(Variant::kOptimized, Device(), inputs, setting);
  forward->run();
  const NamedTensors expected = forward->outputs();
  setting.input_case.pass = Pass::kBackward;
  inputs.set("grad_total_loss", at::ones({1}));
  const auto backward = component.make(Variant::kOptimized, Device(), inputs, setting);
  backward->run();
  const NamedTensors& losses = dynamic_cast<Plan<float>&>(*backward).losses();
  for (const char* name : {"energy_loss", "encoder_loss", "decoder_loss", "text_loss", "total_loss", "finite"})
    EXPECT_TRUE(losses[name].equal(expected[name])) << name;
  const at::Tensor difference = inputs["surface"] - inputs["target"];
  EXPECT_TRUE(at::allclose(backward->outputs()["grad_surface"], difference * (2.0 / 15005), 1e-6, 0));
}

// So many words that hashes of 32 bits meet: it is the letters that decide.
TEST(Losses, WordsAreTheSameByTheirLetters) {
  std::set<std::string> sides[2];
  std::string texts[2];
  for (std::uint64_t i = 0; i < 300'000; ++i) {
    std::string word(7, 'a');
    std::uint64_t left = i * 0x9E3779B97F4A7C15u >> 20;
    for (char& letter : word) letter = static_cast<char>('a' + left % 26), left /= 26;
    for (const int side : {0, 1})
      if (i % 10 == 0 || i % 2 == static_cast<std::uint64_t>(side))
        if (sides[side].insert(word).second) texts[side] += word + " ";
  }
  double both = 0;
  for (const std::string& word : sides[0]) both += static_cast<double>(sides[1].count(word));
  const double either = static_cast<double>(sides[0].size() + sides[1].size()) - both;
  WordSets words(static_cast<std::int64_t>(texts[0].size()), static_cast<std::int64_t>(texts[1].size()));
  EXPECT_EQ(words.overlap(texts[0], texts[1]), both / either);
}

}  // namespace
}  // namespace twinbench::energy_flow::losses
