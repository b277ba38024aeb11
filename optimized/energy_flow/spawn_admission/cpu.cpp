// energy_flow.spawn_admission, optimized on the CPU: a sample's requests counted in one pass, its children written in
// the next. Nothing is allocated and nothing read back after construction.
#include <algorithm>

#include "optimized/common/rows.h"
#include "optimized/energy_flow/spawn_admission/admitting.h"

namespace twinbench::energy_flow::spawn_admission {
namespace {

TWINBENCH_CPU_CLONES std::int32_t count_requests(const std::uint8_t* __restrict status,
                                                 const std::int32_t* __restrict spawn_count, std::int32_t slots) {
  std::int32_t sum = 0;
  for (std::int32_t slot = 0; slot < slots; ++slot) sum += spawn_requests(status[slot], spawn_count[slot]);
  return sum;
}

// body(parent's slot, first child's slot, children) for every flow of a sample that gets any, in order. Returns the
// sample's requests.
template <class Body>
std::int32_t over_parents(const Extents& e, const Asking& asking, std::int64_t sample, Body body) {
  const std::int64_t row = e.row(sample, 0);
  const std::int32_t created = asking.created[sample], free = free_slots(created, e.slots);
  const std::int32_t total = count_requests(asking.status + row, asking.spawn_count + row, e.slots);
  for (std::int32_t slot = 0, before = 0; before < std::min(total, free); ++slot) {
    const std::int32_t requests = asking.requests(row + slot), children = children_of(free, before, requests);
    if (children > 0) body(slot, created + before, children);
    before += requests;
  }
  return total;
}

template <class Real>
class CpuAdmitting final : public Admitting<Real> {
 public:
  CpuAdmitting(const NamedTensors& inputs, const Setting& setting)
      : Admitting<Real>(inputs, setting),
        samples_(Pieces::of(setting.size("samples"), grain(setting.size("slots")), 4 * at::get_num_threads(), 1)) {}

 private:
  template <class Body>
  void each_sample(Body body) const {
    samples_.each([&](std::int64_t, std::int64_t begin, std::int64_t end) {
      for (std::int64_t sample = begin; sample < end; ++sample) body(sample);
    });
  }

  void admit(const ForwardArguments<Real>& a) override {
    each_sample([&](std::int64_t sample) {
      const Extents& e = a.extents;
      const std::int64_t rows = e.row(sample, 0);
      std::fill_n(a.parent + rows, e.slots, -1);
      std::fill_n(a.born_energy + rows, e.slots, Real(0));
      std::fill_n(a.born_position + 3 * rows, 3 * std::int64_t{e.slots}, Real(0));
      const std::int32_t requests =
          over_parents(e, a.asking, sample, [&](std::int32_t slot, std::int32_t child, std::int32_t children) {
            for (const std::int32_t end = child + children; child < end; ++child) {
              a.parent[rows + child] = slot;
              a.born_energy[rows + child] = a.child_energy[rows + slot];
              std::copy_n(a.position + 3 * (rows + slot), 3, a.born_position + 3 * (rows + child));
            }
          });
      const std::int32_t created = a.asking.created[sample];
      const std::int32_t admitted = children_of(free_slots(created, e.slots), 0, requests);
      a.new_created[sample] = created + admitted;
      a.dropped[sample] = requests - admitted;
    });
  }

  void admit_back(const BackwardArguments<Real>& a) override {
    each_sample([&](std::int64_t sample) {
      const Extents& e = a.extents;
      const std::int64_t rows = e.row(sample, 0);
      std::fill_n(a.grad_child_energy + rows, e.slots, Real(0));
      std::fill_n(a.grad_position + 3 * rows, 3 * std::int64_t{e.slots}, Real(0));
      over_parents(e, a.asking, sample, [&](std::int32_t slot, std::int32_t child, std::int32_t children) {
        for (const std::int32_t end = child + children; child < end; ++child) {
          a.grad_child_energy[rows + slot] += a.grad_born_energy[rows + child];
          for (std::int64_t axis = 0; axis < 3; ++axis)
            a.grad_position[3 * (rows + slot) + axis] += a.grad_born_position[3 * (rows + child) + axis];
        }
      });
    });
  }

  const Pieces samples_;
};

}  // namespace

std::unique_ptr<Runnable> make_cpu(const NamedTensors& inputs, const Setting& setting) {
  if (setting.dtype == Dtype::kFp64) return std::make_unique<CpuAdmitting<double>>(inputs, setting);
  return std::make_unique<CpuAdmitting<float>>(inputs, setting);
}

}  // namespace twinbench::energy_flow::spawn_admission
