// The kernel of trainer2.fused_retrieval: a block a part of the candidates; the last block of a tile of samples merges.
#pragma once

#include <type_traits>

#include "kernels/common/grid.h"
#include "kernels/common/simt_handover.h"
#include "kernels/common/vectors.h"
#include "kernels/trainer2/fused_retrieval/arguments.h"

namespace twinbench::trainer2::fused_retrieval {

namespace simt = kernels::simt;

constexpr int kThreads = 256;
constexpr int kColumnThreads = 64;                     // side by side along the states' columns
constexpr int kRowGroups = kThreads / kColumnThreads;  // that share a part's candidates
constexpr int kMergeBatch = 4;                         // partial mixes of a thread in flight
// Invalid candidates: no weight is negative, and no cost but a NaN or one of negative curvature is.
constexpr float kInvalid = -INFINITY;

// Rows of the coordinates' tile: candidates, then queries. 12 more than a multiple of 32, so that eight axes of four
// candidates, which lie together in memory, lie in different banks.
TWINBENCH_HOST_DEVICE int tile_stride(int chunk) { return chunk + 12; }

// Floats of dynamic shared memory: coordinates, then weights, then what half of the groups of rows hand to the others.
struct SharedLayout {
  int coordinates, weights, sums;
};
TWINBENCH_HOST_DEVICE SharedLayout shared_layout(int axes, int chunk, int width_of_access) {
  return {(axes * tile_stride(chunk) + 3) / 4 * 4, kSamples * chunk,
          kRowGroups / 2 * kSamples * kColumnThreads * width_of_access};
}
TWINBENCH_HOST_DEVICE std::int64_t shared_bytes(int axes, int chunk, int width_of_access) {
  const SharedLayout layout = shared_layout(axes, chunk, width_of_access);
  return std::int64_t{4} * (layout.coordinates + layout.weights + layout.sums);
}

struct Smaller {
  TWINBENCH_HOST_DEVICE float operator()(float a, float b) const { return b < a ? b : a; }
};

struct Plane {
  int first, second;
  float cosine, sine;
};

// Grid: the bank's parts of every tile, then the tokens' parts of every sample. kWidth: columns of an access, 1 where
// rows of states do not start at multiples of 16 bytes. One part: coordinates into shared memory, turned there; costs;
// the least one, weights and their sum; the mix of the states, rows shared among groups of threads.
template <int kWidth, Stored kStored>
struct RetrieveAs {
  static constexpr int kMaxThreads = kThreads;
  static constexpr int kMinBlocksPerSm = 3;  // all blocks of the documents' size are then resident at once
  static constexpr int kAccess = kWidth;
  static std::int64_t documented_shared_bytes() { return shared_bytes(8, kMostChunk, kWidth); }

  using Values = kernels::Floats<kWidth>;
  using Weights = kernels::Floats<4>;

  // Candidates of one part, all of one kind.
  struct Part {
    int first_sample, samples;  // of the tile that take part
    int number;                 // among a sample's parts
    int rows, first;            // candidates, and the first one among their kind
  };

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const Arguments& a) const {
    const int index = static_cast<int>(block.index().x), of_bank = a.split.tiles * a.split.bank_parts;
    if (index < of_bank) {
      const int number = index % a.split.bank_parts, first = number * a.split.chunk;
      const int filled = filled_slots(a);
      if (first >= filled) return;  // nobody waits for it
      const int first_sample = index / a.split.bank_parts * kSamples;
      take<kSamples, true>(block, a,
                           {first_sample, at_most(kSamples, a.batch - first_sample), number,
                            at_most(a.split.chunk, filled - first), first});
    } else {
      const int number = (index - of_bank) % a.split.token_parts, first = number * a.split.chunk;
      take<1, false>(block, a,
                     {(index - of_bank) / a.split.token_parts, 1, a.split.bank_parts + number,
                      at_most(a.split.chunk, a.tokens - first), first});
    }
    const int tile = index < of_bank ? index / a.split.bank_parts : (index - of_bank) / a.split.token_parts / kSamples;
    const int samples = at_most(kSamples, a.batch - tile * kSamples);
    const auto parts = static_cast<unsigned>(filled_parts(a) + samples * a.split.token_parts);
    if (simt::is_last_block(block, a.finished + tile, parts)) merge(block, a, tile * kSamples, samples);
  }

 private:
  TWINBENCH_DEVICE static int at_most(int most, int value) { return value < most ? value : most; }
  TWINBENCH_DEVICE static int filled_slots(const Arguments& a) {
    const std::int64_t given = a.filled[0];
    return given < 0 ? 0 : given < a.capacity ? static_cast<int>(given) : a.capacity;
  }
  // Of the bank's parts those that hold anything.
  TWINBENCH_DEVICE static int filled_parts(const Arguments& a) {
    return (filled_slots(a) + a.split.chunk - 1) / a.split.chunk;
  }
  // Row of a matrix with the part's kind of candidates.
  template <bool kOfBank>
  TWINBENCH_DEVICE static std::int64_t first_row(const Arguments& a, const Part& part) {
    return kOfBank ? part.first : std::int64_t{part.first_sample} * a.tokens + part.first;
  }

  // kCount: samples that a thread keeps; of the bank: all candidates are valid.
  template <int kCount, bool kOfBank, class Block>
  TWINBENCH_DEVICE static void take(Block& block, const Arguments& a, const Part& part) {
    const SharedLayout layout = shared_layout(a.axes, a.split.chunk, kWidth);
    auto coordinates = simt::dynamic_shared<float>(block);
    auto weights = simt::dynamic_shared<float>(block, 4 * layout.coordinates);
    turn_into_frame<kOfBank>(block, a, part, coordinates);
    weigh<kCount, kOfBank>(block, a, part, coordinates, weights);
    const int chunk = a.split.chunk, wide = kColumnThreads * kWidth;
    for (int first = 0; first < a.width; first += wide) {
      Values sums[kCount] = {};
      const int column = first + simt::thread_rank(block) % kColumnThreads * kWidth;
      const int group = simt::thread_rank(block) / kColumnThreads;
      if (column < a.width) mix<kCount, kOfBank>(block, a, part, group, column, chunk, sums);
      add_groups<kCount>(block, a, part, group, column, layout, sums);
    }
  }

  // The part's candidates and queries, as columns, in the frame.
  template <bool kOfBank, class Block, class Coordinates>
  TWINBENCH_DEVICE static void turn_into_frame(Block& block, const Arguments& a, const Part& part,
                                               Coordinates coordinates) {
    auto planes = simt::shared_array<Plane, kMostPlanes>(block);
    const int thread = simt::thread_rank(block), stride = tile_stride(a.split.chunk);
    for (int plane = thread; plane < a.planes; plane += kThreads) {
      const float angle = a.theta[plane];
      planes[plane] = Plane{a.first_axis[plane], a.second_axis[plane], std::cos(angle), std::sin(angle)};
    }
    const float* const rows =
        (kOfBank ? a.bank_coordinates : a.token_coordinates) + first_row<kOfBank>(a, part) * a.axes;
    kernels::in_batches<4>(
        thread, kThreads, part.rows * a.axes, [&](int i) { return rows[i]; },
        [&](int i, float value) { coordinates[i % a.axes * stride + i / a.axes] = value; });
    const float* const queries = a.query + std::int64_t{part.first_sample} * a.axes;
    for (int i = thread; i < part.samples * a.axes; i += kThreads)
      coordinates[i % a.axes * stride + a.split.chunk + i / a.axes] = queries[i];
    block.barrier();
    const int query = thread - a.split.chunk;
    if (thread < part.rows || (query >= 0 && query < part.samples))
      for (int plane = 0; plane < a.planes; ++plane) {
        const Plane by = planes[plane];
        const float x = coordinates[by.first * stride + thread], y = coordinates[by.second * stride + thread];
        coordinates[by.first * stride + thread] = by.cosine * x - by.sine * y;
        coordinates[by.second * stride + thread] = by.sine * x + by.cosine * y;
      }
    block.barrier();
  }

  // Costs, then a warp a sample: weights [kSamples, chunk] in shared memory, the head in global memory.
  template <int kCount, bool kOfBank, class Block, class Coordinates, class Shared>
  TWINBENCH_DEVICE static void weigh(Block& block, const Arguments& a, const Part& part, Coordinates coordinates,
                                     Shared weights) {
    const int thread = simt::thread_rank(block), chunk = a.split.chunk, stride = tile_stride(chunk);
    for (int i = thread; i < kCount * chunk; i += kThreads) {
      const int row = i % chunk, place = i / chunk, sample = part.first_sample + place;
      float cost = kInvalid;
      if (row < part.rows && place < part.samples && (kOfBank || a.mask[first_row<kOfBank>(a, part) + row] == 1.0f)) {
        float quadratic = 0.0f;
        for (int axis = 0; axis < a.axes; ++axis)
          quadratic = with_axis(quadratic, a.metric[axis], coordinates[axis * stride + row],
                                coordinates[axis * stride + chunk + place]);
        cost = cost_of(a.curvature[sample], quadratic);
      }
      weights[i] = cost;
      if (a.costs != nullptr && row < part.rows && place < part.samples)
        a.costs[std::int64_t{sample} * (a.tokens + a.capacity) + (kOfBank ? a.tokens : 0) + part.first + row] = cost;
    }
    block.barrier();
    const int place = simt::warp(block);
    if (place < kCount) {
      constexpr int kEach = kMostChunk / simt::kWarpSize;
      float costs[kEach], least = INFINITY, sum = 0.0f;
      bool any = false;
      TWINBENCH_UNROLL
      for (int k = 0; k < kEach; ++k) {
        const int row = simt::lane(block) + k * simt::kWarpSize;
        costs[k] = kInvalid;
        if (row < chunk) costs[k] = weights[place * chunk + row];
        const bool valid = costs[k] != kInvalid;
        any = any || valid;
        least = valid && costs[k] < least ? costs[k] : least;
      }
      least = simt::warp_reduce(block, least, Smaller{});
      TWINBENCH_UNROLL
      for (int k = 0; k < kEach; ++k) {
        const int row = simt::lane(block) + k * simt::kWarpSize;
        const bool valid = costs[k] != kInvalid;
        const float weight = weight_of(a.beta, costs[k], least);
        if (valid) sum += weight;
        // All slots are valid but those past the end, which are not read: no weight adds nothing of them.
        if (row < chunk) weights[place * chunk + row] = valid ? weight : kOfBank ? 0.0f : kInvalid;
      }
      sum = simt::warp_sum(block, sum);
      const bool all = block.ballot(any) != 0;
      if (simt::lane(block) == 0 && place < part.samples)
        kernels::store(head_of(a, part.first_sample + place, part.number),
                       Weights{{least, sum, all ? 1.0f : 0.0f, 0.0f}});
    }
    block.barrier();
  }

  TWINBENCH_DEVICE static float* head_of(const Arguments& a, int sample, int number) {
    return a.heads + 4 * (std::int64_t{sample} * a.split.parts() + number);
  }
  TWINBENCH_DEVICE static float* mix_of(const Arguments& a, int sample, int number) {
    return a.mixes + (std::int64_t{sample} * a.split.parts() + number) * a.width;
  }

  // How the states of one kind lie in memory.
  template <bool kOfBank>
  using Element = std::conditional_t<kOfBank && kStored != Stored::kFloat, std::uint16_t, float>;

  template <bool kOfBank>
  TWINBENCH_DEVICE static Values state(const Element<kOfBank>* from) {
    Values values;
    if constexpr (!kOfBank || kStored == Stored::kFloat) {
      values = kernels::load<kWidth>(from);
      if constexpr (!kOfBank) TWINBENCH_UNROLL
      for (int i = 0; i < kWidth; ++i) values.of[i] = stored<kStored>(values.of[i]);
    } else {
      const auto bits = kernels::load<kWidth>(from);
      TWINBENCH_UNROLL
      for (int i = 0; i < kWidth; ++i)
        values.of[i] = kStored == Stored::kHalf ? kernels::float_of_half_bits(bits.of[i])
                                                : kernels::float_of_bf16_bits(bits.of[i]);
    }
    return values;
  }

  // The group's rows of one column for all samples. Invalid candidates are not read: what they hold is no state.
  template <int kCount, bool kOfBank, class Block>
  TWINBENCH_DEVICE static void mix(Block& block, const Arguments& a, const Part& part, int group, int column, int chunk,
                                   Values (&sums)[kCount]) {
    constexpr int kBatch = kOfBank ? 4 : 8;  // rows in flight
    const SharedLayout layout = shared_layout(a.axes, chunk, kWidth);
    auto weights = simt::dynamic_shared<Weights>(block, 4 * layout.coordinates);
    const void* const all = kOfBank ? a.bank_states : a.token_states;
    constexpr int kStep = kRowGroups * kBatch;
    // Walks along: places computed anew for every row would take registers that the sums need.
    const auto* from =
        static_cast<const Element<kOfBank>*>(all) + (first_row<kOfBank>(a, part) + group * kBatch) * a.width + column;
    for (int row = group * kBatch; row < part.rows; row += kStep, from += kStep * a.width) {
      Values states[kBatch] = {};
      Weights of_rows[kBatch / 4];
      if constexpr (!kOfBank) {
        TWINBENCH_UNROLL
        for (int k = 0; k < kBatch / 4; ++k) of_rows[k] = weights[row / 4 + k];
      }
      TWINBENCH_UNROLL
      for (int k = 0; k < kBatch; ++k) {
        const bool valid = kOfBank ? row + k < part.rows : of_rows[k / 4].of[k % 4] != kInvalid;
        if (valid) states[k] = state<kOfBank>(from + k * a.width);
      }
      TWINBENCH_UNROLL
      for (int sample = 0; sample < kCount; ++sample) {
        if constexpr (kOfBank) of_rows[0] = weights[(sample * chunk + row) / 4];
        TWINBENCH_UNROLL
        for (int k = 0; k < kBatch; ++k) {
          float weight = of_rows[k / 4].of[k % 4];
          if constexpr (!kOfBank) weight = weight == kInvalid ? 0.0f : weight;
          TWINBENCH_UNROLL
          for (int i = 0; i < kWidth; ++i)
            sums[sample].of[i] = kernels::multiply_add(weight, states[k].of[i], sums[sample].of[i]);
        }
      }
    }
  }

  // The groups' sums, in a fixed tree, to the part's mix.
  template <int kCount, class Block>
  TWINBENCH_DEVICE static void add_groups(Block& block, const Arguments& a, const Part& part, int group, int column,
                                          const SharedLayout& layout, Values (&sums)[kCount]) {
    auto handed = simt::dynamic_shared<Values>(block, 4 * (layout.coordinates + layout.weights));
    const int thread = simt::thread_rank(block) % kColumnThreads;
    TWINBENCH_UNROLL
    for (int half = kRowGroups / 2; half > 0; half /= 2) {
      if (group >= half && group < 2 * half) {
        TWINBENCH_UNROLL
        for (int sample = 0; sample < kCount; ++sample)
          handed[((group - half) * kCount + sample) * kColumnThreads + thread] = sums[sample];
      }
      block.barrier();
      if (group < half) {
        TWINBENCH_UNROLL
        for (int sample = 0; sample < kCount; ++sample) {
          const Values more = handed[(group * kCount + sample) * kColumnThreads + thread];
          sums[sample] = kernels::map(sums[sample], more, [](float x, float y) { return x + y; });
        }
      }
      block.barrier();
    }
    if (group > 0 || column >= a.width) return;
    TWINBENCH_UNROLL
    for (int sample = 0; sample < kCount; ++sample)
      if (sample < part.samples)
        kernels::store(mix_of(a, part.first_sample + sample, part.number) + column, sums[sample]);
  }

  // All parts of a tile's samples: first a warp a sample for the heads, whose last number becomes the part's factor,
  // then a group of threads a sample. Parts of the bank beyond the filled slots were never taken.
  template <class Block>
  TWINBENCH_DEVICE static void merge(Block& block, const Arguments& a, int first_sample, int samples) {
    auto totals = simt::shared_array<Weights, kSamples>(block);  // least cost, sum, whether any is valid
    const int place = simt::warp(block), parts = a.split.parts(), bank_parts = filled_parts(a);
    const auto taken = [&](int part) { return part < bank_parts || part >= a.split.bank_parts; };
    if (place < samples) {
      float least = INFINITY, sum = 0.0f;
      bool any = false;
      for (int part = simt::lane(block); part < parts; part += simt::kWarpSize)
        if (taken(part)) {
          const Weights head = kernels::load<4>(head_of(a, first_sample + place, part));
          least = head.of[0] < least ? head.of[0] : least;
          any = any || head.of[2] != 0.0f;
        }
      least = simt::warp_reduce(block, least, Smaller{});
      for (int part = simt::lane(block); part < parts; part += simt::kWarpSize)
        if (taken(part)) {
          Weights head = kernels::load<4>(head_of(a, first_sample + place, part));
          head.of[3] = weight_of(a.beta, head.of[0], least);
          sum += head.of[3] * head.of[1];
          kernels::store(head_of(a, first_sample + place, part), head);
        }
      sum = simt::warp_sum(block, sum);
      const bool all = block.ballot(any) != 0;
      if (simt::lane(block) == 0) totals[place] = Weights{{least, sum, all ? 1.0f : 0.0f, 0.0f}};
    }
    block.barrier();
    const int group = simt::thread_rank(block) / kColumnThreads, thread = simt::thread_rank(block) % kColumnThreads;
    for (int sample = group; sample < samples; sample += kRowGroups) {
      const Weights total = totals[sample];
      for (int column = thread * kWidth; column < a.width; column += kColumnThreads * kWidth) {
        Values sum{};
        struct Scaled {
          Values values;
          float factor;
        };
        const int used = bank_parts + a.split.token_parts;
        kernels::in_batches<kMergeBatch>(
            0, 1, used,
            [&](int i) {
              const int part = i < bank_parts ? i : a.split.bank_parts + i - bank_parts;
              return Scaled{kernels::load<kWidth>(mix_of(a, first_sample + sample, part) + column),
                            head_of(a, first_sample + sample, part)[3]};
            },
            [&](int, const Scaled& one) {
              sum = kernels::map(sum, one.values,
                                 [&](float x, float y) { return kernels::multiply_add(one.factor, y, x); });
            });
        const Values mean = kernels::map(sum, [&](float x) { return total.of[2] != 0.0f ? x / total.of[1] : 0.0f; });
        kernels::store(a.mix + std::int64_t{first_sample + sample} * a.width + column, mean);
      }
      for (int i = thread; i < a.inspected; i += kColumnThreads) {
        const int candidate = a.of_weights[i], all = a.tokens + a.capacity;
        float weight = 0.0f;
        if (candidate < a.tokens + filled_slots(a)) {  // others were never weighed
          const float cost = a.costs[std::int64_t{first_sample + sample} * all + candidate];
          if (cost != kInvalid) weight = weight_of(a.beta, cost, total.of[0]) / total.of[1];
        }
        a.weights[std::int64_t{first_sample + sample} * a.inspected + i] = weight;
      }
    }
  }
};

struct Retrieve : RetrieveAs<4, Stored::kFloat> {};
struct RetrieveHalf : RetrieveAs<4, Stored::kHalf> {};
struct RetrieveBfloat : RetrieveAs<4, Stored::kBfloat> {};
struct RetrieveAnyWidth : RetrieveAs<1, Stored::kFloat> {};
struct RetrieveHalfAnyWidth : RetrieveAs<1, Stored::kHalf> {};
struct RetrieveBfloatAnyWidth : RetrieveAs<1, Stored::kBfloat> {};

}  // namespace twinbench::trainer2::fused_retrieval
