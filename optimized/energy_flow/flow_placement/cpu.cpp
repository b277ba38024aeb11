// energy_flow.flow_placement, optimized on the CPU: one pass over the rows of the surfaces, coordinates from two tables
// of the set-up. Nothing is allocated and nothing read back after construction.
#include <vector>

#include "optimized/common/rows.h"
#include "optimized/energy_flow/flow_placement/placement.h"

namespace twinbench::energy_flow::flow_placement {
namespace {

constexpr std::int64_t kLeastFlows = 4096;  // of a piece: some 20 us of work
constexpr std::int64_t kMostPieces = 16;

// `count` neighbours of one row of cells, from cell `local` on, which is at x[0].
template <class Real>
TWINBENCH_CPU_CLONES static void place_row(const Real* __restrict x, Real y, Real z, std::int64_t count,
                                           std::int32_t sample, std::int32_t local, std::int64_t uid,
                                           Real* __restrict position, std::int32_t* __restrict samples,
                                           std::int32_t* __restrict locals, std::int64_t* __restrict uids) {
  for (std::int64_t i = 0; i < count; ++i) {
    position[3 * i] = x[i];
    position[3 * i + 1] = y;
    position[3 * i + 2] = z;
  }
  for (std::int64_t i = 0; i < count; ++i) samples[i] = sample;
  for (std::int64_t i = 0; i < count; ++i) locals[i] = local + static_cast<std::int32_t>(i);
  for (std::int64_t i = 0; i < count; ++i) uids[i] = uid + i;
}

template <class Real>
class CpuPlacement final : public Placement<Real> {
 public:
  CpuPlacement(const NamedTensors& inputs, const Setting& setting)
      : Placement<Real>(inputs, setting),
        flows_(Pieces::of(setting.size("samples") * setting.size("placed"), kLeastFlows, kMostPieces, 1)),
        cells_(Pieces::of(setting.size("samples") * setting.size("cells"), kLeastFlows, kMostPieces, 1)) {
    const auto table = [](std::int64_t length) {
      std::vector<Real> values;
      for (std::int32_t i = 0; i < length; ++i) values.push_back(normalized(i, static_cast<std::int32_t>(length) - 1));
      return values;
    };
    x_ = table(setting.size("width")), y_ = table(setting.size("height"));
  }

 private:
  void place(const ForwardArguments<Real>& a) override {
    const std::int64_t placed = a.lattice.placed, width = a.lattice.width;
    const Real z = start_depth(a.lattice.depth);
    flows_.each([&](std::int64_t, std::int64_t begin, std::int64_t end) {
      for (std::int64_t flow = begin, count = 0; flow < end; flow += count) {
        const std::int64_t sample = flow / placed, local = flow % placed, x = local % width;
        count = std::min({end - flow, placed - local, width - x});
        std::copy_n(a.surface + sample * a.lattice.cells() + local, count, a.energy + flow);
        place_row(x_.data() + x, y_[static_cast<std::size_t>(local / width)], z, count,
                  static_cast<std::int32_t>(sample), static_cast<std::int32_t>(local),
                  flow_uid(a.sample_key[sample], static_cast<std::int32_t>(local)), a.position + 3 * flow,
                  a.sample + flow, a.local_id + flow, a.uid + flow);
      }
    });
  }

  void place_back(const BackwardArguments<Real>& a) override {
    const std::int64_t placed = a.lattice.placed, cells = a.lattice.cells();
    cells_.each([&](std::int64_t, std::int64_t begin, std::int64_t end) {
      for (std::int64_t cell = begin, count = 0; cell < end; cell += count) {
        const std::int64_t sample = cell / cells, local = cell % cells;
        count = std::min(end - cell, (local < placed ? placed : cells) - local);
        if (local < placed)
          std::copy_n(a.grad_energy + sample * placed + local, count, a.grad_surface + cell);
        else
          std::fill_n(a.grad_surface + cell, count, Real(0));
      }
    });
  }

  const Pieces flows_, cells_;
  std::vector<Real> x_, y_;
};

}  // namespace

std::unique_ptr<Runnable> make_cpu(const NamedTensors& inputs, const Setting& setting) {
  if (setting.dtype == Dtype::kFp64) return std::make_unique<CpuPlacement<double>>(inputs, setting);
  return std::make_unique<CpuPlacement<float>>(inputs, setting);
}

}  // namespace twinbench::energy_flow::flow_placement
