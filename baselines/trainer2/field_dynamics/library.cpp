// Library variant of trainer2.field_dynamics: ATen on real numbers, in place, each force computed once.
#include <ATen/ATen.h>

#include "src/component.h"
#include "src/trainer2/common/field_constants.h"

namespace twinbench::trainer2::field_dynamics {
namespace {

class Library final : public Runnable {
 public:
  Library(const NamedTensors& inputs, const Setting& setting)
      : inputs_(inputs), setting_(setting), by_(field_constants(setting)), steps_(setting.size("steps")) {
    equilibrium_ = at::view_as_real(inputs["equilibrium"].resolve_conj()).contiguous();
    Library::reset();
  }

  void reset() override {
    field_ = at::view_as_real(inputs_["field"].resolve_conj()).clone(at::MemoryFormat::Contiguous);
    momentum_ = at::view_as_real(inputs_["momentum"].resolve_conj()).clone(at::MemoryFormat::Contiguous);
    history_ = inputs_["history"].cpu().item<std::int64_t>();
  }

  void run() override {
    std::vector<at::Tensor> moduli, means;
    // What does not depend on the state: the force of row i on real parts, and the spring's pull to the equilibrium.
    at::Tensor constant = at::zeros_like(field_);
    constant.select(4, 0).add_(inputs_["force"].view({1, 1, -1, 1}));
    if (setting_.on("harmonic")) constant.add_(equilibrium_, by_.stiffness);
    const bool dissipative = setting_.on("dissipative");
    at::Tensor force = dissipative ? at::Tensor() : force_of(constant);
    for (std::int64_t step = 0; step < steps_; ++step) {
      if (dissipative) {
        const at::Tensor inside = laplacian().mul_(dissipative_factor(setting_, history_));
        inside.select(4, 0).add_(inputs_["force"].view({1, 1, -1, 1}));
        field_.select(4, 0).add_(inside.select(4, 1), by_.turn);
        field_.select(4, 1).sub_(inside.select(4, 0), by_.turn);
        history_ = std::min(kLongestHistory, history_ + 1);
      } else {
        momentum_.add_(force, by_.half_kick);
        field_.add_(momentum_, by_.drift);
        force = force_of(constant);
        momentum_.add_(force, by_.half_kick);
      }
      moduli.push_back(at::abs(at::view_as_complex(field_)).sum({0, 1, 3}));
      means.push_back(field_.select(4, 0).mean({0, 1, 3}));
    }
    row_modulus_ = at::stack(moduli, 1);
    row_mean_ = at::stack(means, 1);
  }

  NamedTensors outputs() override {
    return {{"field", at::view_as_complex(field_)},
            {"momentum", at::view_as_complex(momentum_)},
            {"history", at::full({1}, history_, field_.options().dtype(at::kLong))},
            {"row_modulus", row_modulus_},
            {"row_mean", row_mean_}};
  }

 private:
  at::Tensor laplacian() const {
    at::Tensor sum = at::roll(field_, {-1}, {0});
    sum.add_(at::roll(field_, {1}, {0})).add_(at::roll(field_, {-1}, {1})).add_(at::roll(field_, {1}, {1}));
    return sum.sub_(field_, 4);
  }
  at::Tensor force_of(const at::Tensor& constant) const {
    at::Tensor force = laplacian().mul_(by_.kinetic).add_(constant);
    return setting_.on("harmonic") ? force.sub_(field_, by_.stiffness) : force;
  }

  NamedTensors inputs_;
  Setting setting_;
  FieldConstants by_;
  std::int64_t steps_, history_ = 0;
  at::Tensor equilibrium_, field_, momentum_, row_modulus_, row_mean_;  // fields [.., 2]: real and imaginary parts
};

}  // namespace

std::unique_ptr<Runnable> make_library(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Library>(inputs, setting);
}

}  // namespace twinbench::trainer2::field_dynamics
