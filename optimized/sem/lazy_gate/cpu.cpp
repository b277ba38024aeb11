// Optimized sem.lazy_gate on the CPU: eight rows side by side in the lanes of a vector, gate and all iterations while
// they lie in the cache; a row that is through goes on unchanged.
#include <ATen/ATen.h>

#include "optimized/common/rows.h"
#include "optimized/sem/lazy_gate/folded_graph.h"

namespace twinbench::sem::lazy_gate {
namespace {

constexpr int kLanes = 8, kNode = 2 * kLanes;  // of a node: the rows' real parts, then their imaginary ones
constexpr int kPartial = 32;                   // nodes whose squares are added up before the sum is

// to = v + sign * i dt/2 H v at one node.
inline __attribute__((always_inline)) void operated(const Graph& graph, const float* __restrict v, std::int64_t i,
                                                    float sign, float* __restrict to) {
  float h[kNode];
  for (int l = 0; l < kNode; ++l) h[l] = graph.diagonal[i] * v[i * kNode + l];
  for (std::int32_t e = graph.begins[i]; e < graph.begins[i + 1]; ++e) {
    const float weight = graph.weights[e];
    const float* const other = v + std::int64_t{graph.neighbours[e]} * kNode;
    for (int l = 0; l < kNode; ++l) h[l] -= weight * other[l];
  }
  for (int l = 0; l < kLanes; ++l) {
    to[l] = v[i * kNode + l] - sign * h[kLanes + l];
    to[kLanes + l] = v[i * kNode + kLanes + l] + sign * h[l];
  }
}

// r = A^H v, and its rows' squares.
TWINBENCH_CPU_CLONES void right_side(const Graph& graph, std::int64_t dim, const float* __restrict v,
                                     float* __restrict r, float* __restrict sums) {
  for (int l = 0; l < kLanes; ++l) sums[l] = 0;
  for (std::int64_t begin = 0; begin < dim; begin += kPartial) {
    float part[kLanes] = {};
    for (std::int64_t i = begin; i < std::min(dim, begin + kPartial); ++i) {
      float b[kNode];
      operated(graph, v, i, -1, b);
      for (int l = 0; l < kNode; ++l) r[i * kNode + l] = b[l];
      for (int l = 0; l < kLanes; ++l) part[l] += b[l] * b[l] + b[kLanes + l] * b[kLanes + l];
    }
    for (int l = 0; l < kLanes; ++l) sums[l] += part[l];
  }
}

// left = r - A v, and its rows' squares.
TWINBENCH_CPU_CLONES void residual(const Graph& graph, std::int64_t dim, const float* __restrict v,
                                   const float* __restrict r, float* __restrict left, float* __restrict sums) {
  for (int l = 0; l < kLanes; ++l) sums[l] = 0;
  for (std::int64_t begin = 0; begin < dim; begin += kPartial) {
    float part[kLanes] = {};
    for (std::int64_t i = begin; i < std::min(dim, begin + kPartial); ++i) {
      float b[kNode];
      operated(graph, v, i, 1, b);
      for (int l = 0; l < kNode; ++l) left[i * kNode + l] = b[l] = r[i * kNode + l] - b[l];
      for (int l = 0; l < kLanes; ++l) part[l] += b[l] * b[l] + b[kLanes + l] * b[kLanes + l];
    }
    for (int l = 0; l < kLanes; ++l) sums[l] += part[l];
  }
}

// x += length p and r -= length A p of rows whose length is not 0, and the squares of r.
TWINBENCH_CPU_CLONES void step(const Graph& graph, std::int64_t dim, const float* __restrict length,
                               const float* __restrict p, float* __restrict x, float* __restrict r,
                               float* __restrict sums) {
  float lengths[kNode];
  for (int l = 0; l < kNode; ++l) lengths[l] = length[l % kLanes];
  for (int l = 0; l < kLanes; ++l) sums[l] = 0;
  for (std::int64_t begin = 0; begin < dim; begin += kPartial) {
    float part[kLanes] = {};
    for (std::int64_t i = begin; i < std::min(dim, begin + kPartial); ++i) {
      float q[kNode];
      operated(graph, p, i, 1, q);
      for (int l = 0; l < kNode; ++l) {
        const float to_x = x[i * kNode + l] + lengths[l] * p[i * kNode + l],
                    to_r = r[i * kNode + l] - lengths[l] * q[l];
        x[i * kNode + l] = lengths[l] != 0 ? to_x : x[i * kNode + l];
        q[l] = lengths[l] != 0 ? to_r : r[i * kNode + l];
        r[i * kNode + l] = q[l];
      }
      for (int l = 0; l < kLanes; ++l) part[l] += q[l] * q[l] + q[kLanes + l] * q[kLanes + l];
    }
    for (int l = 0; l < kLanes; ++l) sums[l] += part[l];
  }
}

// p = r - share p
TWINBENCH_CPU_CLONES void turn(std::int64_t dim, const float* __restrict share, const float* __restrict r,
                               float* __restrict p) {
  for (std::int64_t i = 0; i < dim; ++i)
    for (int l = 0; l < kNode; ++l) p[i * kNode + l] = r[i * kNode + l] - share[l % kLanes] * p[i * kNode + l];
}

// Rows of two planes that lie `apart` elements from each other.
struct PlaneRows {
  float* re;
  std::int64_t apart;
};
void take(PlaneRows from, std::int64_t count, std::int64_t dim, float* __restrict tile) {
  std::fill_n(tile, dim * kNode, 0.0f);
  for (std::int64_t l = 0; l < count; ++l)
    for (std::int64_t i = 0; i < dim; ++i) {
      tile[i * kNode + l] = from.re[l * dim + i];
      tile[i * kNode + kLanes + l] = from.re[from.apart + l * dim + i];
    }
}

// What a tile's rows came to in one call.
struct Count {
  std::int32_t bad = 0, solved = 0, iterations = 0;
};

class CpuLazyGate final : public Runnable {
 public:
  CpuLazyGate(const NamedTensors& inputs, const Setting& setting)
      : calls_(setting.size("calls")),
        rows_(setting.size("rows")),
        dim_(setting.size("dim")),
        graph_(inputs, setting),
        rule_(rule_of(setting)),
        field_(inputs["field"].contiguous()),
        given_(inputs["cache"].contiguous()),
        results_(zero_results(setting)),
        tiles_((rows_ + kLanes - 1) / kLanes),
        pieces_(Pieces::of(tiles_, 1, at::get_num_threads(), 1)),
        scratch_(at::empty({pieces_.number(), 3, dim_, kNode}, field_.options())),
        counts_(static_cast<std::size_t>(tiles_ * calls_)) {
    CpuLazyGate::reset();
  }

  void reset() override { results_["cache"].copy_(given_); }

  void run() override {
    pieces_.each([&](std::int64_t piece, std::int64_t begin, std::int64_t end) {
      for (std::int64_t tile = begin; tile < end; ++tile)
        for (std::int64_t call = 0; call < calls_; ++call)
          counts_[static_cast<std::size_t>(call * tiles_ + tile)] = solve(piece, tile * kLanes, call);
    });
    for (std::int64_t call = 0; call < calls_; ++call) {
      Count all;
      for (std::int64_t tile = 0; tile < tiles_; ++tile) {
        const Count& one = counts_[static_cast<std::size_t>(call * tiles_ + tile)];
        all = {all.bad + one.bad, all.solved + one.solved, std::max(all.iterations, one.iterations)};
      }
      data<std::int32_t>(results_["nonfinite_rows"])[call] = all.bad;
      data<std::int32_t>(results_["skipped"])[call] = tiles_ > 0 && all.solved == 0 ? 1 : 0;
      data<std::int32_t>(results_["iterations"])[call] = all.iterations;
    }
  }

  NamedTensors outputs() override { return results_; }

 private:
  Count solve(std::int64_t piece, std::int64_t first, std::int64_t call) {
    float* const x = data<float>(scratch_) + piece * 3 * dim_ * kNode;
    float *const r = x + dim_ * kNode, *const p = r + dim_ * kNode;
    const std::int64_t count = std::min<std::int64_t>(kLanes, rows_ - first), plane = calls_ * rows_ * dim_,
                       at = (call * rows_ + first) * dim_;
    const PlaneRows entry{data<float>(results_["cache"]) + first * dim_, rows_ * dim_};
    const Graph graph = graph_.graph();
    float whole[kLanes], sums[kLanes];
    take({data<float>(field_) + at, plane}, count, dim_, p);
    right_side(graph, dim_, p, r, whole);
    std::copy_n(whole, kLanes, sums);
    if (rule_.gate_tolerance > 0) {
      take(entry, count, dim_, p);
      residual(graph, dim_, p, r, x, sums);
    }
    RowState rows[kLanes];
    begin_rows(whole, sums, rows, x, r, p);
    iterate(graph, rows, x, r, p);
    return finish(count, rows, x, {data<float>(results_["x"]) + at, plane}, entry);
  }

  // On entry x holds the residual of the cached solution and p that solution, where there is a gate.
  void begin_rows(const float* whole, const float* from_entry, RowState* rows, float* x, float* r, float* p) const {
    bool keeps[kLanes], warm[kLanes];
    for (int l = 0; l < kLanes; ++l) {
      warm[l] = begin(rows[l], rule_, whole[l], from_entry[l]) == Start::kEntry;
      keeps[l] = warm[l] || (rows[l].skipped && !(rows[l].whole < kZeroRow));
    }
    for (std::int64_t i = 0; i < dim_; ++i)
      for (int l = 0; l < kNode; ++l) {
        const std::int64_t place = i * kNode + l;
        if (warm[l % kLanes]) r[place] = x[place];
        x[place] = keeps[l % kLanes] ? p[place] : 0.0f;
        p[place] = r[place];
      }
  }

  void iterate(const Graph& graph, RowState* rows, float* x, float* r, float* p) const {
    for (;;) {
      float lengths[kLanes], sums[kLanes], shares[kLanes] = {};
      bool any = false;
      for (int l = 0; l < kLanes; ++l) {
        lengths[l] = rows[l].length;
        any = any || rows[l].active();
      }
      if (!any) return;
      step(graph, dim_, lengths, p, x, r, sums);
      for (int l = 0; l < kLanes; ++l)
        if (rows[l].active()) shares[l] = go_on(rows[l], rule_, sums[l]);
      turn(dim_, shares, r, p);
    }
  }

  // A row that is not finite is NaN as a whole, and leaves the cache alone.
  Count finish(std::int64_t count, const RowState* rows, const float* x, PlaneRows to, PlaneRows entry) const {
    Count all;
    for (std::int64_t l = 0; l < count; ++l) {
      for (std::int64_t i = 0; i < dim_; ++i)
        for (int part = 0; part < 2; ++part) {
          const float value = rows[l].bad ? NAN : x[i * kNode + part * kLanes + l];
          to.re[part * to.apart + l * dim_ + i] = value;
          if (!rows[l].bad) entry.re[part * entry.apart + l * dim_ + i] = value;
        }
      all.bad += rows[l].bad ? 1 : 0;
      all.solved += rows[l].skipped ? 0 : 1;
      all.iterations = std::max(all.iterations, rows[l].iterations);
    }
    return all;
  }

  std::int64_t calls_, rows_, dim_;
  FoldedGraph graph_;
  StopRule rule_;
  at::Tensor field_, given_;
  NamedTensors results_;  // the advanced cache among them
  std::int64_t tiles_;
  Pieces pieces_;
  at::Tensor scratch_;  // [pieces, 3, dim, 16]: x, r and p
  std::vector<Count> counts_;
};

}  // namespace

std::unique_ptr<Runnable> make_cpu(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<CpuLazyGate>(inputs, setting);
}

}  // namespace twinbench::sem::lazy_gate
