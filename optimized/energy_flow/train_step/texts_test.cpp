// What the engines do not ask of a window with texts: its encoder learns, however the rows are split; surfaces are
// decoded in the windows that are due, and in no other.
#define TWINBENCH_SIMT
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <string>

#include "src/energy_flow/common/window_texts.h"
#include "src/registry.h"

namespace twinbench::energy_flow::train_step {
namespace {

const Component& the_step() { return find_component("energy_flow.train_step"); }

Setting setting_of_texts(std::int64_t micro_steps, std::int64_t micro_batch, Options options = {}) {
  Setting s;
  for (const Case& one : the_step().spec.cases)
    if (one.name == "text_no_sin") s.input_case = one;
  s.input_case.sizes["micro_steps"] = micro_steps, s.input_case.sizes["micro_batch"] = micro_batch;
  for (const auto& [name, value] : options) s.input_case.options[name] = value;
  return completed(the_step().spec.signature, s);
}

struct TextWay {
  Variant variant;
  Device device;
  std::string name() const { return to_string(variant) + " on " + to_string(device); }
};
const TextWay kTextWays[] = {
    {Variant::kBaseline, Device()}, {Variant::kOptimized, Device()}, {Variant::kOptimized, Device::simt()}};

std::unique_ptr<Runnable> made(const TextWay& way, const NamedTensors& inputs, Setting s) {
  s.device = way.device;
  auto runnable = the_step().make(way.variant, way.device, inputs, s);
  runnable->start_over();
  return runnable;
}
NamedTensors text_outputs_of(const TextWay& way, const NamedTensors& inputs, const Setting& s) {
  const auto runnable = made(way, inputs, s);
  runnable->run();
  NamedTensors copies;
  for (const auto& [name, tensor] : runnable->outputs()) copies.set(name, tensor.clone());
  return copies;
}

// Of the arena: what a window with texts trains beside the flows.
at::Tensor encoder_of(const at::Tensor& arena, const Setting& s) {
  std::int64_t from = 0, count = 0;
  for (const InputSpec& one : trained_parameters(s))
    (one.name.starts_with("encoder_") ? count : from) += c10::multiply_integers(extents(one.shape, s));
  return arena.narrow(0, from, count);
}
double relative_error(const at::Tensor& is, const at::Tensor& expected) {
  return at::linalg_vector_norm(is - expected).item<double>() / at::linalg_vector_norm(expected).item<double>();
}

TEST(TrainStepTexts, ThirtyWindowsTeachTheEncoder) {
  const Setting s =
      setting_of_texts(2, 2, {{"learning_rate", 0.01}, {"clip", 0}, {"text_loss_weight", 1}, {"applied", 0}});
  NamedTensors inputs = generate_inputs(the_step().spec, s, 3);
  for (const char* moment : {"first_moment", "second_moment"}) inputs[moment].zero_();
  for (const TextWay& way : kTextWays) {
    const auto runnable = made(way, inputs, s);
    double first = 0, last = 0;
    at::Tensor before;
    const int windows = way.device.is_simt() ? 8 : 30;  // the host's kernels take a second a window
    for (int window = 0; window < windows; ++window) {
      runnable->run();
      const NamedTensors told = runnable->outputs();
      last = told["encoder_losses"].mean().item<double>();
      if (window == 0) first = last, before = told["parameters"].clone();
    }
    EXPECT_LT(last, (way.device.is_simt() ? 0.9 : 0.25) * first) << way.name();
    const at::Tensor moved = encoder_of(runnable->outputs()["parameters"], s) - encoder_of(before, s);
    EXPECT_GT(moved.abs().max().item<double>(), way.device.is_simt() ? 0.03 : 0.05) << way.name();
  }
}

TEST(TrainStepTexts, HoweverRowsAreSplitTheEncodersGradientsAreTheSame) {
  const Setting split = setting_of_texts(4, 2, {{"clip", 0}}), whole = setting_of_texts(1, 8, {{"clip", 0}}),
                ragged = setting_of_texts(3, 3, {{"clip", 0}, {"missing_rows", 1}, {"accumulation", 5}});
  const NamedTensors inputs = generate_inputs(the_step().spec, split, 3);
  NamedTensors nine = generate_inputs(the_step().spec, ragged, 3);
  for (const char* name : {"input", "target", "sample_key", "token", "length"})
    nine[name].narrow(0, 0, 8).copy_(inputs[name]);
  for (const TextWay& way : kTextWays) {
    const at::Tensor expected = encoder_of(text_outputs_of(way, inputs, whole)["gradients"], whole);
    EXPECT_LE(relative_error(encoder_of(text_outputs_of(way, inputs, split)["gradients"], split), expected), 1e-4)
        << way.name();
    EXPECT_LE(relative_error(encoder_of(text_outputs_of(way, nine, ragged)["gradients"], ragged), expected), 1e-4)
        << way.name();
  }
}

TEST(TrainStepTexts, SurfacesAreDecodedInTheWindowsThatAreDue) {
  const Setting s = setting_of_texts(2, 2, {{"decoder_step_interval", 3}});
  NamedTensors inputs = generate_inputs(the_step().spec, s, 3);
  inputs["counts"].select(0, kAttempts).fill_(4);
  for (const TextWay& way : kTextWays) {
    const auto runnable = made(way, inputs, s);
    for (int attempt = 4; attempt < 8; ++attempt) {
      runnable->run();
      const at::Tensor losses = runnable->outputs()["decoder_losses"];
      EXPECT_EQ(losses[0].item<double>() > 0, attempt == 6) << way.name() << " " << attempt;
      EXPECT_EQ(losses[1].item<double>(), 0) << way.name() << " " << attempt;
    }
  }
}

TEST(TrainStepTexts, WithoutAWeightTheEncoderIsLeftAlone) {
  const Setting s = setting_of_texts(2, 2, {{"text_loss_weight", 0}, {"learning_rate", 0.1}, {"weight_decay", 1}});
  const NamedTensors inputs = generate_inputs(the_step().spec, s, 3);
  std::vector<at::Tensor> parts;
  for (const InputSpec& one : trained_parameters(s)) parts.push_back(inputs[one.name].reshape({-1}));
  for (const TextWay& way : kTextWays) {
    const NamedTensors told = text_outputs_of(way, inputs, s);
    EXPECT_TRUE(encoder_of(told["parameters"], s).equal(encoder_of(at::cat(parts), s))) << way.name();
    EXPECT_TRUE(encoder_of(told["first_moment"], s).equal(encoder_of(inputs["first_moment"], s))) << way.name();
    EXPECT_EQ(encoder_of(told["gradients"], s).abs().max().item<double>(), 0) << way.name();
    EXPECT_GT(told["decoder_losses"][0].item<double>(), 0) << way.name();
  }
}

// In bf16 the encoder's products take rounded copies: they move with the parameters, and go back with reset().
TEST(TrainStepTexts, WindowsGoOnFromWhereTheLastOneEnded) {
  Setting s = setting_of_texts(2, 2, {{"learning_rate", 0.01}, {"clip", 0}, {"decoder_step_interval", 2}});
  s.dtype = Dtype::kBf16;
  const NamedTensors inputs = generate_inputs(the_step().spec, s, 3);
  for (const TextWay& way : kTextWays) {
    NamedTensors next = inputs, last;
    for (int i = 0; i < 3; ++i) {
      last = text_outputs_of(way, next, s);
      std::int64_t from = 0;
      for (const InputSpec& one : trained_parameters(s)) {
        const at::Tensor& was = next[one.name];
        next.set(one.name, last["parameters"].narrow(0, from, was.numel()).view(was.sizes()).clone());
        from += was.numel();
      }
      for (const char* name : {"first_moment", "second_moment", "counts"}) next.set(name, last[name]);
    }
    const auto in_turn = made(way, inputs, s);
    for (int life = 0; life < 2; ++life) {
      in_turn->start_over();
      for (int i = 0; i < 3; ++i) in_turn->run();
      for (const char* name : {"parameters", "gradients", "counts", "losses", "decoder_losses"})
        EXPECT_TRUE(in_turn->outputs()[name].equal(last[name])) << way.name() << " " << name << " " << life;
    }
  }
}

// Dropout's key has the attempt: two windows from the same parameters drop other elements.
TEST(TrainStepTexts, EveryWindowDropsOtherElements) {
  const Setting s = setting_of_texts(1, 2, {{"dropout", 0.3}, {"learning_rate", 0}, {"noise", 0}});
  const NamedTensors inputs = generate_inputs(the_step().spec, s, 3);
  at::Tensor of_baseline;
  for (const TextWay& way : kTextWays) {
    const auto runnable = made(way, inputs, s);
    std::vector<at::Tensor> losses;
    for (int window = 0; window < 3; ++window)
      runnable->run(), losses.push_back(runnable->outputs()["encoder_losses"].clone());
    EXPECT_FALSE(losses[0].equal(losses[1])) << way.name();
    EXPECT_FALSE(losses[1].equal(losses[2])) << way.name();
    if (!of_baseline.defined()) of_baseline = at::cat(losses);
    EXPECT_TRUE(at::allclose(at::cat(losses), of_baseline, 1e-4, 1e-6)) << way.name();
  }
}

}  // namespace
}  // namespace twinbench::energy_flow::train_step
