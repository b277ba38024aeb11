// Attention's kernels on the host executor, in every thread order, against plain loops in double.
#include "kernels/energy_flow/fused_attention/kernel.h"

#include "harness/simt/kernel_testing.h"

namespace twinbench::energy_flow::fused_attention {
namespace {

using simt::Buffer;
using simt::Floats;
using simt::spread;

struct Shape {
  int queries, keys, width;
  int left_out_from, left_out_to;  // keys
};

class AttentionKernel : public testing::TestWithParam<Shape> {};

struct Expected {
  Floats out, grad_query, grad_key, grad_value;
};

// One head: rows [count][width] each.
Expected plain(const Shape& s, const Floats& query, const Floats& key, const Floats& value, const Floats& gradient) {
  const auto at = [&s](int row, int column) { return static_cast<std::size_t>(row * s.width + column); };
  const auto taken = [&s](int k) { return k < s.left_out_from || k >= s.left_out_to; };
  Expected e{Floats(query.size()), Floats(query.size()), Floats(key.size()), Floats(key.size())};
  std::vector<double> weight(static_cast<std::size_t>(s.keys)), slope(weight.size());
  for (int q = 0; q < s.queries; ++q) {
    double sum = 0, share = 0;
    for (int k = 0; k < s.keys; ++k) {
      double score = 0, &w = weight[static_cast<std::size_t>(k)];
      for (int c = 0; c < s.width; ++c) score += double{query[at(q, c)]} * double{key[at(k, c)]};
      sum += w = taken(k) ? std::exp(score / std::sqrt(s.width)) : 0;
    }
    for (int k = 0; k < s.keys; ++k) {
      double &w = weight[static_cast<std::size_t>(k)], &g = slope[static_cast<std::size_t>(k)];
      w /= sum, g = 0;
      for (int c = 0; c < s.width; ++c) {
        e.out[at(q, c)] += static_cast<float>(w * double{value[at(k, c)]});
        e.grad_value[at(k, c)] += static_cast<float>(w * double{gradient[at(q, c)]});
        g += double{gradient[at(q, c)]} * double{value[at(k, c)]};
      }
      share += w * g;
    }
    for (int k = 0; k < s.keys; ++k) {
      const double g =
          weight[static_cast<std::size_t>(k)] * (slope[static_cast<std::size_t>(k)] - share) / std::sqrt(s.width);
      for (int c = 0; c < s.width; ++c) {
        e.grad_query[at(q, c)] += static_cast<float>(g * double{key[at(k, c)]});
        e.grad_key[at(k, c)] += static_cast<float>(g * double{query[at(q, c)]});
      }
    }
  }
  return e;
}

TEST_P(AttentionKernel, ForwardAndBackwardMatchPlainLoops) {
  const Shape s = GetParam();
  const std::int64_t of_queries = s.queries * s.width, of_keys = s.keys * s.width;
  const Floats queries = spread(of_queries, 1, 2), keys = spread(of_keys, 2, 2), values = spread(of_keys, 3),
               gradients = spread(of_queries, 4);
  const Expected expected = plain(s, queries, keys, values, gradients);
  const simt::GuardedBuffer<bool> padding(static_cast<std::size_t>(s.keys));
  for (int k = 0; k < s.keys; ++k) padding[static_cast<std::size_t>(k)] = k >= s.left_out_from && k < s.left_out_to;
  for (const simt::Order order : simt::kAllOrders) {
    const Buffer query(queries), key(keys), value(values), gradient(gradients), out(queries.size());
    const Buffer grad_query(queries.size()), grad_key(keys.size()), grad_value(keys.size());
    const auto rows = static_cast<std::size_t>(s.queries);
    const Buffer largest(rows), denominator(rows), share(rows);
    const Attention<float> a{.batch = 1,
                             .heads = 1,
                             .queries = s.queries,
                             .keys = s.keys,
                             .width = s.width,
                             .scale = 1 / std::sqrt(static_cast<float>(s.width)),
                             .query = {query.data(), 0, 0, s.width},
                             .key = {key.data(), 0, 0, s.width},
                             .value = {value.data(), 0, 0, s.width},
                             .padding = padding.data(),
                             .out = {out.data(), 0, 0, s.width},
                             .largest = largest.data(),
                             .denominator = denominator.data(),
                             .grad_out = {gradient.data(), 0, 0, s.width},
                             .grad_query = {grad_query.data(), 0, 0, s.width},
                             .grad_key = {grad_key.data(), 0, 0, s.width},
                             .grad_value = {grad_value.data(), 0, 0, s.width},
                             .share = share.data()};
    const auto tiles = [](int count) { return (count + kTileRows - 1) / kTileRows; };
    simt::run_clean(Forward{}, tiles(s.queries), kAttentionThreads, order, a, attention_shared_bytes(s.width));
    simt::expect_close_to_scale(out, expected.out, 2e-6, "out");
    const std::int64_t shared = attention_back_shared_bytes(s.width);
    simt::run_clean(QueriesBack{}, tiles(s.queries), kAttentionThreads, order, a, shared);
    simt::run_clean(KeysBack{}, tiles(s.keys), kAttentionThreads, order, a, shared);
    simt::expect_close(grad_query, expected.grad_query, 5e-6, "grad_query");
    simt::expect_close(grad_key, expected.grad_key, 5e-6, "grad_key");
    simt::expect_close(grad_value, expected.grad_value, 5e-6, "grad_value");
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, AttentionKernel,
                         testing::Values(Shape{1, 1, 1, 1, 1}, Shape{3, 5, 4, 5, 5}, Shape{65, 63, 33, 40, 63},
                                         Shape{20, 200, 8, 60, 130}, Shape{130, 66, 64, 0, 65}));

}  // namespace
}  // namespace twinbench::energy_flow::fused_attention
