// The wrapper of the CUDA path on simt: what it wraps keeps its two halves, each of them run as the whole is.
#define TWINBENCH_SIMT
#include "optimized/common/two_halves.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "optimized/common/cuda.h"

namespace twinbench {
namespace {

struct Seen {
  std::vector<std::string> calls;
  bool on_stream = true, without_tape = true;
  void note(const char* call) {
    calls.push_back(call);
    const auto& run = kernels::simt::RunScope::current();
    on_stream = on_stream && run.open && run.stream == stream();
    without_tape = without_tape && !at::GradMode::is_enabled();
  }
};
Seen g_seen;

struct Halves final : TwoHalves {
  Halves(const NamedTensors&, const Setting&) {}
  void run() override { g_seen.note("run"); }
  NamedTensors outputs() override { return {{"y", at::ones({1})}}; }
  void run_forward() override { g_seen.note("forward"); }
  NamedTensors forward_outputs() override { return {{"y", at::zeros({1})}}; }
  std::vector<at::Tensor> kept() override { return {at::ones({3})}; }
  void run_backward() override { g_seen.note("backward"); }
  NamedTensors give_outputs() override { return {{"y", at::full({1}, 2)}}; }
};

struct Whole final : Runnable {
  Whole(const NamedTensors&, const Setting&) {}
  void run() override { g_seen.note("run"); }
  NamedTensors outputs() override { return {}; }
};

TEST(TwoHalves, TheDevicesWrapperKeepsThem) {
  g_seen = {};
  Setting setting;
  setting.device = Device::simt();
  const NamedTensors inputs = {{"x", at::ones({2})}};
  const at::AutoGradMode tape(true);
  const auto wrapped = make_on_device<Halves>(inputs, setting);
  auto* halves = dynamic_cast<TwoHalves*>(wrapped.get());
  ASSERT_NE(halves, nullptr);
  wrapped->run();
  halves->run_forward();
  halves->run_backward();
  EXPECT_EQ(g_seen.calls, (std::vector<std::string>{"run", "forward", "backward"}));
  EXPECT_TRUE(g_seen.on_stream);
  EXPECT_TRUE(g_seen.without_tape);
  EXPECT_EQ(halves->kept().at(0).numel(), 3);
  EXPECT_EQ(halves->forward_outputs()["y"].item<float>(), 0);
  EXPECT_EQ(halves->outputs()["y"].item<float>(), 1);
  EXPECT_EQ(halves->give_outputs()["y"].item<float>(), 2);
  EXPECT_EQ(dynamic_cast<TwoHalves*>(make_on_device<Whole>(inputs, setting).get()), nullptr);
}

}  // namespace
}  // namespace twinbench
