// What the kernels of AdamW over an arena share: the norm with its decision by the last block, the update of elements.
// An argument struct of theirs names `parameters`, `gradients`, `first_moment`, `second_moment` and `clears`.
#pragma once

#include <cstring>
#include <type_traits>

#include "kernels/common/adamw.h"
#include "kernels/common/grid.h"
#include "kernels/common/simt_handover.h"
#include "kernels/common/simt_reduce.h"
#include "kernels/common/vectors.h"

namespace twinbench::kernels {

constexpr int kArenaThreads = 256;

// A struct that all threads need, in accesses of 16 bytes that wait together.
template <class T>
TWINBENCH_DEVICE T loaded(const T* from) {
  static_assert(sizeof(T) % 16 == 0 && alignof(T) == 16);
  Floats<4> parts[sizeof(T) / 16];
  TWINBENCH_UNROLL
  for (int i = 0; i < static_cast<int>(sizeof(T) / 16); ++i)
    parts[i] = load<4>(reinterpret_cast<const float*>(from) + 4 * i);
  T value;
  memcpy(&value, parts, sizeof(T));
  return value;
}

// Elements [begin, begin + count) of arrays of which all begin at an address that is a multiple of 16: a head of less
// than four elements, groups of four, a tail. `fours` false: every element by itself.
struct Cut {
  int head, groups, tail;

  TWINBENCH_DEVICE static Cut of(std::int64_t begin, int count, bool fours) {
    if (!fours) return {count, 0, 0};
    const int lead = static_cast<int>((4 - begin % 4) % 4), head = lead < count ? lead : count;
    return {head, (count - head) / 4, (count - head) % 4};
  }
};

// This thread's share of the sum of squares of gradients [begin, begin + count), in fp64.
template <class Block>
TWINBENCH_DEVICE double squares(const Block& block, const float* gradients, std::int64_t begin, int count) {
  constexpr int kBatch = 4;  // loads in flight
  const auto square = [](float x) { return static_cast<double>(x) * static_cast<double>(x); };
  const Cut cut = Cut::of(begin, count, allows_four(0, gradients));
  const float* const values = gradients + begin;
  double sum = 0;
  in_batches<kBatch>(
      simt::thread_rank(block), kArenaThreads, cut.groups, [&](int i) { return load<4>(values + cut.head + 4 * i); },
      [&](int, const Floats<4>& four) {
        TWINBENCH_UNROLL
        for (int k = 0; k < 4; ++k) sum += square(four.of[k]);
      });
  TWINBENCH_ROLLED
  for (int i = simt::thread_rank(block); i < cut.head + cut.tail; i += kArenaThreads)
    sum += square(values[i < cut.head ? i : i + 4 * cut.groups]);
  return sum;
}

// The norm of all pieces' elements: share(piece) is a thread's sum of squares, decide(norm) is called by one thread of
// the last block to finish, which adds up what all have found, in a fixed order. Blocks stride over `pieces` pieces;
// `partial` has a place a block, `arrived` is 0 between launches.
template <class Block, class Share, class Decide>
TWINBENCH_DEVICE void norm_and_decision(Block& block, std::int64_t pieces, double* partial, unsigned* arrived,
                                        Share share, Decide decide) {
  const unsigned blocks = block.grid().x;
  double sum = 0;
  for (std::int64_t i = block.index().x; i < pieces; i += blocks) sum += share(i);
  sum = simt::block_sum(block, sum);
  if (simt::thread_rank(block) == 0) partial[block.index().x] = sum;
  if (!simt::is_last_block(block, arrived, blocks)) return;
  double all = 0;
  for (unsigned i = static_cast<unsigned>(simt::thread_rank(block)); i < blocks; i += kArenaThreads) all += partial[i];
  all = simt::block_sum(block, all);
  if (simt::thread_rank(block) == 0) decide(std::sqrt(all));
}

template <class Block>
TWINBENCH_DEVICE void clear(const Block& block, float* values, int count) {
  TWINBENCH_ROLLED
  for (int i = simt::thread_rank(block); i < count; i += kArenaThreads) values[i] = 0;
}

template <int kWidth>
using Width = std::integral_constant<int, kWidth>;

// take(Width<4>, place) of the cut's groups, take(Width<1>, place) of the elements beside them; places count from the
// cut's begin.
template <class Block, class Take>
TWINBENCH_DEVICE void each_of(const Block& block, const Cut& cut, Take take) {
  const int thread = simt::thread_rank(block);
  TWINBENCH_ROLLED
  for (int i = thread; i < cut.groups; i += kArenaThreads) take(Width<4>(), cut.head + 4 * i);
  TWINBENCH_ROLLED
  for (int i = thread; i < cut.head + cut.tail; i += kArenaThreads)
    take(Width<1>(), i < cut.head ? i : i + 4 * cut.groups);
}

// Updates kWidth elements from `at` on, and where a parameter has kParts parts those that lie `partner` behind each
// other; one second moment, from `second_at` on, for all parts. All loads come before the first store.
// add_noise(part, denominators, parameters) may add to what is stored.
template <int kParts, int kWidth, class Arguments, class Noise>
TWINBENCH_DEVICE void update_elements(const Arguments& a, const AdamwStep& step, std::int64_t at, std::int64_t partner,
                                      std::int64_t second_at, Noise add_noise) {
  Floats<kWidth> parameter[kParts], gradient[kParts], first[kParts];
  TWINBENCH_UNROLL
  for (int part = 0; part < kParts; ++part) {
    const std::int64_t here = at + part * partner;
    gradient[part] = load<kWidth>(a.gradients + here);
    first[part] = load<kWidth>(a.first_moment + here);
    parameter[part] = load<kWidth>(a.parameters + here);
  }
  Floats<kWidth> second = load<kWidth>(a.second_moment + second_at);
  Floats<kWidth> below;
  TWINBENCH_UNROLL
  for (int k = 0; k < kWidth; ++k) {
    float square = 0;
    TWINBENCH_UNROLL
    for (int part = 0; part < kParts; ++part) {
      float& g = gradient[part].of[k];
      g *= step.coefficient;
      square = multiply_add(g, g, square);
    }
    second.of[k] = moved_second(second.of[k], square);
    below.of[k] = denominator(second.of[k], step);
    TWINBENCH_UNROLL
    for (int part = 0; part < kParts; ++part) {
      first[part].of[k] = moved_first(first[part].of[k], gradient[part].of[k]);
      parameter[part].of[k] = moved_parameter(parameter[part].of[k], first[part].of[k], below.of[k], step);
      gradient[part].of[k] = a.clears ? 0.0f : gradient[part].of[k];
    }
  }
  TWINBENCH_UNROLL
  for (int part = 0; part < kParts; ++part) {
    const std::int64_t here = at + part * partner;
    add_noise(part, below, parameter[part]);
    store(a.parameters + here, parameter[part]);
    store(a.first_moment + here, first[part]);
    store(a.gradients + here, gradient[part]);
  }
  store(a.second_moment + second_at, second);
}

}  // namespace twinbench::kernels
