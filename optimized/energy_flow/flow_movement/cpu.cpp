// energy_flow.flow_movement, optimized on the CPU: tiles of flows, taken apart into planes that fit in the first cache,
// so that the rules run over vectors. Nothing is allocated and nothing read back after construction.
#include "optimized/common/rows.h"
#include "optimized/energy_flow/flow_movement/step.h"

namespace twinbench::energy_flow::flow_movement {
namespace {

constexpr std::int64_t kTile = 128;         // flows
constexpr std::int64_t kLeastFlows = 4096;  // of a piece: some 20 us of work
constexpr std::int64_t kMostPieces = 16;
constexpr std::int64_t kLongRun = 16;  // flows of one sample that are counted as vectors

template <class Real>
struct Tile {
  Real x[kTile], y[kTile], z[kTile], energy[kTile], distance[kTile];
  std::int32_t age[kTile], stopped[kTile], outcome[kTile], status[kTile];
};

// [count, 3] from rows to planes, and back.
template <class Real>
TWINBENCH_CPU_CLONES static void read_rows(const Real* __restrict rows, std::int64_t count, Real* __restrict x,
                                           Real* __restrict y, Real* __restrict z) {
  for (std::int64_t i = 0; i < count; ++i) {
    x[i] = rows[3 * i];
    y[i] = rows[3 * i + 1];
    z[i] = rows[3 * i + 2];
  }
}
template <class Real>
TWINBENCH_CPU_CLONES static void write_rows(const Real* __restrict x, const Real* __restrict y,
                                            const Real* __restrict z, std::int64_t count, Real* __restrict rows) {
  for (std::int64_t i = 0; i < count; ++i) {
    rows[3 * i] = x[i];
    rows[3 * i + 1] = y[i];
    rows[3 * i + 2] = z[i];
  }
}

template <class Real>
TWINBENCH_CPU_CLONES static void move_tile(Rule rule, std::int64_t count, Tile<Real>& t) {
  for (std::int64_t i = 0; i < count; ++i) {
    const Flow<Real> flow = moved(rule, t.stopped[i] != 0, t.x[i], t.y[i], t.z[i], t.energy[i], t.age[i]);
    t.x[i] = flow.x;
    t.y[i] = flow.y;
    t.z[i] = flow.z;
    t.energy[i] = flow.energy;
    t.distance[i] = flow.distance;
    t.age[i] = flow.age;
    t.status[i] = flow.status;
    t.outcome[i] = flow.outcome;
  }
}

// From gradients of the new position and energy to those of raw (in t) and of the position before; see moved_backward.
template <class Real>
TWINBENCH_CPU_CLONES static void move_tile_back(Rule rule, std::int64_t count, Tile<Real>& t, Real* __restrict grad_x,
                                                Real* __restrict grad_y, Real* __restrict grad_z,
                                                const Real* __restrict grad_new_energy,
                                                Real* __restrict grad_next_energy, Real* __restrict grad_energy) {
  for (std::int64_t i = 0; i < count; ++i) {
    const FlowGradients<Real> grad = moved_backward(rule, t.stopped[i] != 0, t.x[i], t.y[i], t.z[i], t.age[i],
                                                    grad_x[i], grad_y[i], grad_z[i], grad_new_energy[i]);
    t.x[i] = grad.raw_x;
    t.y[i] = grad.raw_y;
    t.z[i] = grad.raw_z;
    grad_x[i] = grad.position_x;
    grad_y[i] = grad.position_y;
    grad_z[i] = grad.position_z;
    grad_next_energy[i] = grad.next_energy;
    grad_energy[i] = grad.energy;
  }
}

TWINBENCH_CPU_CLONES void count_run(const std::int32_t* __restrict outcome, std::int64_t count,
                                    std::int32_t* __restrict row) {
  for (std::int32_t column = 0; column < kOutcomes; ++column) {
    std::int32_t sum = 0;
    for (std::int64_t i = 0; i < count; ++i) sum += outcome[i] == column ? 1 : 0;
    row[column] += sum;
  }
}

// Flows of a sample are neighbours most often.
void count_outcomes(const std::int32_t* sample, const std::int32_t* outcome, std::int64_t count, std::int64_t samples,
                    std::int32_t* counts) {
  for (std::int64_t i = 0, end = 0; i < count; i = end) {
    while (end < count && sample[end] == sample[i]) ++end;
    if (!is_sample(sample[i], samples)) continue;
    std::int32_t* const row = counts + std::int64_t{sample[i]} * kOutcomes;
    if (end - i >= kLongRun)
      count_run(outcome + i, end - i, row);
    else
      for (std::int64_t flow = i; flow < end; ++flow) ++row[outcome[flow]];
  }
}

// The rows' values of flows whose sample has stopped come from where they were. 1 in t.stopped for those.
template <class Real>
void take_stopped(const FlowsRead<Real>& read, const Real* energy, std::int64_t first, std::int64_t count,
                  std::int64_t samples, Tile<Real>& t) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t flow = first + i;
    if (!is_sample(read.sample[flow], samples) || !read.stopped[read.sample[flow]]) continue;
    t.stopped[i] = 1;
    t.x[i] = read.position[3 * flow];
    t.y[i] = read.position[3 * flow + 1];
    t.z[i] = read.position[3 * flow + 2];
    if (energy) t.energy[i] = energy[flow];
  }
}

template <class Real>
void load_tile(const FlowsRead<Real>& read, const Real* energy, bool any_stopped, std::int64_t first,
               std::int64_t count, std::int64_t samples, Tile<Real>& t) {
  read_rows(read.raw + 3 * first, count, t.x, t.y, t.z);
  std::copy_n(read.age + first, count, t.age);
  std::fill_n(t.stopped, count, 0);
  if (any_stopped) take_stopped(read, energy, first, count, samples, t);
}

// The flows from `begin` to `end`, and their counts.
template <class Real>
void move_flows(const ForwardArguments<Real>& a, bool any_stopped, std::int64_t begin, std::int64_t end,
                std::int32_t* counts) {
  Tile<Real> t;
  std::fill_n(counts, a.samples * kOutcomes, 0);
  for (std::int64_t first = begin; first < end; first += kTile) {
    const std::int64_t count = std::min(kTile, end - first);
    std::copy_n(a.next_energy + first, count, t.energy);
    load_tile(a.read, a.energy, any_stopped, first, count, a.samples, t);
    move_tile(a.rule, count, t);
    write_rows(t.x, t.y, t.z, count, a.new_position + 3 * first);
    std::copy_n(t.energy, count, a.new_energy + first);
    std::copy_n(t.age, count, a.new_age + first);
    std::copy_n(t.status, count, a.status + first);
    std::copy_n(t.distance, count, a.distance + first);
    count_outcomes(a.read.sample + first, t.outcome, count, a.samples, counts);
  }
}

template <class Real>
void move_flows_back(const BackwardArguments<Real>& a, bool any_stopped, std::int64_t begin, std::int64_t end) {
  Tile<Real> t;
  Real grad_x[kTile], grad_y[kTile], grad_z[kTile];
  for (std::int64_t first = begin; first < end; first += kTile) {
    const std::int64_t count = std::min(kTile, end - first);
    load_tile<Real>(a.read, nullptr, any_stopped, first, count, a.samples, t);
    read_rows(a.grad_new_position + 3 * first, count, grad_x, grad_y, grad_z);
    move_tile_back(a.rule, count, t, grad_x, grad_y, grad_z, a.grad_new_energy + first, a.grad_next_energy + first,
                   a.grad_energy + first);
    write_rows(t.x, t.y, t.z, count, a.grad_raw + 3 * first);
    write_rows(grad_x, grad_y, grad_z, count, a.grad_position + 3 * first);
  }
}

template <class Real>
class CpuStep final : public Step<Real> {
 public:
  CpuStep(const NamedTensors& inputs, const Setting& setting)
      : Step<Real>(inputs, setting),
        pieces_(Pieces::of(setting.size("flows"), kLeastFlows, kMostPieces, kTile)),
        columns_(setting.size("samples") * kOutcomes),
        partial_(this->counters(pieces_.number() * columns_)) {}

 private:
  static bool any_stopped(const FlowsRead<Real>& read, std::int64_t samples) {
    return std::find(read.stopped, read.stopped + samples, true) != read.stopped + samples;
  }

  void move(const ForwardArguments<Real>& a) override {
    if (a.flows == 0) return;
    const bool stopped = any_stopped(a.read, a.samples);
    std::int32_t* const partial = data<std::int32_t>(partial_);
    pieces_.each([&](std::int64_t piece, std::int64_t begin, std::int64_t end) {
      move_flows(a, stopped, begin, end, partial + piece * columns_);
    });
    for (std::int64_t column = 0; column < columns_; ++column) {
      std::int32_t sum = 0;
      for (std::int64_t piece = 0; piece < pieces_.number(); ++piece) sum += partial[piece * columns_ + column];
      a.counts[column] = sum;
    }
  }
  void move_back(const BackwardArguments<Real>& a) override {
    const bool stopped = any_stopped(a.read, a.samples);
    pieces_.each([&](std::int64_t, std::int64_t begin, std::int64_t end) { move_flows_back(a, stopped, begin, end); });
  }

  const Pieces pieces_;
  const std::int64_t columns_;
  at::Tensor partial_;  // [pieces, columns]
};

}  // namespace

std::unique_ptr<Runnable> make_cpu(const NamedTensors& inputs, const Setting& setting) {
  if (setting.dtype == Dtype::kFp64) return std::make_unique<CpuStep<double>>(inputs, setting);
  return std::make_unique<CpuStep<float>>(inputs, setting);
}

}  // namespace twinbench::energy_flow::flow_movement
