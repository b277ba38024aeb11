// Optimized trainer2.fused_retrieval on the CPU: costs, weights and mix of a few samples in one pass over the bank.
#include <cmath>

#include "optimized/common/rows.h"
#include "optimized/trainer2/fused_retrieval/plan.h"
#include "src/common/cpu_clones.h"
#include "src/rounding.h"

namespace twinbench::trainer2::fused_retrieval {
namespace {

constexpr std::int64_t kBlock = 128;     // candidates whose coordinates, or states of kColumns columns, lie in L1
constexpr int kRows = 4, kColumns = 32;  // of the mix that stay in registers
constexpr int kLanes = 32;               // interleaved partial sums and minima

// Of a piece of the samples.
struct Scratch {
  float *coordinates, *queries, *turns,
      *weights;  // [axes, kBlock], [axes, samples], [2, planes], [samples, candidates]

  Scratch(const Arguments& a, std::int64_t samples, float* from)
      : coordinates(from),
        queries(coordinates + a.axes * kBlock),
        turns(queries + a.axes * samples),
        weights(turns + 2 * a.planes) {}
  static std::int64_t floats(const Arguments& a, std::int64_t samples) {
    return a.axes * (kBlock + samples) + 2 * a.planes + samples * (std::int64_t{a.tokens} + a.capacity);
  }
};

// Rows of coordinates as columns, so that neighbours are neighbours, and turned into the frame.
TWINBENCH_CPU_CLONES void load_turned(const Arguments& a, const float* turns, const float* rows, std::int64_t count,
                                      std::int64_t stride, float* __restrict columns) {
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t axis = 0; axis < a.axes; ++axis) columns[axis * stride + i] = rows[i * a.axes + axis];
  for (int plane = 0; plane < a.planes; ++plane) {
    float *const one = columns + a.first_axis[plane] * stride, *const other = columns + a.second_axis[plane] * stride;
    const float cosine = turns[plane], sine = turns[a.planes + plane];
#pragma GCC ivdep
    for (std::int64_t i = 0; i < count; ++i) {
      const float x = one[i], y = other[i];
      one[i] = cosine * x - sine * y;
      other[i] = sine * x + cosine * y;
    }
  }
}

// query: every query_stride-th number.
TWINBENCH_CPU_CLONES void costs_of(const Arguments& a, const float* __restrict coordinates, const float* query,
                                   std::int64_t query_stride, float curvature, std::int64_t count,
                                   float* __restrict costs) {
  for (std::int64_t first = 0; first < count; first += kLanes) {
    const std::int64_t lanes = std::min<std::int64_t>(kLanes, count - first);
    float quadratic[kLanes] = {};
    for (int axis = 0; axis < a.axes; ++axis) {
      const float* const candidate = coordinates + axis * kBlock + first;
      const float metric = a.metric[axis], here = query[axis * query_stride];
      if (lanes == kLanes)
        for (int lane = 0; lane < kLanes; ++lane)
          quadratic[lane] = with_axis(quadratic[lane], metric, candidate[lane], here);
      else
        for (int lane = 0; lane < lanes; ++lane)
          quadratic[lane] = with_axis(quadratic[lane], metric, candidate[lane], here);
    }
    for (int lane = 0; lane < lanes; ++lane) costs[first + lane] = cost_of(curvature, quadratic[lane]);
  }
}

// A NaN is no minimum: the weights carry it on.
TWINBENCH_CPU_CLONES float least_of(const float* __restrict costs, std::int64_t count) {
  float least[kLanes];
  std::fill_n(least, kLanes, INFINITY);
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int lane = 0; lane < kLanes; ++lane) {
      const float cost = costs[i + lane], before = least[lane];
      least[lane] = cost < before ? cost : before;
    }
  for (int lane = 0; i + lane < count; ++lane)
    least[lane] = costs[i + lane] < least[lane] ? costs[i + lane] : least[lane];
  float all = INFINITY;
  for (const float one : least) all = one < all ? one : all;
  return all;
}

// Costs become weights, in place; returns their sum.
TWINBENCH_CPU_CLONES float weigh(float* __restrict costs, std::int64_t count, float beta, float least) {
  float sums[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int lane = 0; lane < kLanes; ++lane) {
      const float weight = weight_of(beta, costs[i + lane], least);
      costs[i + lane] = weight;
      sums[lane] += weight;
    }
  for (int lane = 0; i + lane < count; ++lane) {
    costs[i + lane] = weight_of(beta, costs[i + lane], least);
    sums[lane] += costs[i + lane];
  }
  float sum = 0;
  for (const float one : sums) sum += one;
  return sum;
}

// mix += weights [rows, count] * states [count, columns], in registers.
template <int kRowCount, int kColumnCount>
inline __attribute__((always_inline)) void add_block(const float* __restrict weights, std::int64_t weight_stride,
                                                     const float* __restrict states, std::int64_t width,
                                                     std::int64_t count, float* __restrict mix) {
  float sum[kRowCount][kColumnCount];
  for (int row = 0; row < kRowCount; ++row)
    for (int j = 0; j < kColumnCount; ++j) sum[row][j] = mix[row * width + j];
  for (std::int64_t i = 0; i < count; ++i) {
#pragma GCC unroll 4
    for (int row = 0; row < kRowCount; ++row) {
      const float weight = weights[row * weight_stride + i];
#pragma GCC unroll 1
      for (int j = 0; j < kColumnCount; ++j)
        sum[row][j] = kernels::multiply_add(weight, states[i * width + j], sum[row][j]);
    }
  }
  for (int row = 0; row < kRowCount; ++row)
    for (int j = 0; j < kColumnCount; ++j) mix[row * width + j] = sum[row][j];
}

template <int kColumnCount>
inline __attribute__((always_inline)) void add_columns(const float* weights, std::int64_t weight_stride,
                                                       const float* states, std::int64_t width, std::int64_t count,
                                                       std::int64_t samples, float* mix) {
  std::int64_t sample = 0;
  for (; sample + kRows <= samples; sample += kRows)
    add_block<kRows, kColumnCount>(weights + sample * weight_stride, weight_stride, states, width, count,
                                   mix + sample * width);
  for (; sample < samples; ++sample)
    add_block<1, kColumnCount>(weights + sample * weight_stride, weight_stride, states, width, count,
                               mix + sample * width);
}

// Of `count` slots of the bank for all samples; a sample's sum is the same beside any others.
TWINBENCH_CPU_CLONES void add_slots(const float* weights, std::int64_t weight_stride, const float* states,
                                    std::int64_t width, std::int64_t count, std::int64_t samples, float* mix) {
  std::int64_t j = 0;
  for (; j + kColumns <= width; j += kColumns)
    add_columns<kColumns>(weights, weight_stride, states + j, width, count, samples, mix + j);
  for (; j + 4 <= width; j += 4) add_columns<4>(weights, weight_stride, states + j, width, count, samples, mix + j);
  for (; j < width; ++j) add_columns<1>(weights, weight_stride, states + j, width, count, samples, mix + j);
}

// The valid ones of a sample's tokens, four at a time: their states are read once, in order.
template <Stored kStored>
TWINBENCH_CPU_CLONES static void add_tokens(const float* weights, const float* mask, const float* states,
                                            std::int64_t width, std::int64_t count, float* __restrict mix) {
  constexpr int kTokens = 4;
  const float* row[kTokens];
  float weight[kTokens];
  int waiting = 0;
  for (std::int64_t i = 0; i <= count; ++i) {
    if (i < count && mask[i] == 1.0f) {
      row[waiting] = states + i * width;
      weight[waiting++] = weights[i];
    }
    if (waiting == kTokens) {
      const float *const a = row[0], *const b = row[1], *const c = row[2], *const d = row[3];
      const float of_a = weight[0], of_b = weight[1], of_c = weight[2], of_d = weight[3];
      for (std::int64_t j = 0; j < width; ++j)
        mix[j] += (of_a * stored<kStored>(a[j]) + of_b * stored<kStored>(b[j])) +
                  (of_c * stored<kStored>(c[j]) + of_d * stored<kStored>(d[j]));
      waiting = 0;
    }
  }
  for (int k = 0; k < waiting; ++k)
    for (std::int64_t j = 0; j < width; ++j) mix[j] += weight[k] * stored<kStored>(row[k][j]);
}

class CpuRetrieval final : public Plan {
 public:
  // The bank's states are rounded once; on the CPU they stay fp32.
  CpuRetrieval(const NamedTensors& inputs, const Setting& setting)
      : Plan(inputs, setting, rounded_unobserved(inputs["bank_states"], setting.dtype).contiguous()),
        candidates_(setting.size("tokens") + setting.size("capacity")),
        pieces_(Pieces::of(setting.size("batch"), grain(candidates_ * setting.size("width"), kLeast),
                           at::get_num_threads(), kRows)),
        scratch_(at::empty({pieces_.number(), Scratch::floats(arguments_, pieces_.size)}, at::kFloat)) {}

  void run() override {
    pieces_.each([this](std::int64_t piece, std::int64_t begin, std::int64_t end) {
      retrieve(begin, end - begin, Scratch(arguments_, pieces_.size, data<float>(scratch_) + piece * scratch_.size(1)));
    });
  }

 private:
  static constexpr std::int64_t kLeast = 1 << 19;  // products of a piece: some 50 us

  void retrieve(std::int64_t first, std::int64_t samples, const Scratch& scratch) const {
    const Arguments& a = arguments_;
    const std::int64_t width = a.width, filled = std::min<std::int64_t>(*a.filled, a.capacity);
    for (int plane = 0; plane < a.planes; ++plane) {
      scratch.turns[plane] = std::cos(a.theta[plane]);
      scratch.turns[a.planes + plane] = std::sin(a.theta[plane]);
    }
    load_turned(a, scratch.turns, a.query + first * a.axes, samples, samples, scratch.queries);
    for (std::int64_t slot = 0; slot < filled; slot += kBlock) {
      const std::int64_t count = std::min(kBlock, filled - slot);
      load_turned(a, scratch.turns, a.bank_coordinates + slot * a.axes, count, kBlock, scratch.coordinates);
      for (std::int64_t i = 0; i < samples; ++i)
        costs_of(a, scratch.coordinates, scratch.queries + i, samples, a.curvature[first + i], count,
                 scratch.weights + i * candidates_ + a.tokens + slot);
    }
    std::fill_n(a.mix + first * width, samples * width, 0.0f);
    for (std::int64_t i = 0; i < samples; ++i) weigh_sample(first + i, i, samples, filled, scratch);
    for (std::int64_t slot = 0; slot < filled; slot += kBlock)
      add_slots(scratch.weights + a.tokens + slot, candidates_, static_cast<const float*>(a.bank_states) + slot * width,
                width, std::min(kBlock, filled - slot), samples, a.mix + first * width);
    for (std::int64_t i = 0; i < samples; ++i) finish_sample(first + i, filled, scratch.weights + i * candidates_);
  }

  // `place`: of the sample among the piece's.
  void weigh_sample(std::int64_t sample, std::int64_t place, std::int64_t samples, std::int64_t filled,
                    const Scratch& scratch) const {
    const Arguments& a = arguments_;
    float* const weights = scratch.weights + place * candidates_;
    const float* const mask = a.mask + sample * a.tokens;
    bool any = filled > 0;
    for (std::int64_t token = 0; token < a.tokens; token += kBlock) {
      const std::int64_t count = std::min<std::int64_t>(kBlock, a.tokens - token);
      load_turned(a, scratch.turns, a.token_coordinates + (sample * a.tokens + token) * a.axes, count, kBlock,
                  scratch.coordinates);
      costs_of(a, scratch.coordinates, scratch.queries + place, samples, a.curvature[sample], count, weights + token);
      for (std::int64_t i = token; i < token + count; ++i) {
        const bool valid = mask[i] == 1.0f;
        weights[i] = valid ? weights[i] : INFINITY;
        any = any || valid;
      }
    }
    const std::int64_t all = a.tokens + filled;
    const float sum = weigh(weights, all, a.beta, least_of(weights, all));
    // The factor that makes their sum one. Nothing is added to a mix without candidates: it stays 0.
    const float share = any ? 1.0f / sum : 0.0f;
    for (std::int64_t i = 0; i < all; ++i) weights[i] *= share;
  }

  void finish_sample(std::int64_t sample, std::int64_t filled, const float* weights) const {
    const Arguments& a = arguments_;
    const float *const mask = a.mask + sample * a.tokens, *const states = a.token_states + sample * a.tokens * a.width;
    float* const mix = a.mix + sample * a.width;
    const auto add = a.stored == Stored::kHalf     ? add_tokens<Stored::kHalf>
                     : a.stored == Stored::kBfloat ? add_tokens<Stored::kBfloat>
                                                   : add_tokens<Stored::kFloat>;
    add(weights, mask, states, a.width, a.tokens, mix);
    for (std::int64_t i = 0; i < a.inspected; ++i) {
      const std::int64_t candidate = a.of_weights[i];
      const bool valid = candidate < a.tokens ? mask[candidate] == 1.0f : candidate - a.tokens < filled;
      a.weights[sample * a.inspected + i] = valid ? weights[candidate] : 0.0f;
    }
  }

  const std::int64_t candidates_;
  const Pieces pieces_;
  at::Tensor scratch_;  // of every piece
};

}  // namespace

std::unique_ptr<Runnable> make_cpu(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<CpuRetrieval>(inputs, setting);
}

}  // namespace twinbench::trainer2::fused_retrieval
