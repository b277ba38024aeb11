// Tests of the tracked allocator, guard bands, guarded tensors and the tensor digest.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <thread>

#include "harness/memory/device_only.h"
#include "harness/memory/guarded_tensor.h"
#include "harness/memory/paged_inputs.h"
#include "harness/memory/tensor_hash.h"
#include "harness/memory/tracked_allocator.h"
#include "src/common/device_turn.h"

namespace twinbench {
namespace {

TEST(TrackedAllocator, CountsBlocksBytesFreesAndPeak) {
  auto& allocator = TrackedAllocator::instance();
  const auto start = allocator.totals();
  const int meter = allocator.open_peak();
  {
    const at::Tensor a = at::empty({100}), b = at::empty({50}, at::kDouble), nothing = at::empty({0});
    EXPECT_EQ(allocator.totals().live_bytes - start.live_bytes, 800);
  }
  const auto end = allocator.totals();
  EXPECT_EQ(end.allocations - start.allocations, 2);
  EXPECT_EQ(end.allocated_bytes - start.allocated_bytes, 800);
  EXPECT_EQ(end.frees - start.frees, 2);
  EXPECT_EQ(end.live_bytes, start.live_bytes);
  EXPECT_EQ(allocator.peak(meter) - start.live_bytes, 800);
  allocator.close_peak(meter);
}

TEST(TrackedAllocator, SeesOtherThreads) {
  auto& allocator = TrackedAllocator::instance();
  const auto start = allocator.totals();
  std::thread worker([] { const at::Tensor a = at::empty({1000}); });
  worker.join();
  EXPECT_EQ(allocator.totals().allocations - start.allocations, 1);
  EXPECT_EQ(allocator.totals().live_bytes, start.live_bytes);
}

TEST(GuardScope, PoisonsNewBlocksAndAcceptsHonestUse) {
  GuardScope guard;
  const at::Tensor a = at::empty({33});
  EXPECT_TRUE(a.isnan().all().item<bool>());
  EXPECT_EQ(at::empty({5}, at::kLong)[4].item<std::int64_t>(), -1);
  a.fill_(1);
  EXPECT_TRUE(guard.violations().empty());
}

TEST(GuardScope, NamesTheSideOfAStrayWrite) {
  {
    GuardScope guard;
    const at::Tensor a = at::zeros({33});
    a.data_ptr<float>()[33] = 1;
    const auto found = guard.violations();
    ASSERT_EQ(found.size(), 1u);
    EXPECT_FALSE(found[0].before);
    EXPECT_EQ(found[0].block_bytes, 33 * 4);
    EXPECT_EQ(found[0].distance, 0);
  }
  GuardScope guard;
  { at::zeros({7}).data_ptr<float>()[-3] = 1; }  // freed before the check: found when freed
  const auto found = guard.violations();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].before);
  EXPECT_EQ(found[0].distance, 8);
  EXPECT_NE(found[0].text().find("before the start"), std::string::npos) << found[0].text();
}

TEST(GuardScope, BlocksMayOutliveTheScope) {
  at::Tensor a;
  {
    GuardScope guard;
    a = at::ones({1000});
  }
  EXPECT_EQ(a.sum().item<float>(), 1000);
  a = at::Tensor();
  GuardScope guard;
  EXPECT_TRUE(guard.violations().empty());
}

TEST(GuardedTensor, KeepsTheValueAndFindsStrayWrites) {
  for (const auto dtype : {at::kFloat, at::kDouble, at::kBFloat16, at::kLong, at::kBool}) {
    const at::Tensor source = at::arange(15).view({3, 5}).to(dtype);
    GuardedTensor guarded(source.t());
    EXPECT_TRUE(at::equal(guarded.tensor(), source.t()));
    EXPECT_TRUE(guarded.tensor().is_contiguous());
    EXPECT_EQ(guarded.broken(), "");
    static_cast<char*>(guarded.tensor().data_ptr())[guarded.tensor().nbytes()] ^= 1;
    EXPECT_NE(guarded.broken().find("1 past the end"), std::string::npos);
  }
  GuardedTensor empty(at::empty({0, 4}));
  static_cast<char*>(empty.tensor().storage().mutable_data())[255] = 0;
  EXPECT_NE(empty.broken().find("before the start"), std::string::npos);
}

TEST(PagedInputs, SeeATouchOnEitherSideAndNothingElse) {
  const at::Tensor source = at::arange(15).view({3, 5}).to(at::kFloat);
  for (const auto edge : {PagedInputs::Edge::kStart, PagedInputs::Edge::kEnd}) {
    PagedInputs paged({{"x", source.t()}, {"nothing", at::empty({0})}}, edge);
    const at::Tensor x = paged.tensors()["x"];
    EXPECT_TRUE(at::equal(x, source.t()));
    EXPECT_EQ(paged.touched(), "");
    auto* const values = static_cast<volatile float*>(x.data_ptr<float>());
    if (edge == PagedInputs::Edge::kEnd) {
      static_cast<void>(values[15]);
      EXPECT_EQ(paged.touched(), "input 'x' is read 1 bytes past its end");
      values[16] = 1;
      EXPECT_EQ(paged.touched(), "input 'x' is written 5 bytes past its end");
    } else {
      static_cast<void>(values[-1]);
      EXPECT_EQ(paged.touched(), "input 'x' is read 4 bytes before its start");
    }
  }
}

TEST(DeviceOnly, LetsOperatorsAndTurnsInAndSeesTheHost) {
  GuardScope guard(Guard::kPages);
  const at::Tensor x = at::ones({5000}), y = at::zeros({7});
  const NamedTensors inputs{{"x", x}};
  const auto touched = [&](const auto& work) {
    const DeviceOnly device_only;
    work();
    return device_only.touched(inputs);
  };
  const auto at_of = [](const at::Tensor& tensor, std::int64_t i) -> volatile float& {
    return tensor.mutable_data_ptr<float>()[i];
  };
  EXPECT_EQ(touched([&] {
              y.copy_(x.slice(0, 0, 7).add(2));
              EXPECT_EQ(y[3].item<float>(), 3);
              const DeviceTurn turn;
              { const DeviceTurn inner; }
              at_of(y, 0) = at_of(x, 1);
            }),
            "");
  EXPECT_EQ(touched([&] { EXPECT_EQ(at_of(x, 3000), 1); }),
            "the host reads input 'x' at byte 12000: on a card that is a crash");
  EXPECT_NE(touched([&] { at_of(y, 2) = 5; }).find("the host writes tensor memory 1 at byte 8"), std::string::npos);
  EXPECT_NE(touched([&] {
              const at::Tensor made = x.mul(2);
              EXPECT_EQ(at_of(made, 0), 2);
            }).find("the host reads tensor memory"),
            std::string::npos);
  EXPECT_EQ(at_of(x, 0) + at_of(y, 2), 6);
  EXPECT_TRUE(guard.violations().empty());
}

TEST(TensorHash, SeesEveryElementAndItsPlaceButNotStrides) {
  const at::Tensor a = at::arange(101, at::kFloat);
  const auto before = hash_of(a);
  for (int i = 0; i < 101; ++i) {
    const at::Tensor b = a.clone();
    b[i] += 0.5;
    EXPECT_NE(hash_of(b), before) << i;
  }
  EXPECT_NE(hash_of(a.roll(1)), before);
  EXPECT_NE(hash_of(a.view({101, 1})), before);
  EXPECT_EQ(hash_of(at::stack({a, a}, 1).select(1, 0)), before);
  EXPECT_NE(hash_of(at::zeros({3})), hash_of(-at::zeros({3})));  // bits, not values
}

}  // namespace
}  // namespace twinbench
