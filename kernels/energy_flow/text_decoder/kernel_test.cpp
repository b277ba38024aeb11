// energy_flow.text_decoder's kernels on the host executor, in every thread order, against plain loops in fp64.
#include "kernels/energy_flow/text_decoder/kernel.h"

#include "harness/simt/kernel_testing.h"

namespace twinbench::energy_flow::text_decoder {
namespace {

using kernels::simt::Buffer;
using kernels::simt::Floats;
using kernels::simt::GuardedBuffer;
using kernels::simt::kAllOrders;
using kernels::simt::run_clean;
using Doubles = std::vector<double>;

float at(const Floats& values, std::int64_t i) { return values[static_cast<std::size_t>(i)]; }

struct Problem {
  std::int64_t rows, inner, columns;
  bool normalised, relu;
};

Doubles plain_product(const Problem& p, const Floats& x, const Floats& gain, const Floats& weight, bool bf16) {
  Doubles out;
  for (std::int64_t row = 0; row < p.rows; ++row) {
    double squares = 0;
    for (std::int64_t k = 0; k < p.inner; ++k) squares += double{at(x, row * p.inner + k)} * at(x, row * p.inner + k);
    const double inverse = 1 / std::sqrt(squares / static_cast<double>(p.inner) + 1e-6);
    for (std::int64_t column = 0; column < p.columns; ++column) {
      double sum = 0;
      for (std::int64_t k = 0; k < p.inner; ++k) {
        double value = at(x, row * p.inner + k);
        if (p.normalised) value *= inverse * at(gain, k);
        double factor = at(weight, column * p.inner + k);
        if (bf16) value = kernels::round_to_bf16(value), factor = kernels::round_to_bf16(factor);
        sum += value * factor;
      }
      out.push_back(p.relu ? std::max(sum, 0.0) : sum);
    }
  }
  return out;
}

TEST(TextDecoderKernel, ProductsMatchAPlainLoop) {
  for (const Problem& p :
       {Problem{3, 20, 7, true, false}, {18, 260, 17, false, true}, {5, 37, 33, true, true}, {1, 600, 16, true, false}})
    for (const bool bf16 : {false, true}) {
      const Floats x = kernels::simt::spread(p.rows * p.inner, 1), gain = kernels::simt::spread(p.inner, 2, 2.0f);
      const Floats weight = kernels::simt::spread(p.columns * p.inner, 3);
      Doubles expected = plain_product(p, x, gain, weight, bf16);
      std::vector<std::uint16_t> rounded;
      for (const float one : weight) rounded.push_back(kernels::bf16_bits(one));
      for (const auto order : kAllOrders) {
        const Buffer from(x), gains(gain), weights(weight), out(expected.size());
        const GuardedBuffer<std::uint16_t> bfloats(rounded);
        const ProductArguments a{.rows = p.rows,
                                 .inner = p.inner,
                                 .columns = p.columns,
                                 .x = from.data(),
                                 .gain = p.normalised ? gains.data() : nullptr,
                                 .weight = bf16 ? nullptr : weights.data(),
                                 .weight_bf16 = bf16 ? bfloats.data() : nullptr,
                                 .out = out.data(),
                                 .relu = p.relu};
        const kernels::simt::Size3 grid{static_cast<unsigned>(product_pieces(p.columns)),
                                        static_cast<unsigned>((p.rows + kProductRows - 1) / kProductRows), 1};
        const auto start = [&](auto kernel) {
          run_clean(kernel, grid, kProductThreads, order, a, kProductStagedBytes);
        };
        if (p.inner % 4 == 0)
          bf16 ? start(ProductBfloat{}) : start(Product{});
        else
          bf16 ? start(ProductBfloatAnyWidth{}) : start(ProductAnyWidth{});
        // In bf16 a last bit of the norm may round an operand the other way.
        kernels::simt::expect_close_to_scale(out, expected, bf16 ? 2e-3 : 3e-6, "out");
      }
    }
}

TEST(TextDecoderKernel, ProductsAddResidualsAndLeaveEndedRowsOut) {
  constexpr std::int64_t kRows = 4, kInner = 12, kColumns = 9, kSteps = 3;
  const Problem p{kRows, kInner, kColumns, false, false};
  const Floats x = kernels::simt::spread(kRows * kInner, 1), weight = kernels::simt::spread(kColumns * kInner, 2);
  const Floats add = kernels::simt::spread(kRows * kColumns, 3),
               held = kernels::simt::spread(kSteps * kRows * kColumns, 4);
  const Doubles product = plain_product(p, x, {}, weight, false);
  const std::vector<std::int32_t> done = {0, 1, 0, 1}, step = {2};
  Doubles expected(held.begin(), held.end());
  for (std::int64_t i = 0; i < kRows * kColumns; ++i)
    if (done[static_cast<std::size_t>(i / kColumns)] == 0)
      expected[static_cast<std::size_t>(2 * kRows * kColumns + i)] +=
          product[static_cast<std::size_t>(i)] + double{at(add, i)};
  for (const auto order : kAllOrders) {
    const Buffer from(x), weights(weight), added(add), out(held);
    const GuardedBuffer<std::int32_t> ended(done), at_step(step);
    run_clean(ProductAnyWidth{}, 1, kProductThreads, order,
              ProductArguments{.rows = kRows,
                               .inner = kInner,
                               .columns = kColumns,
                               .x = from.data(),
                               .weight = weights.data(),
                               .out = out.data(),
                               .out_step = kRows * kColumns,
                               .add = added.data(),
                               .accumulate = true,
                               .done = ended.data(),
                               .step = at_step.data()},
              kProductStagedBytes);
    kernels::simt::expect_close(out, expected, 3e-6);
  }
}

TEST(TextDecoderKernel, TheLargestTwoLogitsComeOutLowestIdFirst) {
  // One row, 40 columns, weights of one column each: logits are what is written here.
  constexpr std::int64_t kColumns = 40;
  Floats logits(kColumns, -3.0f);
  logits[7] = 2.0f, logits[21] = 2.0f, logits[33] = 1.5f;
  const std::vector<std::int32_t> none = {0}, step = {5};
  for (const auto order : kAllOrders) {
    const Buffer one(Floats{1.0f}), weights(logits), best(3), second(3);
    const GuardedBuffer<std::int32_t> done(none), at_step(step), id(3), to_pick(1);
    run_clean(LogitsAnyWidth{}, 3, kProductThreads, order,
              ProductArguments{.rows = 1,
                               .inner = 1,
                               .columns = kColumns,
                               .x = one.data(),
                               .weight = weights.data(),
                               .done = done.data(),
                               .step = at_step.data(),
                               .best = best.data(),
                               .second = second.data(),
                               .id = id.data(),
                               .scale = 0.5f,
                               .step_to_pick = to_pick.data()},
              kProductStagedBytes);
    EXPECT_EQ(id.values(), (std::vector<std::int32_t>{7, 21, 33}));
    EXPECT_EQ(Floats(best.begin(), best.end()), (Floats{1.0f, 1.0f, 0.75f}));
    EXPECT_EQ(Floats(second.begin(), second.end()), (Floats{-1.5f, -1.5f, -1.5f}));
    EXPECT_EQ(to_pick[0], 5);
  }
  TopTwo two = merged({1.0f, -1.5f, 21}, {1.0f, -1.5f, 7});
  EXPECT_EQ(two.id, 7);
  EXPECT_EQ(gap_of(two), 0.0f);
  two = merged(two, {std::nanf(""), 0.0f, 30});
  EXPECT_EQ(two.id, 30);
  EXPECT_EQ(gap_of(two), 1.0f);
}

TEST(TextDecoderKernel, AttentionIsOverWhatCameBefore) {
  constexpr std::int64_t kRows = 3, kHeads = 2, kWidth = 5, kTokens = 7, kModel = kHeads * kWidth;
  const Floats cache = kernels::simt::spread(kTokens * kRows * 3 * kModel, 1, 2.0f);
  const std::vector<std::int32_t> done = {0, 1, 0}, step = {4};
  const auto of = [&](std::int64_t position, std::int64_t row, std::int64_t part, std::int64_t i) {
    return double{at(cache, ((position * kRows + row) * 3 + part) * kModel + i)};
  };
  Doubles expected(kRows * kModel, 9.0);
  for (std::int64_t row = 0; row < kRows; ++row)
    for (std::int64_t head = 0; head < kHeads && done[static_cast<std::size_t>(row)] == 0; ++head) {
      Doubles shares;
      double all = 0;
      for (std::int64_t p = 0; p <= step[0]; ++p) {
        double score = 0;
        for (std::int64_t i = head * kWidth; i < (head + 1) * kWidth; ++i)
          score += of(step[0], row, 0, i) * of(p, row, 1, i);
        shares.push_back(std::exp(score * 0.5));
        all += shares.back();
      }
      for (std::int64_t i = head * kWidth; i < (head + 1) * kWidth; ++i) {
        double& mixed = expected[static_cast<std::size_t>(row * kModel + i)] = 0;
        for (std::int64_t p = 0; p <= step[0]; ++p)
          mixed += shares[static_cast<std::size_t>(p)] / all * of(p, row, 2, i);
      }
    }
  for (const auto order : kAllOrders) {
    const Buffer from(cache), mixed(Floats(kRows * kModel, 9.0f));
    const GuardedBuffer<std::int32_t> ended(done), at_step(step);
    run_clean(Attend{}, kRows * kHeads, kRowThreads, order,
              AttendArguments{.rows = kRows,
                              .heads = kHeads,
                              .width = kWidth,
                              .tokens = kTokens,
                              .cache = from.data(),
                              .mixed = mixed.data(),
                              .scale = 0.5f,
                              .done = ended.data(),
                              .step = at_step.data()},
              (kTokens + kWidth) * 4);
    kernels::simt::expect_close(mixed, expected, 3e-6);
  }
}

TEST(TextDecoderKernel, TheChoiceEndsRowsAndEmbedsTheRest) {
  constexpr std::int64_t kRows = 3, kPieces = 150, kModel = 4, kTokens = 6;
  Floats best(kRows * kPieces, -2.0f), second(kRows * kPieces, -3.0f);
  std::vector<std::int32_t> id;
  for (std::int64_t i = 0; i < kRows * kPieces; ++i) id.push_back(static_cast<std::int32_t>(i % kPieces * 16 + 2));
  best[140] = 4.0f, second[140] = 3.5f, id[140] = 7;  // its own piece has the second largest
  best[150 + 20] = 1.0f, id[150 + 20] = kEndId;
  best[150 + 90] = 0.25f;
  const Floats words = kernels::simt::spread(2500 * kModel, 1), places = kernels::simt::spread(kTokens * kModel, 2);
  for (const auto order : kAllOrders) {
    const Buffer bests(best), seconds(second), word(words), place(places), x(Floats(kRows * kModel, 9.0f));
    const Buffer logit(Floats(kRows * kTokens, 0.0f)), gap(Floats{0.75f, 0.8f, 1.0f});
    const GuardedBuffer<std::int64_t> token(std::vector<std::int64_t>(kRows * kTokens, 0));
    const GuardedBuffer<std::int32_t> ids(id), length(std::vector<std::int32_t>{3, 3, 1}),
        done(std::vector<std::int32_t>{0, 0, 1}), step(std::vector<std::int32_t>{3}),
        to_pick(std::vector<std::int32_t>{3}), finished(std::vector<std::int32_t>{1}),
        pass(std::vector<std::int32_t>{8}), flag(std::vector<std::int32_t>{7});
    const DecodeArguments a{.rows = kRows,
                            .heads = 2,
                            .width = 2,
                            .tokens = kTokens,
                            .pieces = kPieces,
                            .embedding = word.data(),
                            .positions = place.data(),
                            .x = x.data(),
                            .best = bests.data(),
                            .second = seconds.data(),
                            .id = ids.data(),
                            .token = token.data(),
                            .logit = logit.data(),
                            .gap = gap.data(),
                            .length = length.data(),
                            .done = done.data(),
                            .step = step.data(),
                            .step_to_pick = to_pick.data(),
                            .finished = finished.data(),
                            .pass_at_hand = pass.data(),
                            .all_finished = flag.data()};
    run_clean(Pick{}, kRows, kRowThreads, order, a);
    EXPECT_EQ(token[3], 7);
    EXPECT_EQ(logit[3], 4.0f);
    EXPECT_EQ(token[kTokens + 3], kEndId);
    EXPECT_EQ(Floats(gap.begin(), gap.end()), (Floats{0.5f, 0.75f, 1.0f}));
    EXPECT_EQ(length.values(), (std::vector<std::int32_t>{4, 4, 1}));
    EXPECT_EQ(done.values(), (std::vector<std::int32_t>{0, 1, 1}));
    EXPECT_EQ(step[0], 4);
    EXPECT_EQ(finished[0], 2);
    EXPECT_EQ(flag[0], 7);  // row 0 goes on
    for (std::int64_t i = 0; i < kModel; ++i)
      EXPECT_EQ(x[static_cast<std::size_t>(i)], at(words, 7 * kModel + i) + at(places, 4 * kModel + i));
    for (std::size_t i = kModel; i < kRows * kModel; ++i) EXPECT_EQ(x[i], 9.0f);
  }
}

TEST(TextDecoderKernel, RowsStartOnFiniteSurfacesAlone) {
  constexpr std::int64_t kRows = 3, kCells = 300, kModel = 4, kTokens = 2;
  Floats surface = kernels::simt::spread(kRows * kCells, 1);
  surface[299] = std::nanf(""), surface[2 * 300 + 5] = -INFINITY;
  const Floats words = kernels::simt::spread(kModel, 1), places = kernels::simt::spread(kModel, 2);
  for (const auto order : kAllOrders) {
    const Buffer from(surface), word(words), place(places), x(kRows * kModel), logit(kRows * kTokens), gap(kRows);
    const GuardedBuffer<std::int64_t> token(kRows * kTokens);
    const GuardedBuffer<std::int32_t> length(kRows), done(kRows), step(std::vector<std::int32_t>{9}), finished(1),
        pass(1), flag(std::vector<std::int32_t>{7});
    const GuardedBuffer<unsigned> started(std::vector<unsigned>{0});
    run_clean(StartRows{}, kRows, kRowThreads, order,
              DecodeArguments{.rows = kRows,
                              .cells = kCells,
                              .heads = 1,
                              .width = kModel,
                              .tokens = kTokens,
                              .surface = from.data(),
                              .embedding = word.data(),
                              .positions = place.data(),
                              .x = x.data(),
                              .token = token.data(),
                              .logit = logit.data(),
                              .gap = gap.data(),
                              .length = length.data(),
                              .done = done.data(),
                              .step = step.data(),
                              .finished = finished.data(),
                              .pass_at_hand = pass.data(),
                              .started = started.data(),
                              .all_finished = flag.data(),
                              .pass = 8});
    EXPECT_EQ(done.values(), (std::vector<std::int32_t>{1, 0, 1}));
    EXPECT_EQ(finished[0], 2);
    EXPECT_EQ(step[0], 0);
    EXPECT_EQ(pass[0], 8);
    EXPECT_EQ(flag[0], 7);
    for (std::size_t i = 0; i < kRows * kModel; ++i) EXPECT_EQ(x[i], words[i % kModel] + places[i % kModel]);
  }
}

TEST(TextDecoderKernel, WordsAreJoinedAndSpecialIdsDropped) {
  const std::string words = "amanwalks";
  const std::vector<std::uint8_t> bytes(words.begin(), words.end());
  const std::vector<std::int64_t> offsets = {0, 0, 0, 0, 0, 0, 1, 4, 9}, tokens = {5, 6, 2, 7, 1, 1, 7, 0};
  const std::vector<std::int32_t> lengths = {4, 1};
  for (const auto order : kAllOrders) {
    const GuardedBuffer<std::uint8_t> letters(bytes), text(2 * 14);
    const GuardedBuffer<std::int64_t> begins(offsets), ids(tokens);
    const GuardedBuffer<std::int32_t> length(lengths), text_length(2);
    run_clean(JoinWords{}, 2, kRowThreads, order,
              DecodeArguments{.rows = 2,
                              .tokens = 4,
                              .text_bytes = 14,
                              .token = ids.data(),
                              .length = length.data(),
                              .text_length = text_length.data(),
                              .text = text.data(),
                              .word_bytes = letters.data(),
                              .word_offsets = begins.data()});
    EXPECT_EQ(std::string(text.begin(), text.end()), std::string("a man walks\0\0\0", 14) + std::string(14, '\0'));
    EXPECT_EQ(text_length.values(), (std::vector<std::int32_t>{11, 0}));
  }
}

}  // namespace
}  // namespace twinbench::energy_flow::text_decoder
