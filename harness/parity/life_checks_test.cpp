// How often runs whose pieces overlap are repeated: whether two do is chance.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "harness/parity/parity.h"
#include "harness/parity/test_component.h"
#include "src/inputs.h"

namespace twinbench {
namespace {

int g_runs = 0;

// y = 2 x; the optimized one in pieces, with its runs counted.
template <bool kCounted>
class InPieces : public Runnable {
 public:
  InPieces(const NamedTensors& inputs, const Setting&) : x_(inputs["x"]), y_(at::empty_like(x_)) {}
  void run() override {
    if (!kCounted) return void(y_ = x_ * 2);
    ++g_runs;
    at::parallel_for(0, x_.numel(), 10, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) y_.mutable_data_ptr<float>()[i] = 2 * x_.const_data_ptr<float>()[i];
    });
  }
  NamedTensors outputs() override { return {{"y", y_}}; }

 private:
  const at::Tensor x_;
  at::Tensor y_;
};

TEST(Threads, RunsWhosePiecesOverlapAreManyWhereTimeAllows) {
  const Component component = test_component<InPieces<false>, InPieces<true>>(
      "in_pieces",
      {.sizes = {{"n", 1}},
       .inputs = {data("x", "n", from_case(1))},
       .outputs = {output("y", "n", {Tolerance::Kind::kBound, {0, 1e-6}, {0, 1e-6}, "test"}).batch(std::nullopt)}});
  Setting setting;
  setting.input_case.name = "only";
  setting.input_case.sizes = {{"n", 50}};
  const auto runs_in = [&](double seconds) {
    g_runs = 0;
    check_cell(component, Variant::kOptimized, setting, 1, {.checks = {"threads"}, .overlap_seconds = seconds});
    return g_runs;
  };
  EXPECT_GE(runs_in(60) - runs_in(0), 2 * 20) << "of 20 with each of two numbers of threads, or more";
}

}  // namespace
}  // namespace twinbench
