// Row loops of the CPU path: pieces cover everything once, column sums keep the row order, any strides are read.
#include "optimized/common/rows.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <vector>

#include "optimized/common/row_product.h"

namespace twinbench {
namespace {

TEST(Pieces, CoverEveryItemOnceInMultiplesOfTheUnit) {
  for (const std::int64_t count : {0, 1, 511, 512, 513, 100'000}) {
    const Pieces pieces = Pieces::of(count, 512, 64, 16);
    EXPECT_LE(pieces.number(), 64);
    EXPECT_EQ(pieces.size % 16, 0);
    std::vector<int> seen(static_cast<std::size_t>(count));
    pieces.each([&](std::int64_t piece, std::int64_t begin, std::int64_t end) {
      EXPECT_EQ(begin, piece * pieces.size);
      for (std::int64_t i = begin; i < end; ++i) ++seen[i];
    });
    EXPECT_EQ(seen, std::vector<int>(seen.size(), 1)) << count;
  }
}

// In order, 256 rows at a time, the pieces' sums in order too.
TEST(ColumnSums, AddRowsInOrderWhateverTheThreadsAndReadLeadingColumnsOnly) {
  const at::Tensor rows = at::randn({1000, 300}), once = at::empty({290}), again = at::empty({290});
  sum_columns<float>(rows, once, 300);
  sum_columns<float>(rows, again, 7);
  EXPECT_TRUE(at::equal(once, again));
  for (const std::int64_t column : {0, 289}) {
    float expected = 0, piece = 0;
    for (std::int64_t row = 0; row < 1000; ++row) {
      piece += rows[row][column].item<float>();
      if (row % 256 == 255 || row == 999) expected += piece, piece = 0;
    }
    EXPECT_EQ(once[column].item<float>(), expected);
  }
}

// Of ones more than fp32 counts one by one.
TEST(ColumnSums, AreExactBeyondWhatOneSumCounts) {
  const std::int64_t rows = (1 << 24) + 4'096;
  const at::Tensor sums = at::empty({1});
  sum_columns<float>(at::ones({rows, 1}), sums, 1);
  EXPECT_EQ(sums[0].item<float>(), static_cast<float>(rows));
}

TEST(GatherRows, ReadsAnyStridesAndRounds) {
  const at::Tensor from = at::randn({5, 37}).t(), to = at::empty({37, 5});
  gather_rows(37, 5, strided_rows<float>(from), false, data<float>(to));
  EXPECT_TRUE(at::equal(to, from));
  gather_rows(37, 5, strided_rows<float>(from), true, data<float>(to));
  EXPECT_TRUE(at::equal(to, from.to(at::kBFloat16).to(at::kFloat)));
  round_all<float>(from.contiguous(), to);
  EXPECT_TRUE(at::equal(to, from.to(at::kBFloat16).to(at::kFloat)));
}

TEST(RowProduct, EqualsTheLibrarysAndGivesARowTheSameBitsInAnyBatch) {
  const at::Tensor x = at::randn({7, 83}), weight = at::randn({13, 83}), out = at::empty({7, 13}),
                   alone = at::empty({1, 13});
  multiply_rows_transposed<float>(x, weight, out);
  EXPECT_TRUE(at::allclose(out, x.mm(weight.t()), 1e-4, 1e-5));
  for (std::int64_t row = 0; row < 7; ++row) {
    multiply_rows_transposed<float>(x.narrow(0, row, 1), weight, alone);
    EXPECT_TRUE(at::equal(out.narrow(0, row, 1), alone)) << row;
  }
  // Nor in which place a column is: four at once, or one at the end.
  const at::Tensor one = at::empty({7, 1});
  for (std::int64_t column = 0; column < 13; ++column) {
    multiply_rows_transposed<float>(x, weight.narrow(0, column, 1), one);
    EXPECT_TRUE(at::equal(out.narrow(1, column, 1), one)) << column;
  }
}

}  // namespace
}  // namespace twinbench
