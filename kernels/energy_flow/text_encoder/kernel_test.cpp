// The text encoder's kernels on the host executor, in every thread order, against plain loops in double.
#include "kernels/energy_flow/text_encoder/kernel.h"

#include "harness/simt/kernel_testing.h"

namespace twinbench::energy_flow::text_encoder {
namespace {

using simt::Buffer;
using simt::Floats;
using simt::spread;

struct Shape {
  std::int64_t rows, width;
};

class EncoderRows : public testing::TestWithParam<Shape> {};

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
double sum_of(std::int64_t count, const auto& term) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += term(i);
  return sum;
}

TEST_P(EncoderRows, NormAndItsBackwardMatchPlainLoops) {
  const auto [rows, width] = GetParam();
  const std::int64_t count = rows * width;
  const Floats x = spread(count, 1), product = spread(count, 2), bias = spread(width, 3), gain = spread(width, 4),
               shift = spread(width, 5), gradient = spread(count, 6), other = spread(count, 7);
  Floats out(x.size()), grad_sum(x.size()), bias_sums(at(width)), gain_sums(at(width)), shift_sums(at(width));
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto value = [&](std::int64_t i) {
      return double{x[at(row * width + i)]} + double{product[at(row * width + i)]} + double{bias[at(i)]};
    };
    const double n = static_cast<double>(width), mean = sum_of(width, value) / n;
    const double variance = sum_of(width, [&](auto i) { return (value(i) - mean) * (value(i) - mean); }) / n;
    const double inverse = 1 / std::sqrt(variance + 1e-5);
    const auto normal = [&](std::int64_t i) { return (value(i) - mean) * inverse; };
    const auto back = [&](std::int64_t i) {
      return double{gradient[at(row * width + i)]} + double{other[at(row * width + i)]};
    };
    const double mean_back = sum_of(width, [&](auto i) { return back(i) * double{gain[at(i)]}; }) / n;
    const double mean_both = sum_of(width, [&](auto i) { return back(i) * double{gain[at(i)]} * normal(i); }) / n;
    for (std::int64_t i = 0; i < width; ++i) {
      out[at(row * width + i)] = static_cast<float>(normal(i) * double{gain[at(i)]} + double{shift[at(i)]});
      const double g = inverse * (back(i) * double{gain[at(i)]} - mean_back - normal(i) * mean_both);
      grad_sum[at(row * width + i)] = static_cast<float>(g);
      bias_sums[at(i)] += static_cast<float>(g);
      gain_sums[at(i)] += static_cast<float>(back(i) * normal(i));
      shift_sums[at(i)] += static_cast<float>(back(i));
    }
  }
  const Buffer xs(x), products(product), biases(bias), gains(gain), shifts(shift), gradients(gradient), others(other);
  for (const simt::Order order : simt::kAllOrders) {
    const Buffer result(x.size()), normal(x.size()), inverse(at(rows)), sums(x.size()), grad_bias(at(width)),
        grad_gain(at(width)), grad_shift(at(width));
    const simt::GuardedBuffer<std::uint16_t> rounded(x.size());
    const ResidualNorm<float> a{.rows = rows,
                                .width = width,
                                .x = xs.data(),
                                .product = products.data(),
                                .bias = biases.data(),
                                .gain = gains.data(),
                                .shift = shifts.data(),
                                .out = {result.data(), rounded.data()},
                                .normal = normal.data(),
                                .inverse = inverse.data(),
                                .gradient = gradients.data(),
                                .other_gradient = others.data(),
                                .grad_sum = sums.data(),
                                .grad_bias = grad_bias.data(),
                                .grad_gain = grad_gain.data(),
                                .grad_shift = grad_shift.data()};
    simt::run_clean(Norm{}, kernels::warp_blocks(rows, kNormThreads), kNormThreads, order, a);
    simt::run_clean(NormBack{}, kernels::warp_blocks(rows, kNormThreads), kNormThreads, order, a);
    simt::run_clean(NormColumns{}, kernels::blocks_of(width, kernels::kSumColumns), kernels::kSumThreads, order, a);
    simt::expect_close_to_scale(result, out, 1e-5, "out");
    simt::expect_close_to_scale(sums, grad_sum, 1e-5, "grad_sum");
    simt::expect_close_to_scale(grad_bias, bias_sums, 1e-4, "grad_bias");
    simt::expect_close_to_scale(grad_gain, gain_sums, 1e-4, "grad_gain");
    simt::expect_close_to_scale(grad_shift, shift_sums, 1e-4, "grad_shift");
    for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(rounded[i], kernels::bf16_bits(result[i])) << i;
  }
}

TEST_P(EncoderRows, ElementsMatchTheirFormulas) {
  const auto [rows, width] = GetParam();
  const std::int64_t count = rows * width;
  const Floats product = spread(count, 1, 2), bias = spread(width, 2), gradient = spread(count, 3);
  const Buffer products(product), biases(bias), gradients(gradient);
  for (const EncoderStep step :
       {EncoderStep::kBias, EncoderStep::kGelu, EncoderStep::kTanh, EncoderStep::kGeluBack, EncoderStep::kTanhBack}) {
    Floats expected(product.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const double g = double{gradient[i]};
      const double before = double{product[i]} + double{bias[i % at(width)]};
      const double share = 0.5 * (1 + std::erf(before / std::sqrt(2.0)));
      const double density = std::exp(-0.5 * before * before) / std::sqrt(2 * 3.14159265358979323846);
      double result = g * (1 - double{product[i]} * double{product[i]});  // kTanhBack
      if (step == EncoderStep::kBias) result = before;
      if (step == EncoderStep::kGelu) result = before * share;
      if (step == EncoderStep::kTanh) result = std::tanh(before);
      if (step == EncoderStep::kGeluBack) result = g * (share + before * density);
      expected[i] = static_cast<float>(result);
    }
    for (const simt::Order order : simt::kAllOrders) {
      const Buffer out(product.size());
      const ElementArguments<float> a{.rows = rows,
                                      .width = width,
                                      .step = step,
                                      .product = products.data(),
                                      .bias = biases.data(),
                                      .gradient = {gradients.data(), width, 1},
                                      .out = {out.data(), nullptr}};
      simt::run_clean(Elements{}, kernels::striding_blocks(count, kernels::kElementThreads), kernels::kElementThreads,
                      order, a);
      simt::expect_close_to_scale(out, expected, 1e-6, "out");
    }
  }
}

// Three texts whose rows take turns in a table of five entries; entry 1 is nobody's.
TEST(EncoderTexts, TokensAreEmbeddedAveragedAndSummedBack) {
  constexpr std::int64_t kRows = 9, kWidth = 261, kEntries = 5, kTexts = 3;
  const std::int32_t id[kRows] = {3, 0, 4, 3, 2, 4, 3, 0, 4}, place[kRows] = {0, 1, 2, 0, 1, 2, 3, 0, 1};
  const std::int32_t text[kRows] = {0, 0, 0, 1, 1, 1, 1, 2, 2}, first[kTexts] = {0, 3, 7}, length[kTexts] = {3, 4, 2};
  const TokenRows tokens{id, place, text, first, length};
  const Floats embedding = spread(kEntries * kWidth, 1), position = spread(4 * kWidth, 2),
               gradient = spread(kTexts * kWidth, 3), other = spread(kRows * kWidth, 4);
  Floats x(at(kRows * kWidth)), mean(at(kTexts * kWidth)), back(x.size()), sums(embedding.size()),
      of_places(position.size());
  for (std::int64_t row = 0; row < kRows; ++row)
    for (std::int64_t i = 0; i < kWidth; ++i) {
      const std::size_t here = at(row * kWidth + i), of_text = at(text[row] * kWidth + i);
      x[here] = embedding[at(id[row] * kWidth + i)] + position[at(place[row] * kWidth + i)];
      mean[of_text] += x[here] / static_cast<float>(length[text[row]]);
      back[here] = gradient[of_text] / static_cast<float>(length[text[row]]);
      sums[at(id[row] * kWidth + i)] += back[here] + other[here];
      of_places[at(place[row] * kWidth + i)] += back[here] + other[here];
    }
  const Buffer words(embedding), places(position), gradients(gradient), others(other);
  for (const simt::Order order : simt::kAllOrders) {
    const Buffer rows(x.size()), means(mean.size()), grad_rows(x.size()), table(embedding.size());
    const EmbedArguments<float> embed{.rows = kRows,
                                      .width = kWidth,
                                      .tokens = tokens,
                                      .embedding = words.data(),
                                      .position = places.data(),
                                      .out = {rows.data(), nullptr}};
    const MeanArguments<float> averaged{.rows = kRows,
                                        .texts = kTexts,
                                        .width = kWidth,
                                        .tokens = tokens,
                                        .x = rows.data(),
                                        .out = {means.data(), nullptr},
                                        .gradient = gradients.data(),
                                        .grad_x = grad_rows.data()};
    const Buffer places_summed(position.size());
    const simt::GuardedBuffer<std::int32_t> order_of_tokens(kRows), end(kEntries);
    TableGradient<float> summed{.rows = kRows,
                                .texts = kTexts,
                                .entries = kEntries,
                                .width = kWidth,
                                .tokens = tokens,
                                .entry = id,
                                .first = grad_rows.data(),
                                .second = others.data(),
                                .sums = table.data(),
                                .order = order_of_tokens.data(),
                                .end = end.data()};
    constexpr int kThreads = kernels::kElementThreads;
    simt::run_clean(Embed{}, kernels::striding_blocks(kRows * kWidth, kThreads), kThreads, order, embed);
    simt::run_clean(Mean{}, {kernels::blocks_of(kWidth, kThreads), kTexts}, kThreads, order, averaged);
    simt::run_clean(MeanBack{}, kernels::striding_blocks(kRows * kWidth, kThreads), kThreads, order, averaged);
    simt::run_clean(SortTokens{}, 1, kSortThreads, order, summed);
    simt::run_clean(TableSums{}, kEntries, kThreads, order, summed);
    summed.entries = 4;
    summed.entry = place;
    summed.sums = places_summed.data();
    simt::run_clean(PlaceSums{}, {kernels::blocks_of(kWidth, kThreads), 4}, kThreads, order, summed);
    simt::expect_close_to_scale(rows, x, 1e-6, "x");
    simt::expect_close_to_scale(means, mean, 1e-5, "mean");
    simt::expect_close_to_scale(grad_rows, back, 1e-6, "grad_x");
    simt::expect_close_to_scale(table, sums, 1e-5, "sums");
    simt::expect_close_to_scale(places_summed, of_places, 1e-5, "sums of places");
  }
}

// More tokens of one entry than a block has threads, and more entries: the order is that of the tokens.
TEST(EncoderTexts, TokensAreSortedByTheirEntries) {
  constexpr std::int64_t kRows = 1500, kEntries = 2100;
  std::vector<std::int32_t> id(kRows), place(kRows), text(kRows, 0), order_expected;
  for (std::size_t row = 0; row < id.size(); ++row) {
    id[row] = static_cast<std::int32_t>(row % 3 == 0 ? row * 7 % kEntries : row % 3 == 1 ? 40 : 2099);
    place[row] = row % 11 == 5 ? 2000 : 0;  // some past the text's end
  }
  const std::int32_t first[1] = {0}, length[1] = {1};
  for (std::int32_t entry = 0; entry < kEntries; ++entry)
    for (std::size_t row = 0; row < id.size(); ++row)
      if (id[row] == entry && place[row] == 0) order_expected.push_back(static_cast<std::int32_t>(row));
  const Floats value = spread(kRows, 1), zeros(at(kRows));
  Floats sums(at(kEntries));
  for (const std::int32_t row : order_expected) sums[at(id[at(row)])] += value[at(row)];
  const Buffer values(value), none(zeros);
  for (const simt::Order order : simt::kAllOrders) {
    const simt::GuardedBuffer<std::int32_t> sorted(at(kRows)), end(at(kEntries));
    const Buffer result(at(kEntries));
    const TableGradient<float> a{.rows = kRows,
                                 .texts = 1,
                                 .entries = kEntries,
                                 .width = 1,
                                 .tokens = {id.data(), place.data(), text.data(), first, length},
                                 .entry = id.data(),
                                 .first = values.data(),
                                 .second = none.data(),
                                 .sums = result.data(),
                                 .order = sorted.data(),
                                 .end = end.data()};
    simt::run_clean(SortTokens{}, 1, kSortThreads, order, a);
    simt::run_clean(TableSums{}, 300, kernels::kElementThreads, order, a);
    for (std::size_t i = 0; i < order_expected.size(); ++i) ASSERT_EQ(sorted[i], order_expected[i]) << i;
    for (std::size_t i = 0; i < sums.size(); ++i) ASSERT_EQ(result[i], sums[i]) << i;
  }
}

// Dropout's factors are drawn by sample, element and site: a norm whose rows are one sample's tokens in turn.
TEST(EncoderTexts, DropoutGoesBySampleAndElement) {
  constexpr std::int64_t kRows = 3, kWidth = 40;
  const std::int32_t id[kRows] = {}, place[kRows] = {0, 1, 0}, text[kRows] = {0, 0, 1}, first[2] = {0, 2},
                     length[2] = {2, 1};
  const std::int64_t key[2] = {9, 4};
  const Floats product = spread(kRows * kWidth, 1), zero(at(kRows * kWidth)), one(at(kWidth), 1.0f);
  const Dropout<float> dropout{
      .on = true, .seed = 77, .attempt = 5, .site = 3, .rate = 0.25f, .scale = 1 / 0.75f, .sample_key = key};
  Floats expected(product.size());
  for (std::int64_t row = 0; row < kRows; ++row) {
    std::vector<double> values;
    for (std::int64_t i = 0; i < kWidth; ++i) {
      const PhiloxWords words = philox(77, static_cast<std::uint32_t>(place[row] * kWidth + i),
                                       static_cast<std::uint32_t>(key[text[row]]), 5, 2u << 16 | 3u);
      const bool kept = (words.w[0] >> 8) + 1 > 0.25 * 16777216;
      values.push_back(kept ? double{product[at(row * kWidth + i)]} / 0.75 : 0.0);
    }
    const double mean = sum_of(kWidth, [&](auto i) { return values[at(i)]; }) / kWidth;
    const double variance =
        sum_of(kWidth, [&](auto i) { return (values[at(i)] - mean) * (values[at(i)] - mean); }) / kWidth;
    for (std::int64_t i = 0; i < kWidth; ++i)
      expected[at(row * kWidth + i)] = static_cast<float>((values[at(i)] - mean) / std::sqrt(variance + 1e-5));
  }
  const Buffer products(product), zeros(zero), ones(one);
  for (const simt::Order order : simt::kAllOrders) {
    const Buffer out(product.size());
    const ResidualNorm<float> a{.rows = kRows,
                                .width = kWidth,
                                .x = zeros.data(),
                                .product = products.data(),
                                .bias = zeros.data(),
                                .gain = ones.data(),
                                .shift = zeros.data(),
                                .out = {out.data(), nullptr},
                                .tokens = {id, place, text, first, length},
                                .dropout = dropout};
    simt::run_clean(Norm{}, kernels::warp_blocks(kRows, kNormThreads), kNormThreads, order, a);
    simt::expect_close_to_scale(out, expected, 1e-5, "out");
  }
}

// Two texts of three and one tokens in rows of four.
TEST(EncoderTexts, WhatLiesPastATextIsCleared) {
  constexpr std::int64_t kRows = 8, kWidth = 37;
  const std::int32_t id[kRows] = {}, place[kRows] = {0, 1, 2, 3, 0, 1, 2, 3}, text[kRows] = {0, 0, 0, 0, 1, 1, 1, 1};
  const std::int32_t first[2] = {0, 4}, length[2] = {3, 1};
  for (const simt::Order order : simt::kAllOrders) {
    const Floats before = spread(kRows * kWidth, 1);
    const Buffer values(before);
    const ClearArguments a{
        .rows = kRows, .width = kWidth, .tokens = {id, place, text, first, length}, .values = values.data()};
    simt::run_clean(Clear{}, kernels::striding_blocks(kRows * kWidth, kernels::kElementThreads),
                    kernels::kElementThreads, order, a);
    for (std::size_t i = 0; i < before.size(); ++i) {
      const std::size_t row = i / at(kWidth);
      ASSERT_EQ(values[i], place[row] < length[text[row]] ? before[i] : 0.0f) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, EncoderRows,
                         testing::Values(Shape{1, 1}, Shape{3, 8}, Shape{9, 33}, Shape{2, 256}, Shape{17, 100}));

}  // namespace
}  // namespace twinbench::energy_flow::text_encoder
