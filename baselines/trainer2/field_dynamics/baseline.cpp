// Baseline of trainer2.field_dynamics: an operator and a temporary a term; every state's force is computed twice.
#include <ATen/ATen.h>

#include "src/component.h"
#include "src/trainer2/common/field_constants.h"

namespace twinbench::trainer2::field_dynamics {
namespace {

class Baseline final : public Runnable {
 public:
  Baseline(const NamedTensors& inputs, const Setting& setting)
      : inputs_(inputs), setting_(setting), by_(field_constants(setting)), steps_(setting.size("steps")) {
    Baseline::reset();
  }

  void reset() override {
    field_ = inputs_["field"].clone(at::MemoryFormat::Contiguous);
    momentum_ = inputs_["momentum"].clone(at::MemoryFormat::Contiguous);
    history_ = inputs_["history"].cpu().item<std::int64_t>();
  }

  void run() override {
    std::vector<at::Tensor> moduli, means;
    kept_.clear();
    for (std::int64_t step = 0; step < steps_; ++step) {
      setting_.on("dissipative") ? dissipative_step() : verlet_step();
      moduli.push_back(at::sum(at::abs(field_), {0, 1, 3}));
      means.push_back(at::mean(at::real(field_), {0, 1, 3}));
      if (setting_.on("energy_diagnosis")) diagnose();
    }
    row_modulus_ = at::stack(moduli, 1);
    row_mean_ = at::stack(means, 1);
    kept_.clear();
  }

  NamedTensors outputs() override {
    return {{"field", field_},
            {"momentum", momentum_},
            {"history", at::full({1}, history_, field_.options().dtype(at::kLong))},
            {"row_modulus", row_modulus_},
            {"row_mean", row_mean_}};
  }

 private:
  at::Tensor laplacian() const {
    const at::Tensor x = at::add(at::roll(field_, {-1}, {0}), at::roll(field_, {1}, {0}));
    const at::Tensor y = at::add(at::roll(field_, {-1}, {1}), at::roll(field_, {1}, {1}));
    return at::sub(at::add(x, y), at::mul(field_, 4));
  }

  // [width, height, dimension, dimension]: the force of row i everywhere.
  at::Tensor everywhere() const {
    return inputs_["force"].view({1, 1, -1, 1}).expand(field_.sizes()).to(field_.scalar_type());
  }

  at::Tensor force() const {
    at::Tensor sum = at::zeros_like(field_);
    sum = at::add(sum, at::mul(laplacian(), by_.kinetic));
    if (setting_.on("harmonic")) sum = at::sub(sum, at::mul(at::sub(field_, inputs_["equilibrium"]), by_.stiffness));
    return at::add(sum, everywhere());
  }

  void verlet_step() {
    const at::Tensor half = at::add(momentum_, at::mul(force(), by_.half_kick));
    field_ = at::add(field_, at::mul(half, by_.drift));
    momentum_ = at::add(half, at::mul(force(), by_.half_kick));
  }

  void dissipative_step() {
    kept_.push_back(field_.clone());
    const at::Tensor inside = at::add(at::mul(laplacian(), dissipative_factor(setting_, history_)), everywhere());
    field_ = at::sub(field_, at::mul(at::mul(inside, c10::complex<double>(0, 1)), by_.turn));
    history_ = std::min(kLongestHistory, history_ + 1);
  }

  // The original's monitor: each of its figures is read by the host at once.
  void diagnose() {
    const auto square = [](const at::Tensor& t) { return at::sum(at::square(at::abs(t))); };
    const auto kinetic = square(momentum_).item<double>(),
               spring = square(field_ - inputs_["equilibrium"]).item<double>();
    const auto slope = at::sum(at::real(at::conj(field_) * laplacian())).item<double>();
    const auto largest = at::max(at::abs(field_)).item<double>(), fastest = at::max(at::abs(momentum_)).item<double>();
    energies_ = {kinetic, spring, slope, largest, fastest, at::sum(at::abs(field_)).item<double>()};
  }

  NamedTensors inputs_;
  Setting setting_;
  FieldConstants by_;
  std::int64_t steps_, history_ = 0;
  at::Tensor field_, momentum_, row_modulus_, row_mean_;
  std::vector<at::Tensor> kept_;  // the dissipative rule's past fields, of which only the number is used
  std::vector<double> energies_;
};

}  // namespace

std::unique_ptr<Runnable> make_baseline(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Baseline>(inputs, setting);
}

}  // namespace twinbench::trainer2::field_dynamics
