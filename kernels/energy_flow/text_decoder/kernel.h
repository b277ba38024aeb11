// Kernels of energy_flow.text_decoder beside its products: start, norm, attention over the cache, choice, texts.
#pragma once

#include "kernels/common/simt_handover.h"
#include "kernels/energy_flow/common/layer_kernel.h"
#include "kernels/energy_flow/text_decoder/product_kernel.h"

namespace twinbench::energy_flow::text_decoder {

constexpr int kRowThreads = 128;

struct AdapterLayer : output_collector::LayerAs<float, 4> {};
struct AdapterLayerAnyWidth : output_collector::LayerAs<float, 1> {};
struct AdapterLayerBfloat : output_collector::LayerAs<std::uint16_t, 4, output_collector::AsItIs, true> {};
struct AdapterLayerBfloatAnyWidth : output_collector::LayerAs<std::uint16_t, 1, output_collector::AsItIs, true> {
  static constexpr int kMinBlocksPerSm = 1;  // else sm_120's code aims at 128 registers and spills one
};

// What a row's next step takes: its newest token and where that stands.
template <class Block>
TWINBENCH_DEVICE void embed(Block& block, const DecodeArguments& a, std::int64_t row, std::int64_t id,
                            std::int64_t position) {
  const float* const word = a.embedding + id * a.model();
  for (std::int64_t i = simt::thread_rank(block); i < a.model(); i += kRowThreads)
    a.x[row * a.model() + i] = word[i] + a.positions[position * a.model() + i];
}

// Grid: a block a row. The last one to get there counts the rows without a finite surface, which are done.
struct StartRows {
  static constexpr int kMaxThreads = kRowThreads;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const DecodeArguments& a) const {
    const std::int64_t row = block.index().x;
    const int thread = simt::thread_rank(block);
    int beyond = 0;
    for (std::int64_t i = thread; i < a.cells; i += kRowThreads)
      beyond |= !(kernels::absolute(a.surface[row * a.cells + i]) < INFINITY);
    beyond = simt::block_max(block, beyond, 0);
    for (std::int64_t i = thread; i < a.tokens; i += kRowThreads) {
      a.token[row * a.tokens + i] = kPadId;
      a.logit[row * a.tokens + i] = 0.0f;
    }
    embed(block, a, row, kPadId, 0);
    if (thread == 0) {
      a.done[row] = beyond;
      a.length[row] = 0;
      a.gap[row] = 1.0f;
    }
    if (!simt::is_last_block(block, a.started, static_cast<unsigned>(a.rows)) || thread != 0) return;
    std::int32_t done = 0;
    for (std::int64_t i = 0; i < a.rows; ++i) done += a.done[i];
    *a.finished = done;
    *a.step = 0;
    *a.pass_at_hand = a.pass;
    if (done == a.rows) *a.all_finished = a.pass;
  }
};

// Grid: a block a row.
struct NormaliseRows {
  static constexpr int kMaxThreads = kRowThreads;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const NormaliseArguments& a) const {
    float* const x = a.x + std::int64_t{block.index().x} * a.width;
    float sum = 0.0f, squares = 0.0f;
    for (std::int64_t i = simt::thread_rank(block); i < a.width; i += kRowThreads) sum += x[i];
    const float mean = simt::block_sum(block, sum) / static_cast<float>(a.width);
    for (std::int64_t i = simt::thread_rank(block); i < a.width; i += kRowThreads) {
      const float away = x[i] - mean;
      squares = kernels::multiply_add(away, away, squares);
    }
    squares = simt::block_sum(block, squares);
    const float inverse = kernels::inverse_deviation(squares / static_cast<float>(a.width));
    for (std::int64_t i = simt::thread_rank(block); i < a.width; i += kRowThreads)
      x[i] = kernels::scaled(kernels::normalized(x[i], mean, inverse), a.gain[i], a.shift[i]);
  }
};

// Grid: a block a head of a row. A thread a position, then a thread a place of the mixture.
struct Attend {
  static constexpr int kMaxThreads = kRowThreads;
  static std::int64_t documented_shared_bytes() { return (64 + 64) * sizeof(float); }
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const AttendArguments& a) const {
    const std::int64_t row = block.index().x / a.heads, head = block.index().x % a.heads;
    if (a.done[row] != 0) return;  // of all threads, before any barrier
    const std::int64_t positions = std::int64_t{*a.step} + 1, model = a.heads * a.width, apart = a.rows * 3 * model;
    const float* const here = a.cache + row * 3 * model + head * a.width;
    auto shares = simt::dynamic_shared<float>(block);  // of the positions; then the query
    const int thread = simt::thread_rank(block), query = static_cast<int>(a.tokens);
    for (std::int64_t i = thread; i < a.width; i += kRowThreads)
      shares[query + i] = kernels::operand(here[(positions - 1) * apart + i], a.round);
    block.barrier();
    float top = -INFINITY;
    for (std::int64_t p = thread; p < positions; p += kRowThreads) {
      const float* const key = here + p * apart + model;
      float sum = 0.0f;
      for (std::int64_t i = 0; i < a.width; ++i)
        sum = kernels::multiply_add(shares[query + i], kernels::operand(key[i], a.round), sum);
      const float score = sum * a.scale;
      shares[p] = score;
      top = score > top ? score : top;
    }
    top = simt::block_max(block, top, -INFINITY);
    float all = 0.0f;
    for (std::int64_t p = thread; p < positions; p += kRowThreads) {
      const float share = kernels::exp(shares[p] - top);
      shares[p] = share;
      all += share;
    }
    all = simt::block_sum(block, all);
    for (std::int64_t p = thread; p < positions; p += kRowThreads)
      shares[p] = kernels::operand(shares[p] / all, a.round);
    block.barrier();
    for (std::int64_t i = thread; i < a.width; i += kRowThreads) {
      float sum = 0.0f;
      for (std::int64_t p = 0; p < positions; ++p)
        sum = kernels::multiply_add(shares[p], kernels::operand(here[p * apart + 2 * model + i], a.round), sum);
      a.mixed[row * model + head * a.width + i] = sum;
    }
  }
};

// Grid: a block a row: its likeliest id, and what the next step takes. Block 0 moves the step on: the others read the
// copy that the logits' kernel has made.
struct Pick {
  static constexpr int kMaxThreads = kRowThreads;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const DecodeArguments& a) const {
    auto of_warp = simt::shared_array<float, 2 * kRowThreads / simt::kWarpSize>(block);
    auto id_of_warp = simt::shared_array<std::int32_t, kRowThreads / simt::kWarpSize>(block);
    const std::int64_t row = block.index().x, step = *a.step_to_pick;
    const int thread = simt::thread_rank(block);
    if (row == 0 && thread == 0) *a.step = static_cast<std::int32_t>(step + 1);
    if (a.done[row] != 0) return;  // of all threads, before any barrier
    TopTwo two;
    for (std::int64_t i = row * a.pieces + thread; i < (row + 1) * a.pieces; i += kRowThreads)
      two = merged(two, {a.best[i], a.second[i], a.id[i]});
    TWINBENCH_UNROLL
    for (int lanes = simt::kWarpSize / 2; lanes > 0; lanes /= 2) two = merged(two, from_lane(block, two, lanes));
    if (simt::lane(block) == 0) {
      of_warp[2 * simt::warp(block)] = two.best;
      of_warp[2 * simt::warp(block) + 1] = two.second;
      id_of_warp[simt::warp(block)] = two.id;
    }
    block.barrier();
    two = TopTwo{};  // its own warp's is among them
    TWINBENCH_UNROLL
    for (int warp = 0; warp < kRowThreads / simt::kWarpSize; ++warp)
      two = merged(two, {.best = of_warp[2 * warp], .second = of_warp[2 * warp + 1], .id = id_of_warp[warp]});
    if (thread == 0) {
      a.token[row * a.tokens + step] = two.id;
      a.logit[row * a.tokens + step] = two.best;
      const float gap = gap_of(two);
      if (!a.round && gap < a.gap[row]) a.gap[row] = gap;
      a.length[row] = static_cast<std::int32_t>(step + 1);
      if (two.id == kEndId) {
        a.done[row] = 1;
        if (simt::atomic_add(block, a.finished, 1) + 1 == static_cast<std::int32_t>(a.rows))
          *a.all_finished = *a.pass_at_hand;
      }
    }
    if (two.id != kEndId && step + 1 < a.tokens) embed(block, a, row, two.id, step + 1);
  }
};

// Grid: a block a row: its words, joined by a space each, and zeros behind them.
struct JoinWords {
  static constexpr int kMaxThreads = kRowThreads;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const DecodeArguments& a) const {
    const std::int64_t row = block.index().x;
    const int thread = simt::thread_rank(block);
    std::uint8_t* const text = a.text + row * a.text_bytes;
    std::int64_t end = 0;
    for (std::int32_t i = 0; i < a.length[row]; ++i) {
      const std::int64_t id = a.token[row * a.tokens + i];
      if (id < kFirstWordId) continue;
      if (end > 0) {
        if (thread == 0) text[end] = ' ';
        ++end;
      }
      const std::int64_t begin = a.word_offsets[id], bytes = a.word_offsets[id + 1] - begin;
      for (std::int64_t at = thread; at < bytes; at += kRowThreads) text[end + at] = a.word_bytes[begin + at];
      end += bytes;
    }
    for (std::int64_t at = end + thread; at < a.text_bytes; at += kRowThreads) text[at] = 0;
    if (thread == 0) a.text_length[row] = static_cast<std::int32_t>(end);
  }
};

}  // namespace twinbench::energy_flow::text_decoder
