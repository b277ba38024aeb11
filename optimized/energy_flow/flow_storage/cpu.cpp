// energy_flow.flow_storage, optimized on the CPU: slots in pieces, hidden states behind their flow's other fields.
#include "optimized/common/rows.h"
#include "optimized/energy_flow/flow_storage/stored.h"

namespace twinbench::energy_flow::flow_storage {
namespace {

TWINBENCH_CPU_CLONES void store_bits(const float* __restrict from, std::uint16_t* __restrict to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = kernels::bf16_bits(from[i]);
}

class CpuStored final : public Stored {
 public:
  CpuStored(const NamedTensors& inputs, const Setting& setting)
      : Stored(inputs, setting),
        pieces_(Pieces::of(step_.extents.capacity(), grain(step_.extents.layers * step_.extents.hidden + 10),
                           4 * at::get_num_threads(), 1)) {}

 private:
  void store(const Step& a) override {
    pieces_.each([&](std::int64_t, std::int64_t begin, std::int64_t end) {
      const std::int64_t width = a.extents.hidden;
      for (std::int64_t slot = begin; slot < end; ++slot) {
        if (!store_slot(a, slot)) continue;
        for (std::int64_t layer = 0; layer < a.extents.layers; ++layer) {
          const std::int64_t at = (layer * a.extents.capacity() + slot) * width;
          if (a.storage.hidden.bf16)
            store_bits(a.hidden + at, a.storage.hidden.bf16 + at, width);
          else
            std::copy_n(a.hidden + at, width, a.storage.hidden.plain + at);
        }
      }
    });
  }

  const Pieces pieces_;
};

}  // namespace

std::unique_ptr<Runnable> make_cpu(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<CpuStored>(inputs, setting);
}

}  // namespace twinbench::energy_flow::flow_storage
