// The CPU's own product: right for sizes around its panels and for any strides, and a row's bits are its own.
#include "optimized/common/panel_product.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace twinbench {
namespace {

// Largest error over what rounding `inner` sums in order may come to.
double error(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor right = at::matmul(a.to(at::kDouble), b.to(at::kDouble));
  const at::Tensor terms = at::matmul(a.to(at::kDouble).abs(), b.to(at::kDouble).abs());
  const double allowed = 6e-8 * (2.0 + static_cast<double>(a.size(1)));
  return ((out.to(at::kDouble) - right).abs() / (terms * allowed + 1e-30)).max().item<double>();
}

TEST(PanelProduct, EqualsTheLibrarysAroundItsPanels) {
  at::manual_seed(1);
  for (const std::int64_t rows : {1, 7, 8, 13})
    for (const std::int64_t inner : {1, 127, 128, 129, 600})
      for (const std::int64_t columns : {1, 16, 17, 32, 33, 48, 113}) {
        const at::Tensor a = at::randn({rows, inner}), b = at::randn({inner, columns});
        const at::Tensor out = at::full({rows, columns}, NAN);
        multiply_in_panels<float>(out, a, b);
        EXPECT_LT(error(out, a, b), 1) << rows << " x " << inner << " x " << columns;
        multiply_in_panels<float>(out, a, b, /*add=*/true);
        EXPECT_LT(error(out, a, 2 * b), 2) << rows << " x " << inner << " x " << columns;
      }
}

// Weights packed at set-up, and rows in words: as multiply_in_panels, in the order of this processor's own pairs.
TEST(PanelProduct, PackedWeightsGiveTheSameInBothNumericModes) {
  at::manual_seed(2);
  for (const bool bf16 : {false, true})
    for (const std::int64_t rows : {1, 5, 12, 19})
      for (const std::int64_t inner : {0, 1, 65, 129, 300})
        for (const std::int64_t columns : {1, 32, 49, 113}) {
          at::Tensor a = at::randn({rows, inner}), b = at::randn({inner, columns});
          if (bf16) a = a.to(at::kBFloat16).to(at::kFloat), b = b.to(at::kBFloat16).to(at::kFloat);
          const PanelWay way = panel_way(bf16);
          const at::Tensor panels = packed_panels(b, way), out = at::zeros({rows, columns});
          at::Tensor words = a;
          if (way == PanelWay::kPairs) {
            words = at::full({rows, panel_words(way, inner)}, NAN);
            for (std::int64_t row = 0; row < rows; ++row)
              pair_row(a[row].const_data_ptr<float>(), words[row].mutable_data_ptr<float>(), inner);
          }
          const PackedProduct<float> product{.way = way,
                                             .inner = inner,
                                             .columns = columns,
                                             .x = words.const_data_ptr<float>(),
                                             .x_row = std::max<std::int64_t>(1, words.size(1)),
                                             .panels = panels.const_data_ptr<float>(),
                                             .out = out.mutable_data_ptr<float>(),
                                             .out_row = columns,
                                             .add = true};
          for (int twice = 0; twice < 2; ++twice) multiply_packed(product, rows);
          EXPECT_LT(error(out, a, 2 * b), 2) << bf16 << ": " << rows << " x " << inner << " x " << columns;
        }
}

// A transposed operand that is rounded on its way, as a weight's gradient takes it.
TEST(PanelProduct, RoundsItsRowsToBf16) {
  const at::Tensor a = at::randn({131, 43}).t(), b = at::randn({131, 70}).to(at::kBFloat16).to(at::kFloat),
                   out = at::empty({43, 70});
  const PanelProduct<float> product{.inner = 131,
                                    .columns = 70,
                                    .x = a.const_data_ptr<float>(),
                                    .x_row = 1,
                                    .x_inner = 43,
                                    .w = b.const_data_ptr<float>(),
                                    .w_inner = 70,
                                    .out = out.mutable_data_ptr<float>(),
                                    .out_row = 70,
                                    .bf16 = true};
  multiply_panels(product, 0, 20);
  multiply_panels(product, 20, 43);
  EXPECT_LT(error(out, a.to(at::kBFloat16), b), 1);
}

TEST(PanelProduct, NothingToSumIsZeroOrWhatWasThere) {
  const at::Tensor out = at::ones({3, 5}), none = at::empty({3, 0});
  multiply_in_panels<float>(out, none, at::empty({0, 5}), /*add=*/true);
  EXPECT_TRUE(out.eq(1).all().item<bool>());
  multiply_in_panels<float>(out, none, at::empty({0, 5}));
  EXPECT_TRUE(out.eq(0).all().item<bool>());
}

TEST(PanelProduct, TakesPartsAndTransposedOperandsAndWritesNothingElse) {
  const at::Tensor left = at::randn({70, 40}), whole = at::full({40, 100}, 7.0), b = at::randn({70, 33});
  multiply_in_panels<float>(whole.narrow(1, 10, 33), left.t(), b);
  EXPECT_LT(error(whole.narrow(1, 10, 33), left.t(), b), 1);
  EXPECT_TRUE(whole.narrow(1, 0, 10).eq(7).all().item<bool>());
  EXPECT_TRUE(whole.narrow(1, 43, 57).eq(7).all().item<bool>());
  const at::Tensor doubled = at::empty({40, 33}, at::kDouble);
  multiply_in_panels<double>(doubled, left.t().to(at::kDouble), b.to(at::kDouble));
  EXPECT_LT(error(doubled, left.t(), b), 1e-8);
}

TEST(PanelProduct, ARowHasTheSameBitsAloneInAnyBatchAndForAnyThreads) {
  const at::Tensor a = at::randn({203, 300}), b = at::randn({300, 200}), out = at::empty({203, 200}),
                   again = at::empty({203, 200}), alone = at::empty({1, 200});
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  multiply_in_panels<float>(out, a, b);
  at::set_num_threads(3);
  multiply_in_panels<float>(again, a, b);
  at::set_num_threads(threads);
  EXPECT_TRUE(at::equal(out, again));
  for (const std::int64_t row : {0, 5, 201, 202}) {
    multiply_in_panels<float>(alone, a.narrow(0, row, 1), b);
    EXPECT_TRUE(at::equal(out.narrow(0, row, 1), alone)) << row;
  }
}

}  // namespace
}  // namespace twinbench
