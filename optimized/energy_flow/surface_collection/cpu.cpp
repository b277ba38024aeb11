// Optimized energy_flow.surface_collection on the CPU: two passes over a sample's flows, cells' sums in cache.
#include <cmath>

#include "kernels/energy_flow/surface_collection/math.h"
#include "optimized/common/rows.h"
#include "optimized/energy_flow/surface_collection/plan.h"
#include "src/common/cpu_clones.h"

namespace twinbench::energy_flow::surface_collection {
namespace {

// Of one thread's sample: the cells, one more for what is not collected, and a row of flows.
struct Scratch {
  Cell* cells;
  std::int32_t* cell;
  float *weight, *share, *energy;
};

// One sample's entries.
struct Entries {
  const float *energy, *x, *y, *distance;
  const std::int32_t *age, *forward_id;
  const std::uint8_t* status;
  int slots;
};

// The cell of every entry, `none` where nothing is collected, and its weight.
TWINBENCH_CPU_CLONES void find_cells(const Entries& of, int width, int height, std::int32_t forward, std::int32_t none,
                                     std::int32_t* __restrict cell, float* __restrict weight) {
  for (int i = 0; i < of.slots; ++i) {
    const std::int32_t found = cell_along(of.y[i], height) * width + cell_along(of.x[i], width);
    cell[i] = is_collected(of.status[i], of.forward_id[i], forward) ? found : none;
  }
  for (int i = 0; i < of.slots; ++i) weight[i] = weight_of(of.energy[i], of.distance[i], of.age[i]);
}

// share: the cell's largest weight before, the flow's share after. scaled: the cell's inverse scale before, its share
// of the energy in units of the scale after.
TWINBENCH_CPU_CLONES void find_shares(const float* __restrict weight, const float* __restrict energy, int slots,
                                      float* __restrict share, float* __restrict scaled) {
  for (int i = 0; i < slots; ++i) share[i] = share_of(weight[i], share[i]);
  for (int i = 0; i < slots; ++i) scaled[i] = scaled_energy(share[i], energy[i], scaled[i]);
}

class CpuCollection final : public Plan {
 public:
  CpuCollection(const NamedTensors& inputs, const Setting& setting)
      : Plan(inputs, setting),
        pieces_(Pieces::of(arguments_.batch, grain(arguments_.slots + arguments_.cells()), at::get_num_threads(), 1)),
        row_((arguments_.cells() + 1) * static_cast<std::int64_t>(sizeof(Cell)) / 8 +
             2 * std::int64_t{arguments_.slots}),
        scratch_(at::empty({pieces_.number(), row_}, at::kLong)) {
    for (std::int64_t piece = 0; piece < pieces_.number(); ++piece) {
      const Scratch scratch = scratch_of(piece);
      std::fill_n(scratch.cells, arguments_.cells() + 1, kEmpty);
    }
  }

  void run() override {
    pieces_.each([this](std::int64_t piece, std::int64_t begin, std::int64_t end) {
      for (std::int64_t sample = begin; sample < end; ++sample) collect(sample, scratch_of(piece));
    });
  }

 private:
  static constexpr Cell kEmpty{-INFINITY, 0, 0, 0};

  Scratch scratch_of(std::int64_t piece) const {
    Scratch scratch{};
    scratch.cells = reinterpret_cast<Cell*>(data<std::int64_t>(scratch_) + piece * row_);
    scratch.weight = reinterpret_cast<float*>(scratch.cells + arguments_.cells() + 1);
    scratch.share = scratch.weight + arguments_.slots;
    scratch.energy = scratch.share + arguments_.slots;
    scratch.cell = reinterpret_cast<std::int32_t*>(scratch.energy + arguments_.slots);
    return scratch;
  }

  void collect(std::int64_t sample, const Scratch& scratch) const {
    const Arguments& a = arguments_;
    const std::int64_t first = sample * a.slots;
    const float* const at = a.position + 3 * first;
    const Entries entries{
        a.energy + first, at,     at + a.slots, a.distance + first, a.age + first, a.forward_id + first,
        a.status + first, a.slots};
    const std::int32_t none = a.cells();
    find_cells(entries, a.width, a.height, a.forward, none, scratch.cell, scratch.weight);
    for (int i = 0; i < a.slots; ++i) {
      Cell& cell = scratch.cells[scratch.cell[i]];
      cell.largest_weight = std::max(cell.largest_weight, scratch.weight[i]);
      cell.magnitude = std::max(cell.magnitude, magnitude_of(entries.energy[i]));
    }
    for (int i = 0; i < a.slots; ++i) {
      const Cell& cell = scratch.cells[scratch.cell[i]];
      scratch.share[i] = cell.largest_weight;
      scratch.energy[i] = inverse_scale(cell.magnitude);
    }
    find_shares(scratch.weight, entries.energy, a.slots, scratch.share, scratch.energy);
    for (int i = 0; i < a.slots; ++i) {
      Cell& cell = scratch.cells[scratch.cell[i]];
      if (!(cell.largest_weight < INFINITY)) continue;
      cell.shares += units_of(scratch.share[i]);
      cell.energies += units_of(scratch.energy[i]);
    }
    if (a.grad_surface != nullptr)
      differentiate(sample, entries, scratch);
    else
      write(sample, scratch);
    for (int i = 0; i < a.slots; ++i) scratch.cells[scratch.cell[i]] = kEmpty;
  }

  void write(std::int64_t sample, const Scratch& scratch) const {
    const Arguments& a = arguments_;
    float* const surface = a.surface + sample * a.cells();
    std::int32_t* const cells = a.cell + sample * a.slots;
    std::fill_n(surface, a.cells(), 0.0f);
    for (int i = 0; i < a.slots; ++i) {
      const std::int32_t cell = scratch.cell[i];
      cells[i] = cell < a.cells() ? cell : -1;
      if (cell < a.cells()) surface[cell] = mean_energy(scratch.cells[cell]);
    }
  }

  void differentiate(std::int64_t sample, const Entries& entries, const Scratch& scratch) const {
    const Arguments& a = arguments_;
    const float* const gradient = a.grad_surface + sample * a.cells();
    float* const grad_energy = a.grad_energy + sample * a.slots;
    for (int i = 0; i < a.slots; ++i) {
      const std::int32_t place = scratch.cell[i];
      const Cell& cell = scratch.cells[place];
      grad_energy[i] = place == a.cells() ? 0.0f
                                          : energy_gradient(entries.energy[i], scratch.share[i],
                                                            weight_factor(entries.distance[i], entries.age[i]),
                                                            total_share(cell), mean_energy(cell), gradient[place]);
    }
  }

  const Pieces pieces_;
  const std::int64_t row_;  // of a piece's scratch, in words of 8 bytes
  at::Tensor scratch_;      // its cells are empty between runs
};

}  // namespace

std::unique_ptr<Runnable> make_cpu(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<CpuCollection>(inputs, setting);
}

}  // namespace twinbench::energy_flow::surface_collection
