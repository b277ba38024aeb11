// The system of a Cayley step behind C04's rotation (sem C06) in fp64, as the inputs say it and without any of the
// variants' code.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "src/sem/common/shifted_system.h"
#include "src/setting.h"

namespace twinbench::sem {

// A x = conj(A) psi' with psi' the rows of input "psi", each element turned by its own share of the row's square.
class RotatedSystem {
 public:
  RotatedSystem(const NamedTensors& inputs, const Setting& setting)
      : system_(inputs, setting.option("dt") / 2, setting.size("dim")),
        dim_(setting.size("dim")),
        rows_(setting.size("rows")) {
    const auto real = [&](const char* name) { return inputs[name].cpu().to(at::kDouble).contiguous(); };
    psi_ = real("psi"), alpha_ = real("alpha");
  }

  const ShiftedSystem& system() const { return system_; }
  std::int64_t rows() const { return rows_; }
  double phase_of(std::int64_t row) const { return phases(row).second; }

  ComplexRow psi(std::int64_t row) const { return row_of(psi_, row); }
  ComplexRow row_of(const at::Tensor& planes, std::int64_t row) const {
    ComplexRow values(static_cast<std::size_t>(dim_));
    const double* const from = planes.const_data_ptr<double>() + row * dim_;
    for (std::int64_t i = 0; i < dim_; ++i) values[static_cast<std::size_t>(i)] = {from[i], from[rows_ * dim_ + i]};
    return values;
  }
  ComplexRow rotated(std::int64_t row) const {
    ComplexRow values = psi(row);
    const auto phase = phases(row).first;
    for (std::size_t i = 0; i < values.size(); ++i) values[i] *= std::polar(1.0, phase[i]);
    return values;
  }
  // ||b - A x|| / ||b|| of a row of x, planes in fp64; none where b is zero or not finite.
  std::optional<double> residual(const at::Tensor& x, std::int64_t row) const {
    const ComplexRow right = system_.operated(rotated(row), -1);
    if (!(norm(right) > 1e-15) || !std::isfinite(norm(right))) return std::nullopt;
    ComplexRow left = system_.operated(row_of(x, row), 1);
    for (std::size_t i = 0; i < left.size(); ++i) left[i] -= right[i];
    return norm(left) / norm(right);
  }

 private:
  std::pair<std::vector<double>, double> phases(std::int64_t row) const {
    const ComplexRow values = psi(row);
    double mean = 0, most = 0;
    for (const auto& value : values) mean += std::norm(value) / static_cast<double>(dim_);
    std::vector<double> phase;
    for (std::size_t i = 0; i < values.size(); ++i) {
      phase.push_back(alpha_.const_data_ptr<double>()[i] * std::norm(values[i]) / (mean + 1e-8));
      most = std::max(most, std::abs(phase.back()));
    }
    return {phase, most};
  }

  ShiftedSystem system_;
  std::int64_t dim_, rows_;
  at::Tensor psi_, alpha_;
};

}  // namespace twinbench::sem
