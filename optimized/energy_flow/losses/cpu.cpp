// Optimized energy_flow.losses on the CPU: each surface is read once, for its loss and its gradient; no operator, no
// allocation.
#include <ATen/Parallel.h>

#include <vector>

#include "optimized/energy_flow/common/surface_differences.h"
#include "optimized/energy_flow/losses/plan.h"

namespace twinbench::energy_flow::losses {
namespace {

constexpr std::int64_t kPiece = 8192;     // values of a partial sum
constexpr std::int64_t kLeastPieces = 8;  // a thread's: about 10 us of work

template <class Real>
class CpuLosses final : public Plan<Real> {
 public:
  CpuLosses(const NamedTensors& inputs, const Setting& setting) : Plan<Real>(inputs, setting) {
    partial_.resize(static_cast<std::size_t>(pieces(this->energy_) + pieces(this->encoder_)));
  }

  void run() override {
    const SurfacePair<Real>&energy = this->energy_, &encoder = this->encoder_;
    const double upstream = this->upstream_ == nullptr ? 0 : static_cast<double>(*this->upstream_);
    const Real energy_factor = gradient_factor<Real>(1, upstream, energy.count),
               encoder_factor = gradient_factor<Real>(this->weight_, upstream, encoder.count);
    const std::int64_t first_encoder = pieces(energy);
    at::parallel_for(0, static_cast<std::int64_t>(partial_.size()), kLeastPieces, [&](auto begin, auto end) {
      for (std::int64_t i = begin; i < end; ++i)
        partial_[static_cast<std::size_t>(i)] =
            i < first_encoder ? piece(energy, i, energy_factor) : piece(encoder, i - first_encoder, encoder_factor);
    });
    double energy_sum = 0, encoder_sum = 0;
    for (std::size_t i = 0; i < partial_.size(); ++i)
      (static_cast<std::int64_t>(i) < first_encoder ? energy_sum : encoder_sum) += partial_[i];
    set_losses(this->places_, energy_sum, energy.count, encoder_sum, encoder.count, this->overlap_.loss(),
               this->weight_);
  }

 private:
  static std::int64_t pieces(const SurfacePair<Real>& of) { return (of.count + kPiece - 1) / kPiece; }
  static double piece(const SurfacePair<Real>& of, std::int64_t index, Real factor) {
    const std::int64_t first = index * kPiece;
    return squared_differences(of.surface + first, of.target + first,
                               of.gradient == nullptr ? nullptr : of.gradient + first, factor,
                               std::min(kPiece, of.count - first));
  }

  std::vector<double> partial_;
};

}  // namespace

std::unique_ptr<Runnable> make_cpu(const NamedTensors& inputs, const Setting& setting) {
  if (setting.dtype == Dtype::kFp64) return std::make_unique<CpuLosses<double>>(inputs, setting);
  return std::make_unique<CpuLosses<float>>(inputs, setting);
}

}  // namespace twinbench::energy_flow::losses
