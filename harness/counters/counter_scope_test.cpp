// Known operator sequences with exact counts: nesting, threads, reads, masks, copies, memory, forward calls, autograd.
#include "harness/counters/counter_scope.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "src/common/error.h"
#include "src/common/forward_call.h"

namespace twinbench {
namespace {

CounterSnapshot count(const std::function<void()>& work) {
  const CounterScope scope;
  work();
  return scope.snapshot();
}

TEST(CounterScope, CountsOperatorsOnceAndLooksThroughComposites) {
  const at::Tensor x = at::ones({4, 8}), w = at::ones({3, 8}), b = at::ones({3}), g = at::ones({8});
  const auto plain = count([&] { at::add(at::mul(x, x), x); });
  EXPECT_EQ(plain.dispatches, 2);
  EXPECT_EQ(plain.by_name, (std::map<std::string, std::int64_t>{{"aten::add", 1}, {"aten::mul", 1}}));
  const auto linear = count([&] { at::linear(x, w, b); });
  EXPECT_EQ(linear.dispatches, 1);
  EXPECT_EQ(linear.value("aten::addmm"), 1);
  EXPECT_EQ(linear.value("aten::linear"), 0);
  const auto norm = count([&] { at::layer_norm(x, {8}, g, g); });
  EXPECT_EQ(norm.dispatches, 1);
  EXPECT_EQ(norm.value("aten::native_layer_norm"), 1);
  EXPECT_EQ(count([&] { at::zeros({5}); }).dispatches, 1);  // not its inner fill
}

TEST(CounterScope, ViewsAndMetadataAreFree) {
  at::Tensor x = at::ones({4, 8});
  const auto counted = count([&] {
    x.view({8, 4}).t().narrow(0, 0, 2).unsqueeze(0).select(1, 1).detach();
    x.reshape({32}).expand({2, 32});
    x.chunk(2);
    x.slice(0, 0, 2).size(0);
    at::empty_like(x).resize_({2});
  });
  EXPECT_EQ(counted.dispatches + counted.copies + counted.scalar_reads, 0) << difference({}, counted);
}

TEST(CounterScope, ReadsAndSynchronisingCalls) {
  const at::Tensor x = at::arange(6, at::kFloat), mask = x > 2;
  const auto read = count([&] { (void)x[3].item<float>(); });
  EXPECT_EQ(read.scalar_reads, 1);
  EXPECT_EQ(read.sync_calls, 1);
  EXPECT_EQ(read.dispatches, 0);
  const auto masked = count([&] { x.index({mask}); });  // the mask becomes indices inside index: a hidden nonzero
  EXPECT_EQ(masked.dispatches, 1);
  EXPECT_EQ(masked.scalar_reads, 0);
  EXPECT_EQ(masked.sync_calls, 1);
  EXPECT_EQ(count([&] { at::masked_select(x, mask); }).sync_calls, 1);
  EXPECT_EQ(count([&] { at::nonzero(mask); }).sync_calls, 1);
  EXPECT_EQ(count([&] { at::_unique2(x); }).sync_calls, 1);
  EXPECT_EQ(count([&] { at::unique_dim(x, 0); }).sync_calls, 1);
  EXPECT_EQ(count([&] { at::unique_consecutive(x); }).sync_calls, 1);
  EXPECT_EQ(count([&] { at::equal(x, mask); }).sync_calls, 1);
  const at::Tensor counts = at::ones({6}, at::kLong);
  EXPECT_EQ(count([&] { at::bincount(counts); }).sync_calls, 1);
  EXPECT_EQ(count([&] { at::repeat_interleave(counts); }).sync_calls, 1);
  const auto equal = count([&] { (void)at::equal(x, x); });
  EXPECT_EQ(equal.sync_calls, 1);
  EXPECT_EQ(equal.dispatches, 1);
  const auto truth = count([&] { (void)mask.any().is_nonzero(); });
  EXPECT_EQ(truth.dispatches, 1);
  EXPECT_EQ(truth.scalar_reads, 1);
  EXPECT_EQ(truth.sync_calls, 1);
  EXPECT_EQ(count([&] { x.index({at::tensor({1, 2})}); }).sync_calls, 0);  // integer indices need no wait
}

TEST(CounterScope, CopiesAreNotDispatches) {
  at::Tensor x = at::ones({4, 8}), y = at::empty({4, 8});
  const auto copies = count([&] {
    y.copy_(x);
    x.clone();
    x.to(at::kDouble);
    x.t().contiguous();
    x.t().reshape({32});
    x.contiguous();  // already is: nothing happens
    x.to(at::kFloat);
  });
  EXPECT_EQ(copies.copies, 5) << difference({}, copies);
  EXPECT_EQ(copies.dispatches, 0);
  EXPECT_EQ(copies.device_copies, 0);
}

TEST(CounterScope, DeviceCopies) {
  const at::Tensor x = at::ones({4});
  const CounterScope scope(CounterScope::Settings{true});
  x.to(at::TensorOptions().device(at::kMeta));
  x.to(at::kDouble);
  EXPECT_EQ(scope.snapshot().copies, 2);
  EXPECT_EQ(scope.snapshot().device_copies, 1);
}

TEST(CounterScope, LayoutsWhereTheyAreAskedFor) {
  const at::Tensor x = at::ones({4, 8}), far = at::ones({4, 1024}).narrow(1, 0, 8), w = at::ones({3, 8});
  const at::Tensor rows = at::tensor({1, 2}, at::kLong);
  const auto all_of = [](const std::function<void()>& work) {
    const CounterScope scope(CounterScope::Settings{false, true});
    work();
    return scope.snapshot().layout;
  };
  const auto layout_of = [&](const std::function<void()>& work) {
    auto layout = all_of(work);
    layout.erase("each_operand");
    return layout;
  };
  using Layout = std::map<std::string, std::int64_t>;
  EXPECT_TRUE(count([&] { at::add(x, far); }).layout.empty());
  EXPECT_EQ(layout_of([&] { at::add(x, x); }), (Layout{{"spanned_bytes", 2 * 4 * 32}}));
  EXPECT_EQ(layout_of([&] { at::add(x, far); }),
            (Layout{{"spanned_bytes", 4 * 32 + 4 * (3 * 1024 + 8)}, {"strided", 1}}));
  EXPECT_EQ(layout_of([&] { at::cat({x, far}, 1); }).at("strided"), 1) << "of a list of operands";
  EXPECT_EQ(layout_of([&] { x.index({rows}); }).at("spanned_bytes"), 4 * 32 + 2 * 8) << "of optional ones";
  EXPECT_EQ(layout_of([&] { x.view({2, 4, 4}); }), (Layout{{"views", 1}}));
  const auto each_of = [&](const at::Tensor& a, const at::Tensor& b) {
    return all_of([&] { at::add(a, b); }).at("each_operand");
  };
  const at::Tensor turned = x.t().contiguous().t();
  EXPECT_EQ(each_of(x, turned), each_of(x.clone(), turned.clone()));
  EXPECT_NE(each_of(x, turned), each_of(turned, x)) << "the same sums";
  EXPECT_NE(each_of(x, turned), all_of([&] { at::sub(x, turned); }).at("each_operand"));
  EXPECT_NE(each_of(x, x), each_of(x.to(at::kDouble), x));
  const auto views_of = [&](int times) {
    return layout_of([&] {
             for (int i = 0; i < times; ++i) at::linear(x, w), x.select(0, 1).detach();
           })
        .at("views");
  };
  EXPECT_GE(views_of(1), 3) << "the composite, the view and what they ask of their kind";
  EXPECT_EQ(views_of(4), 4 * views_of(1));
}

TEST(CounterScope, AllThreadsAndNestedScopes) {
  const at::Tensor x = at::ones({16});
  const CounterScope outer;
  at::neg(x);
  {
    const CounterScope inner;
    std::thread first([&] {
      for (int i = 0; i < 100; ++i) at::neg(x);
    });
    std::thread second([&] {
      for (int i = 0; i < 50; ++i) at::exp(x);
    });
    first.join();
    second.join();
    EXPECT_EQ(inner.snapshot().dispatches, 150);
    EXPECT_EQ(inner.snapshot().allocations, 150);
    EXPECT_EQ(inner.snapshot().live_bytes, 0);
  }
  EXPECT_EQ(outer.snapshot().dispatches, 151);
}

TEST(CounterScope, MemoryIsExact) {
  std::vector<at::Tensor> kept;
  const auto memory = count([&] {
    kept.push_back(at::empty({256}));
    { const at::Tensor first = at::empty({1024}), second = at::empty({1024}); }
    const at::Tensor third = at::empty({128});
    const at::Tensor view = third.view({2, 64}), none = at::empty({0, 3});
  });
  EXPECT_EQ(memory.allocations, 4);
  EXPECT_EQ(memory.allocated_bytes, 4 * (256 + 1024 + 1024 + 128));
  EXPECT_EQ(memory.peak_bytes, 4 * (256 + 1024 + 1024));
  EXPECT_EQ(memory.frees, 3);
  EXPECT_EQ(memory.live_bytes, 4 * 256);
  const auto released = count([&] { kept.clear(); });
  EXPECT_EQ(released.frees, 1);
  EXPECT_EQ(released.live_bytes, -4 * 256);
}

TEST(CounterScope, ForwardCallsByComponent) {
  announce_forward_call("outside");
  const auto calls = count([] {
    announce_forward_call("a");
    announce_forward_call("b");
    announce_forward_call("a");
  });
  EXPECT_EQ(calls.forward_calls, 3);
  EXPECT_EQ(calls.value("forward_calls.a"), 2);
  EXPECT_EQ(calls.value("forward_calls.outside"), 0);
  EXPECT_THROW((void)calls.value("dispatchs"), Error);
}

TEST(CounterScope, BackwardOperatorsCount) {
  at::Tensor x = at::ones({4}).set_requires_grad(true);
  const at::Tensor y = at::tanh(x);
  const auto backward = count([&] { y.backward(at::ones({4})); });
  EXPECT_EQ(backward.value("aten::tanh_backward"), 1) << difference({}, backward);
  EXPECT_GE(backward.dispatches, 2);  // with the ones
}

TEST(CounterScope, IdenticalOverTwentyRuns) {
  const at::Tensor x = at::randn({64, 32}), w = at::randn({16, 32});
  const auto work = [&] {
    const at::Tensor y = at::softmax(at::gelu(at::linear(x, w)), 1);
    (void)y.sum().item<float>();
    y.index({y > 0.1}).sort();
  };
  work();
  const auto first = count(work);
  EXPECT_GT(first.dispatches, 5);
  for (int run = 1; run < 20; ++run) EXPECT_EQ(difference(first, count(work)), "") << run;
}

TEST(CounterScope, ExceptionsLeaveTheNestingIntact) {
  const at::Tensor x = at::ones({4}), y = at::ones({5});
  (void)count([&] { EXPECT_ANY_THROW(at::add(x, y)); });
  EXPECT_EQ(count([&] { at::add(x, x); }).dispatches, 1);
}

TEST(CounterScope, DispatcherCostIsMeasured) {
  const auto cost = measure_dispatcher_cost();
  std::printf("dispatcher: %.0f ns a call, %.0f ns counted\n", cost.plain_ns, cost.counted_ns);
  EXPECT_GT(cost.plain_ns, 10);
  EXPECT_LT(cost.counted_ns - cost.plain_ns, 5000);
}

}  // namespace
}  // namespace twinbench
