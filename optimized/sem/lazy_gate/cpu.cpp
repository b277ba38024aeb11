// Optimized sem.lazy_gate on the CPU: eight rows side by side in the lanes of a vector, gate and all iterations while
// they lie in the cache; a row that is through goes on unchanged. Back the same way, then one product for all edges.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "optimized/common/rows.h"
#include "optimized/sem/common/edge_factors.h"
#include "optimized/sem/lazy_gate/folded_graph.h"

namespace twinbench::sem::lazy_gate {
namespace {

constexpr int kLanes = 8, kNode = 2 * kLanes;  // of a node: the rows' real parts, then their imaginary ones
constexpr int kPartial = 32;                   // nodes whose squares are added up before the sum is

// dt/2 H by its rows: the sum of a node's weights, and each neighbour's.
struct Neighbours {
  const float* diagonal;           // [dim]
  const std::int32_t* begins;      // [dim + 1]
  const std::int32_t* neighbours;  // [begins[dim]]
  const float* weights;
};

// to = v + sign * i dt/2 H v at one node.
inline __attribute__((always_inline)) void operated(const Neighbours& graph, const float* __restrict v, std::int64_t i,
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
TWINBENCH_CPU_CLONES void right_side(const Neighbours& graph, std::int64_t dim, const float* __restrict v,
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
TWINBENCH_CPU_CLONES void residual(const Neighbours& graph, std::int64_t dim, const float* __restrict v,
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

// to = A v
TWINBENCH_CPU_CLONES void product(const Neighbours& graph, std::int64_t dim, const float* __restrict v,
                                  float* __restrict to) {
  for (std::int64_t i = 0; i < dim; ++i) operated(graph, v, i, 1, to + i * kNode);
}

// The squares of v's rows.
TWINBENCH_CPU_CLONES void squares(std::int64_t dim, const float* __restrict v, float* __restrict sums) {
  for (int l = 0; l < kLanes; ++l) sums[l] = 0;
  for (std::int64_t begin = 0; begin < dim; begin += kPartial) {
    float part[kLanes] = {};
    for (std::int64_t i = begin; i < std::min(dim, begin + kPartial); ++i)
      for (int l = 0; l < kLanes; ++l)
        part[l] += v[i * kNode + l] * v[i * kNode + l] + v[i * kNode + kLanes + l] * v[i * kNode + kLanes + l];
    for (int l = 0; l < kLanes; ++l) sums[l] += part[l];
  }
}

// x += length p and r -= length (I + sign * i dt/2 H) p of rows whose length is not 0, and the squares of r.
template <int kSign>
TWINBENCH_CPU_CLONES static void step(const Neighbours& graph, std::int64_t dim, const float* __restrict length,
                                      const float* __restrict p, float* __restrict x, float* __restrict r,
                                      float* __restrict sums) {
  float lengths[kNode];
  for (int l = 0; l < kNode; ++l) lengths[l] = length[l % kLanes];
  for (int l = 0; l < kLanes; ++l) sums[l] = 0;
  for (std::int64_t begin = 0; begin < dim; begin += kPartial) {
    float part[kLanes] = {};
    for (std::int64_t i = begin; i < std::min(dim, begin + kPartial); ++i) {
      float q[kNode];
      operated(graph, p, i, kSign, q);
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
void take(const PlaneRows& from, std::int64_t count, std::int64_t dim, float* __restrict tile) {
  std::fill_n(tile, dim * kNode, 0.0f);
  for (std::int64_t l = 0; l < count; ++l)
    for (std::int64_t i = 0; i < dim; ++i) {
      tile[i * kNode + l] = from.re[l * dim + i];
      tile[i * kNode + kLanes + l] = from.re[from.apart + l * dim + i];
    }
}

// Row `l` of a tile, or NaN where it is not finite.
void put(const float* __restrict tile, bool bad, std::int64_t l, std::int64_t dim, const PlaneRows& to) {
  for (std::int64_t i = 0; i < dim; ++i)
    for (int part = 0; part < 2; ++part)
      to.re[part * to.apart + l * dim + i] = bad ? NAN : tile[i * kNode + part * kLanes + l];
}

// What a tile's rows came to in one call, and on the way back through it.
struct Tally {
  std::int32_t bad = 0, solved = 0, discarded = 0, unconverged = 0, iterations = 0, row_iterations = 0, adjoint = 0;
  float left_over = 0;  // the largest share of a right side, squared
};

class CpuLazyGate final : public Runnable {
 public:
  CpuLazyGate(const NamedTensors& inputs, const Setting& setting)
      : backward_(setting.backward()),
        calls_(setting.size("calls")),
        rows_(setting.size("rows")),
        dim_(setting.size("dim")),
        graph_(inputs, setting),
        rule_(rule_of(setting)),
        field_(inputs["field"].contiguous()),
        given_(inputs["cache"].contiguous()),
        given_entry_(inputs["entry"].contiguous()),
        keys_(inputs["keys"].contiguous()),
        keyed_(setting.option("gate_policy") != 0),
        forward_results_(zero_results(forward_of(setting))),
        tiles_((rows_ + kLanes - 1) / kLanes),
        pieces_(Pieces::of(tiles_, 1, at::get_num_threads(), 1)),
        scratch_(at::empty({pieces_.number(), 3, dim_, kNode}, field_.options())),
        tallies_(static_cast<std::size_t>(tiles_ * calls_)) {
    if (backward_) {
      results_ = zero_results(setting);
      given_gradient_ = inputs["grad_x"].contiguous();
      z_ = at::empty({2 * calls_ * rows_, dim_}, field_.options());
      y_ = at::empty_like(z_);
      product_ = at::empty({dim_, dim_}, field_.options());
      nodes_ = inputs["nodes"].contiguous();
      factors_ = edge_factors(inputs, setting);
    }
    residuals_ = forward_results_["largest_residual"];
    counts_ = counts_of(setting, backward_ ? results_ : forward_results_);
    CpuLazyGate::reset();
  }

  void reset() override {
    forward_results_["cache"].copy_(given_);
    forward_results_["entry"].copy_(given_entry_);
  }

  void run() override {
    const at::NoGradGuard no_tape;
    look_at_keys();
    pieces_.each([&](std::int64_t piece, std::int64_t begin, std::int64_t end) {
      for (std::int64_t tile = begin; tile < end; ++tile)
        for (std::int64_t call = 0; call < calls_; ++call) {
          Tally& tally = tallies_[static_cast<std::size_t>(call * tiles_ + tile)];
          tally = solve(piece, tile * kLanes, call);
          if (backward_) tally.adjoint = solve_adjoint(piece, tile * kLanes, call);
        }
    });
    add_up();
    if (!backward_) return;
    at::mm_out(product_, z_.t(), y_);
    edges_backward<float>(product_, nodes_, factors_, results_);
  }

  NamedTensors outputs() override { return backward_ ? results_ : forward_results_; }

 private:
  // Which calls look at the cache; what they leave in it is known beforehand.
  void look_at_keys() {
    auto* const entry = data<std::int64_t>(forward_results_["entry"]);
    const auto* const keys = keys_.const_data_ptr<std::int64_t>();
    for (std::int64_t call = 0; call < calls_ && rows_ > 0; ++call) {
      const Key key{keys[2 * call], keys[2 * call + 1]};
      const bool looks = rule_.gate_tolerance > 0 && evaluates(keyed_, entry[0] != 0, {entry[1], entry[2]}, key);
      *count(kGateEvaluations, call) = looks ? 1 : 0;
      entry[0] = 1;
      entry[1] = key.batch;
      entry[2] = key.version;
    }
  }

  std::int32_t* count(Count what, std::int64_t call) const {
    return data<std::int32_t>(counts_) + what * calls_ + call;
  }
  Neighbours graph() const {
    return {graph_.diagonal.const_data_ptr<float>(), graph_.begins.const_data_ptr<std::int32_t>(),
            graph_.neighbours.const_data_ptr<std::int32_t>(), graph_.weights.const_data_ptr<float>()};
  }
  // A tile's rows of one call.
  PlaneRows rows_in(const at::Tensor& planes, std::int64_t first, std::int64_t call) const {
    return {data<float>(planes) + (call * rows_ + first) * dim_, calls_ * rows_ * dim_};
  }

  void add_up() {
    for (std::int64_t call = 0; call < calls_; ++call) {
      Tally all;
      for (std::int64_t tile = 0; tile < tiles_; ++tile) {
        const Tally& one = tallies_[static_cast<std::size_t>(call * tiles_ + tile)];
        all = {all.bad + one.bad,
               all.solved + one.solved,
               all.discarded + one.discarded,
               all.unconverged + one.unconverged,
               std::max(all.iterations, one.iterations),
               all.row_iterations + one.row_iterations,
               std::max(all.adjoint, one.adjoint),
               std::max(all.left_over, one.left_over)};
      }
      *count(kNonfiniteRows, call) = all.bad;
      *count(kSkipped, call) = tiles_ > 0 && all.solved == 0 ? 1 : 0;
      *count(kIterations, call) = all.iterations;
      *count(kAdjointIterations, call) = all.adjoint;
      *count(kRowIterations, call) = all.row_iterations;
      *count(kDiscardedRows, call) = all.discarded;
      *count(kUnconvergedRows, call) = all.unconverged;
      data<float>(residuals_)[call] = std::sqrt(all.left_over);
    }
  }

  Tally solve(std::int64_t piece, std::int64_t first, std::int64_t call) {
    float* const x = data<float>(scratch_) + piece * 3 * dim_ * kNode;
    float *const r = x + dim_ * kNode, *const p = r + dim_ * kNode;
    const std::int64_t width = std::min<std::int64_t>(kLanes, rows_ - first);
    const PlaneRows entry{data<float>(forward_results_["cache"]) + first * dim_, rows_ * dim_};
    StopRule rule = rule_;
    if (*count(kGateEvaluations, call) == 0) rule.gate_tolerance = 0;
    float whole[kLanes], sums[kLanes];
    take(rows_in(field_, first, call), width, dim_, p);
    right_side(graph(), dim_, p, r, whole);
    std::copy_n(whole, kLanes, sums);
    if (rule.gate_tolerance > 0) {
      take(entry, width, dim_, p);
      residual(graph(), dim_, p, r, x, sums);
    }
    RowState rows[kLanes];
    begin_rows(rule, whole, sums, rows, x, r, p);
    iterate<1>(rule, rows, x, r, p);
    for (std::int64_t l = 0; l < width; ++l) {  // a row that is not finite leaves the cache alone
      put(x, rows[l].bad, l, dim_, rows_in(forward_results_["x"], first, call));
      if (!rows[l].bad) put(x, false, l, dim_, entry);
    }
    return tally(rule, rows, width);
  }

  static Tally tally(const StopRule& rule, const RowState* rows, std::int64_t width) {
    Tally all;
    for (std::int64_t l = 0; l < width; ++l) {
      all.bad += rows[l].bad ? 1 : 0;
      all.solved += rows[l].skipped ? 0 : 1;
      all.discarded += rows[l].discarded ? 1 : 0;
      all.unconverged += is_unconverged(rows[l], rule) ? 1 : 0;
      all.iterations = std::max(all.iterations, rows[l].iterations);
      all.row_iterations += rows[l].iterations;
      if (!rows[l].bad) all.left_over = std::max(all.left_over, left_over(rows[l]));
    }
    return all;
  }

  // On entry x holds the residual of the cached solution and p that solution, where there is a gate.
  void begin_rows(const StopRule& rule, const float* whole, const float* from_entry, RowState* rows, float* x, float* r,
                  float* p) const {
    bool keeps[kLanes], warm[kLanes];
    for (int l = 0; l < kLanes; ++l) {
      warm[l] = begin(rows[l], rule, whole[l], from_entry[l]) == Start::kEntry;
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

  // One of (I + sign * i dt/2 H) x = b.
  template <int kSign>
  void iterate(const StopRule& rule, RowState* rows, float* x, float* r, float* p) const {
    for (;;) {
      float lengths[kLanes], sums[kLanes], shares[kLanes] = {};
      bool any = false;
      for (int l = 0; l < kLanes; ++l) {
        lengths[l] = rows[l].length;
        any = any || rows[l].active();
      }
      if (!any) return;
      step<kSign>(graph(), dim_, lengths, p, x, r, sums);
      for (int l = 0; l < kLanes; ++l)
        if (rows[l].active()) shares[l] = go_on(rows[l], rule, sums[l]);
      turn(dim_, shares, r, p);
    }
  }

  // A^H z = g from zero; the field's gradient is A z (C06). Returns how many iterations it took.
  std::int32_t solve_adjoint(std::int64_t piece, std::int64_t first, std::int64_t call) {
    float* const z = data<float>(scratch_) + piece * 3 * dim_ * kNode;
    float *const r = z + dim_ * kNode, *const p = r + dim_ * kNode;
    const std::int64_t width = std::min<std::int64_t>(kLanes, rows_ - first);
    StopRule rule = rule_;
    rule.gate_tolerance = 0;
    float whole[kLanes];
    take(rows_in(given_gradient_, first, call), width, dim_, r);
    squares(dim_, r, whole);
    RowState rows[kLanes];
    begin_rows(rule, whole, whole, rows, z, r, p);
    iterate<-1>(rule, rows, z, r, p);
    product(graph(), dim_, z, r);
    std::int32_t iterations = 0;
    for (std::int64_t l = 0; l < width; ++l) {
      put(r, rows[l].bad, l, dim_, rows_in(results_["grad_field"], first, call));
      put(z, rows[l].bad, l, dim_, rows_in(z_, first, call));
      iterations = std::max(iterations, rows[l].iterations);
    }
    const PlaneRows field = rows_in(field_, first, call), x = rows_in(forward_results_["x"], first, call),
                    y = rows_in(y_, first, call);
    for (std::int64_t i = 0; i < width * dim_; ++i) {
      y.re[i] = x.re[x.apart + i] + field.re[field.apart + i];
      y.re[y.apart + i] = -(x.re[i] + field.re[i]);
    }
    return iterations;
  }

  bool backward_;
  std::int64_t calls_, rows_, dim_;
  FoldedGraph graph_;
  StopRule rule_;
  at::Tensor field_, given_, given_entry_, keys_;
  bool keyed_;
  NamedTensors forward_results_, results_;  // the advanced cache and its entry among the former
  std::int64_t tiles_;
  Pieces pieces_;
  at::Tensor scratch_;  // [pieces, 3, dim, 16]: x, r and p
  std::vector<Tally> tallies_;
  at::Tensor counts_, residuals_;                        // [kCounts, calls], [calls]
  at::Tensor given_gradient_, z_, y_, product_, nodes_;  // the factors: [2 * calls * rows, dim]
  EdgeFactors factors_;
};

}  // namespace

std::unique_ptr<Runnable> make_cpu(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<CpuLazyGate>(inputs, setting);
}

}  // namespace twinbench::sem::lazy_gate
