// The training step's kernels of texts on the host executor, in every thread order, against plain loops.
#include "kernels/energy_flow/train_step/texts_kernel.h"

#include "harness/simt/kernel_testing.h"

#include <set>
#include <sstream>
#include <string>

namespace twinbench::energy_flow::train_step {
namespace {

using simt::Buffer;
using simt::GuardedBuffer;
using simt::Order;
using Integers = std::vector<std::int64_t>;
using Short = std::vector<std::int32_t>;

TEST(TrainStepTexts, RowsThatAreNotThereHoldTheEmptyTextAndHaveNoGradient) {
  for (const Order order : simt::kAllOrders)
    for (const std::int64_t rows : {0, 1, 3, 4}) {
      const std::int64_t batch = 4, most = 5, cells = 300;
      Short words;
      for (std::int32_t i = 0; i < rows * most; ++i) words.push_back(7 + i);
      const GuardedBuffer<std::int32_t> token(words), length(Short{5, 4, 3, 5}), to_token(Short(batch * most, 99)),
          to_length(Short(batch, 99));
      const GuardedBuffer<std::int64_t> key(Integers{11, 12, 13, 14}), to_key(Integers(batch, 99));
      const simt::Floats before = simt::spread(batch * cells, 1);
      const Buffer gradient(before);
      simt::run_clean(StageTexts{}, 2, kThreads, order,
                      StageTextsArguments{.token = token.data(),
                                          .length = length.data(),
                                          .key = key.data(),
                                          .rows = rows,
                                          .batch = batch,
                                          .most = most,
                                          .cells = cells,
                                          .to_token = to_token.data(),
                                          .to_length = to_length.data(),
                                          .to_key = to_key.data(),
                                          .gradient = gradient.data()});
      const std::int32_t none[] = {3, 4, 1, 0, 0};
      for (std::int64_t b = 0; b < batch; ++b) {
        const bool is_there = b < rows;
        for (std::int64_t i = 0; i < most; ++i)
          ASSERT_EQ(to_token[b * most + i], is_there ? 7 + b * most + i : none[i]) << b << " " << i;
        EXPECT_EQ(to_length[b], is_there ? length[b] : 3);
        EXPECT_EQ(to_key[b], is_there ? key[b] : 0);
        for (std::int64_t c = 0; c < cells; ++c)
          ASSERT_EQ(gradient[b * cells + c], is_there ? before[static_cast<std::size_t>(b * cells + c)] : 0.0f);
      }
    }
}

// As one would write it.
std::set<std::string> words_of(std::string text) {
  for (char& letter : text)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter + 32);
  std::istringstream stream(text);
  std::set<std::string> words;
  for (std::string word; stream >> word;) words.insert(word);
  return words;
}
double overlap_of(const std::string& a, const std::string& b) {
  std::set<std::string> both = words_of(a), either = words_of(a);
  const std::set<std::string> right = words_of(b);
  std::erase_if(both, [&](const std::string& word) { return right.count(word) == 0; });
  either.insert(right.begin(), right.end());
  return either.empty() ? 0 : static_cast<double>(both.size()) / static_cast<double>(either.size());
}

TEST(TrainStepTexts, TheDecodersLossIsByWords) {
  std::string many, other;
  for (int i = 0; i < 90; ++i)
    many += "Word" + std::to_string(i % 41) + (i % 3 ? " " : "\t "), other += "wOrd" + std::to_string(2 * i) + "\n";
  const std::pair<std::string, std::string> pairs[] = {{"A man is walking", "a man walks"},
                                                       {"the cat", "The CAT"},
                                                       {"", "x"},
                                                       {"x", " \t\n\v\f\r"},
                                                       {"", ""},
                                                       {"a a a", "a"},
                                                       {"ab b", "a b"},
                                                       {"a.b", "a . b"},
                                                       {many, other},
                                                       {"caf\xc3\xa9 x", "CAF\xc3\xa9 y"}};
  for (const Order order : simt::kAllOrders)
    for (std::size_t first = 0; first + 1 < std::size(pairs); ++first) {
      const std::int64_t room = 700, texts = 2;
      std::vector<std::uint8_t> predicted(static_cast<std::size_t>(texts * room), 'z'), wanted(3, 'q');
      Short sizes;
      Integers offsets = {3};
      double expected = 0;
      for (std::int64_t t = 0; t < texts; ++t) {
        const auto& [said, right] = pairs[first + static_cast<std::size_t>(t)];
        std::copy(said.begin(), said.end(), predicted.begin() + t * room);
        sizes.push_back(static_cast<std::int32_t>(said.size()));
        wanted.insert(wanted.end(), right.begin(), right.end());
        offsets.push_back(static_cast<std::int64_t>(wanted.size()));
        expected += (1 - overlap_of(said, right)) / static_cast<double>(texts);
      }
      const GuardedBuffer<std::uint8_t> said(predicted), right(wanted);
      const GuardedBuffer<std::int32_t> length(sizes);
      const GuardedBuffer<std::int64_t> begins(offsets);
      const GuardedBuffer<double> loss(std::vector<double>{9});
      simt::run_clean(DecodedLoss{}, 1, kThreads, order,
                      DecodedLossArguments{.predicted = said.data(),
                                           .predicted_size = length.data(),
                                           .texts = texts,
                                           .room = room,
                                           .wanted = right.data(),
                                           .wanted_offsets = begins.data(),
                                           .loss = loss.data()});
      EXPECT_DOUBLE_EQ(loss[0], expected) << first;
    }
  EXPECT_DOUBLE_EQ(overlap_of(pairs[0].first, pairs[0].second), 0.4) << "C23's example";
}

TEST(TrainStepTexts, TheirGradientsAreSelectedWithTheFlows) {
  for (const Order order : simt::kAllOrders)
    for (const bool finite : {true, false}) {
      const std::int64_t count = 5, texts = 1030;
      const simt::Floats before = simt::spread(count + texts, 2);
      const Buffer from(simt::spread(count, 1)), more(simt::spread(texts, 3)), sums(before), loss(simt::Floats{0.5f});
      const GuardedBuffer<std::int64_t> flag(Integers{finite ? 1 : 0});
      const GuardedBuffer<WindowState> state(std::vector<WindowState>{{1, 2, 3, 4, 5}}, "state", 16);
      simt::run_clean(Accumulate{}, 2, kThreads, order,
                      AccumulateArguments{.gradients = from.data(),
                                          .of_texts = more.data(),
                                          .sums = sums.data(),
                                          .count = count,
                                          .text_count = texts,
                                          .rows = 6,
                                          .loss = loss.data(),
                                          .finite = flag.data(),
                                          .state = state.data()});
      for (std::int64_t i = 0; i < count + texts; ++i) {
        const float gradient = i < count ? from[i] : more[i - count];
        ASSERT_EQ(sums[i],
                  finite ? before[static_cast<std::size_t>(i)] + gradient : before[static_cast<std::size_t>(i)]);
      }
      EXPECT_EQ(state[0].contributed, finite ? 4 : 3);
    }
}

}  // namespace
}  // namespace twinbench::energy_flow::train_step
