// Tensor-core tiles on the host: against plain products, and planted misuse in every thread order.
#include <gtest/gtest.h>

#include <cmath>

#include "harness/simt/example_tensor_kernels.h"
#include "harness/simt/kernel_testing.h"
#include "kernels/common/float_bits.h"

namespace twinbench::kernels::simt {
namespace {

using examples::MatrixLoad;
using examples::MatrixLoadArguments;
using examples::TileProduct;
using examples::TileProductArguments;
using Words = GuardedBuffer<std::uint32_t>;

constexpr int kInner = 48;

// Rows of bf16 pairs, and the values they hold.
struct Factor {
  Factor(int rows, unsigned seed) : values(spread(rows * kInner, seed)), words(values.size() / 2) {
    for (float& value : values) value = round_to_bf16(value);
    for (std::size_t i = 0; i < words.size(); ++i)
      words[i] = bf16_bits(values[2 * i]) | static_cast<std::uint32_t>(bf16_bits(values[2 * i + 1])) << 16;
  }
  std::vector<float> values;
  Words words;
};

struct Product {
  Factor left{16, 1}, right{8, 2};
  Buffer sums{128};
  std::vector<double> expected = std::vector<double>(128);

  Product() {
    for (int row = 0; row < 16; ++row)
      for (int column = 0; column < 8; ++column)
        for (int k = 0; k < kInner; ++k)
          expected[row * 8 + column] += static_cast<double>(left.values[row * kInner + k]) *
                                        static_cast<double>(right.values[column * kInner + k]);
  }
  TileProductArguments arguments() const { return {left.words.data(), right.words.data(), sums.data(), kInner}; }
};

TEST(TensorTiles, Bf16ProductEqualsThePlainOne) {
  for (const Order order : kAllOrders) {
    const Product p;
    run_clean(TileProduct{}, 1, 32, order, p.arguments());
    expect_close(p.sums, p.expected, 1e-5);
  }
}

// left [16, 8] and right [8, 8] in fp32, rounded on the way.
struct Tf32Product {
  static constexpr int kMaxThreads = 32;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const TileProductArguments& a) const {
    const int group = lane(block) / 4, pair = lane(block) % 4;
    const auto left = [&](int row, int k) { return tf32_bits(float_of_bits(a.left[row * 8 + k])); };
    const auto right = [&](int column, int k) { return tf32_bits(float_of_bits(a.right[column * 8 + k])); };
    TileSum sum{};
    multiply_tf32(
        block, sum,
        LeftTile{{left(group, pair), left(group + 8, pair), left(group, pair + 4), left(group + 8, pair + 4)}},
        RightTile{{right(group, pair), right(group, pair + 4)}});
    for (int i = 0; i < 4; ++i) a.sums[(group + i / 2 * 8) * 8 + 2 * pair + i % 2] = sum.of[i];
  }
};

TEST(TensorTiles, Tf32ProductEqualsThePlainOneOfRoundedFactors) {
  const Floats left = spread(128, 3), right = spread(64, 4);
  const Words left_words(128), right_words(64);
  for (std::size_t i = 0; i < 128; ++i) left_words[i] = bits_of(left[i]);
  for (std::size_t i = 0; i < 64; ++i) right_words[i] = bits_of(right[i]);
  std::vector<double> expected(128);
  for (int row = 0; row < 16; ++row)
    for (int column = 0; column < 8; ++column)
      for (int k = 0; k < 8; ++k)
        expected[row * 8 + column] += static_cast<double>(float_of_bits(tf32_bits(left[row * 8 + k]))) *
                                      static_cast<double>(float_of_bits(tf32_bits(right[column * 8 + k])));
  for (const Order order : kAllOrders) {
    const Buffer sums(128);
    run_clean(Tf32Product{}, 1, 32, order, TileProductArguments{left_words.data(), right_words.data(), sums.data(), 8});
    expect_close(sums, expected, 1e-6);
  }
}

TEST(TensorTiles, Tf32RoundingKeepsTenBits) {
  EXPECT_EQ(float_of_bits(tf32_bits(1.0f + 0x1p-10f)), 1.0f + 0x1p-10f);
  EXPECT_EQ(float_of_bits(tf32_bits(1.0f + 0x1p-11f)), 1.0f + 0x1p-10f);  // a tie goes away from zero
  EXPECT_EQ(float_of_bits(tf32_bits(1.0f + 0x1p-12f)), 1.0f);
  EXPECT_EQ(float_of_bits(tf32_bits(-1.0f - 0x1p-11f)), -1.0f - 0x1p-10f);
  EXPECT_EQ(float_of_bits(tf32_bits(INFINITY)), INFINITY);
  EXPECT_TRUE(std::isnan(float_of_bits(tf32_bits(NAN))));
}

TEST(TensorTiles, MatrixLoadHandsOutRowsByLane) {
  const Words from(128);
  for (std::size_t i = 0; i < 128; ++i) from[i] = static_cast<std::uint32_t>(i);
  for (const Order order : kAllOrders) {
    const Words to(128);
    run_clean(MatrixLoad{}, 1, 32, order, MatrixLoadArguments{from.data(), to.data()}, 512);
    for (std::uint32_t matrix = 0; matrix < 4; ++matrix)
      for (std::uint32_t lane = 0; lane < 32; ++lane)
        ASSERT_EQ(to[32 * matrix + lane], matrix * 32 + lane) << "row lane / 4, word lane % 4 of a matrix of 8 rows";
  }
}

// ---- planted misuse -------------------------------------------------------------------------------------------------

// Rows g + 8 and k + 8 changed places: runs without a finding, so only the plain product tells.
struct WrongFragmentLayout {
  static constexpr int kMaxThreads = 32;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const TileProductArguments& a) const {
    const int group = lane(block) / 4, pair = lane(block) % 4, words = a.inner / 2;
    const std::uint32_t *left = a.left + group * words + pair, *right = a.right + group * words + pair;
    TileSum sum{};
    for (int k = 0; k < words; k += 8)
      multiply_bf16(block, sum, LeftTile{{left[k], left[k + 4], left[8 * words + k], left[8 * words + k + 4]}},
                    RightTile{{right[k], right[k + 4]}});
    for (int i = 0; i < 4; ++i) a.sums[(group + i / 2 * 8) * 8 + 2 * pair + i % 2] = sum.of[i];
  }
};

TEST(TensorTilesMisuse, AWrongFragmentLayoutDiffersFromThePlainProduct) {
  const Product p;
  run_clean(WrongFragmentLayout{}, 1, 32, Order::kForward, p.arguments());
  double error = 0;
  for (std::size_t i = 0; i < p.expected.size(); ++i) error = std::max(error, std::fabs(p.sums[i] - p.expected[i]));
  EXPECT_GT(error, 0.1);
}

// A tail of a warp leaves before the product.
struct PartialWarp {
  static constexpr int kMaxThreads = 32;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const TileProductArguments& a) const {
    if (lane(block) >= 24) return;
    TileSum sum{};
    multiply_bf16(block, sum, LeftTile{}, RightTile{});
    a.sums[lane(block)] = sum.of[0];
  }
};
// Half the warp multiplies in bf16, half in tf32.
struct TwoProductsAtOnce {
  static constexpr int kMaxThreads = 32;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const TileProductArguments& a) const {
    TileSum sum{};
    if (lane(block) < 16)
      multiply_bf16(block, sum, LeftTile{}, RightTile{});
    else
      multiply_tf32(block, sum, LeftTile{}, RightTile{});
    a.sums[lane(block)] = sum.of[0];
  }
};
// A block of 24 threads has no whole warp.
TEST(TensorTilesMisuse, APartialWarpIsAFinding) {
  for (const Order order : kAllOrders) {
    const Product p;
    const auto report = [&](auto kernel, int threads) {
      return launch_on_host(kernel, 1, threads, 0, {.order = order, .seed = 7}, p.arguments());
    };
    EXPECT_TRUE(report(PartialWarp{}, 32).has(FindingKind::kWarpMask));
    EXPECT_TRUE(report(TileProduct{}, 24).has(FindingKind::kWarpMask));
    const Report two = report(TwoProductsAtOnce{}, 32);
    EXPECT_TRUE(two.has(FindingKind::kWarpMask));
    EXPECT_NE(two.text().find("multiply_"), std::string::npos) << two.text();
  }
}

// Rows of 12 bytes: every second one is not aligned.
struct UnalignedRow {
  static constexpr int kMaxThreads = 32;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const MatrixLoadArguments& a) const {
    auto tile = dynamic_shared<std::uint32_t>(block);
    for (int i = 0; i < 4; ++i) tile[32 * i + lane(block)] = a.from[32 * i + lane(block)];
    block.warp_barrier();
    std::uint32_t words[4];
    load_matrices(block, tile + 3 * lane(block), words);
    a.to[lane(block)] = words[0];
  }
};
// The tile is read as soon as it is stored.
struct LoadWithoutBarrier {
  static constexpr int kMaxThreads = 32;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const MatrixLoadArguments& a) const {
    auto tile = dynamic_shared<std::uint32_t>(block);
    for (int i = 0; i < 4; ++i) tile[32 * i + lane(block)] = a.from[32 * i + lane(block)];
    std::uint32_t words[4];
    load_matrices(block, tile + 4 * lane(block), words);
    a.to[lane(block)] = words[0];
  }
};
TEST(TensorTilesMisuse, MatrixLoadsOfUnalignedOrUnorderedRowsAreFindings) {
  const Words from(128), to(128);
  for (const Order order : kAllOrders) {
    const auto report = [&](auto kernel) {
      return launch_on_host(kernel, 1, 32, 512, {.order = order, .seed = 7},
                            MatrixLoadArguments{from.data(), to.data()});
    };
    const Report unaligned = report(UnalignedRow{});
    EXPECT_TRUE(unaligned.has(FindingKind::kException));
    EXPECT_NE(unaligned.text().find("misaligned"), std::string::npos);
    const Report unordered = report(LoadWithoutBarrier{});
    EXPECT_TRUE(unordered.has(FindingKind::kRace) || unordered.has(FindingKind::kUninitialisedRead));
  }
}

}  // namespace
}  // namespace twinbench::kernels::simt
