// The loops of the text encoder's pass on the CPU.
#include "optimized/energy_flow/common/cpu_text_encoder.h"

#include "kernels/common/rows.h"
#include "optimized/common/rows.h"

namespace twinbench::energy_flow {
namespace {

constexpr std::int64_t kElements = 32768;  // of a row loop that pay for waking a thread

template <class Body>
void over_rows(std::int64_t rows, std::int64_t width, Body body) {
  at::parallel_for(0, rows, grain(width, kElements), body);
}
template <class Body>
void over_columns(std::int64_t rows, std::int64_t width, Body body) {
  at::parallel_for(0, width, std::max<std::int64_t>(64, grain(rows, kElements)), body);
}

template <class Real>
TWINBENCH_CPU_CLONES void embed_rows(const EmbedArguments<Real>& a, std::int64_t begin, std::int64_t end) {
  for (std::int64_t row = begin; row < end; ++row) {
    const Real* __restrict word = a.embedding + a.tokens.id[row] * a.width;
    const Real* __restrict place = a.position + a.tokens.place[row] * a.width;
    Real* __restrict out = a.out.plain + row * a.width;
    for (std::int64_t i = 0; i < a.width; ++i) out[i] = word[i] + place[i];
  }
}

// The step is a constant of the loop, which is vectorised then. out may be the product.
template <EncoderStep step, class Real>
inline __attribute__((always_inline)) void element_rows_of(const ElementArguments<Real>& a, std::int64_t begin,
                                                           std::int64_t end) {
  for (std::int64_t row = begin; row < end; ++row) {
    const Real *product = a.product + row * a.width, *bias = a.bias;
    const Real* gradient = a.gradient.data ? a.gradient.data + row * a.gradient.row_stride : nullptr;
    Real* out = a.out.plain + row * a.width;
#pragma GCC ivdep
    for (std::int64_t i = 0; i < a.width; ++i) {
      const Real b = step == EncoderStep::kTanhBack ? Real(0) : bias[i];
      Real g = 0;
      if (step == EncoderStep::kTanhBack) g = a.gradient.at(row, i);  // given from outside, of any strides
      if (step == EncoderStep::kGeluBack) g = gradient[i];
      out[i] = encoder_element(step, product[i], b, g);
    }
    if ((step == EncoderStep::kGelu || step == EncoderStep::kGeluBack) && a.dropout.on)
      for (std::int64_t i = 0; i < a.width; ++i) out[i] = a.dropout.kept(out[i], row, i);
  }
}
template <class Real>
TWINBENCH_CPU_CLONES void element_rows(const ElementArguments<Real>& a, std::int64_t begin, std::int64_t end) {
  switch (a.step) {
    case EncoderStep::kBias: return element_rows_of<EncoderStep::kBias>(a, begin, end);
    case EncoderStep::kGelu: return element_rows_of<EncoderStep::kGelu>(a, begin, end);
    case EncoderStep::kTanh: return element_rows_of<EncoderStep::kTanh>(a, begin, end);
    case EncoderStep::kGeluBack: return element_rows_of<EncoderStep::kGeluBack>(a, begin, end);
    case EncoderStep::kTanhBack: return element_rows_of<EncoderStep::kTanhBack>(a, begin, end);
  }
}

template <class Real>
TWINBENCH_CPU_CLONES void norm_rows(const ResidualNorm<Real>& a, std::int64_t begin, std::int64_t end) {
  const auto count = static_cast<Real>(a.width);
  for (std::int64_t row = begin; row < end; ++row) {
    const std::int64_t start = row * a.width;
    const Real* __restrict x = a.x + start, * __restrict bias = a.bias;
    const Real* __restrict gain = a.gain, * __restrict shift = a.shift;
    Real* __restrict out = a.out.plain + start;
    if (a.dropout.on || !a.product) {
      for (std::int64_t i = 0; i < a.width; ++i) out[i] = a.summand(row, i);
    } else {
      const Real* __restrict product = a.product + start;
      for (std::int64_t i = 0; i < a.width; ++i) out[i] = x[i] + (product[i] + bias[i]);
    }
    const Real mean = kernels::row_sum<Real>(a.width, [=](std::int64_t i) { return out[i]; }) / count;
    const Real squares = kernels::row_sum<Real>(a.width, [=](std::int64_t i) {
      const Real away = out[i] - mean;
      return away * away;
    });
    const Real inverse = kernels::inverse_deviation(squares / count);
    for (std::int64_t i = 0; i < a.width; ++i) out[i] = kernels::normalized(out[i], mean, inverse);
    if (a.normal) std::copy_n(out, a.width, a.normal + start);
    if (a.inverse) a.inverse[row] = inverse;
    for (std::int64_t i = 0; i < a.width; ++i) out[i] = kernels::scaled(out[i], gain[i], shift[i]);
  }
}

template <class Real>
TWINBENCH_CPU_CLONES void norm_back_rows(const ResidualNorm<Real>& a, std::int64_t begin, std::int64_t end) {
  const auto count = static_cast<Real>(a.width);
  for (std::int64_t row = begin; row < end; ++row) {
    const std::int64_t start = row * a.width;
    const Real* __restrict gradient = a.gradient + start, * __restrict normal = a.normal + start;
    const Real* __restrict gain = a.gain;
    Real* __restrict out = a.grad_sum + start;
    if (a.other_gradient) {
      const Real* __restrict other = a.other_gradient + start;
      for (std::int64_t i = 0; i < a.width; ++i) out[i] = (gradient[i] + other[i]) * gain[i];
    } else {
      for (std::int64_t i = 0; i < a.width; ++i) out[i] = gradient[i] * gain[i];
    }
    const Real mean = kernels::row_sum<Real>(a.width, [=](std::int64_t i) { return out[i]; }) / count;
    const Real mean_normal =
        kernels::row_sum<Real>(a.width, [=](std::int64_t i) { return out[i] * normal[i]; }) / count;
    const Real inverse = a.inverse[row];
    for (std::int64_t i = 0; i < a.width; ++i)
      out[i] = kernels::layer_norm_input_gradient(out[i], mean, normal[i], mean_normal, inverse);
    for (std::int64_t i = 0; a.grad_product.plain && i < a.width; ++i)
      a.grad_product.plain[start + i] = a.kept(out[i], row, i);
  }
}

// Rows in blocks, whose sums are added: thousands one after the other would lose digits.
template <class Real>
TWINBENCH_CPU_CLONES void norm_columns(const ResidualNorm<Real>& a, std::int64_t begin, std::int64_t end) {
  constexpr std::int64_t kColumns = 64, kRows = 64;
  const Real* const product = a.grad_product.plain ? a.grad_product.plain : a.grad_sum;
  for (Real* sums : {a.grad_bias, a.grad_gain, a.grad_shift})
    if (sums) std::fill(sums + begin, sums + end, Real(0));
  for (std::int64_t first = begin; first < end; first += kColumns) {
    const std::int64_t count = std::min(kColumns, end - first);
    for (std::int64_t block = 0; block < a.rows; block += kRows) {
      Real bias[kColumns] = {}, gain[kColumns] = {}, shift[kColumns] = {};
      for (std::int64_t row = block; row < std::min(a.rows, block + kRows); ++row) {
        const std::int64_t start = row * a.width + first;
        const Real* __restrict sum = product + start, * __restrict normal = a.normal + start;
        const Real *gradient = a.gradient + start, *other = a.other_gradient ? a.other_gradient + start : nullptr;
        Real both[kColumns];
        for (std::int64_t i = 0; i < count; ++i) both[i] = gradient[i];
        for (std::int64_t i = 0; other && i < count; ++i) both[i] += other[i];
        for (std::int64_t i = 0; i < count; ++i) {
          bias[i] += sum[i];
          gain[i] += both[i] * normal[i];
          shift[i] += both[i];
        }
      }
      if (a.grad_bias) add_row(bias, a.grad_bias + first, count);
      add_row(gain, a.grad_gain + first, count);
      add_row(shift, a.grad_shift + first, count);
    }
  }
}

template <class Real>
TWINBENCH_CPU_CLONES void mean_texts(const MeanArguments<Real>& a, std::int64_t begin, std::int64_t end) {
  for (std::int64_t text = begin; text < end; ++text) {
    Real* __restrict out = a.out.plain + text * a.width;
    std::fill_n(out, a.width, Real(0));
    const std::int64_t first = a.tokens.first_row[text], length = a.tokens.length[text];
    for (std::int64_t row = first; row < first + length; ++row) add_row(a.x + row * a.width, out, a.width);
    for (std::int64_t i = 0; i < a.width; ++i) out[i] /= static_cast<Real>(length);
  }
}

template <class Real>
TWINBENCH_CPU_CLONES void mean_back_rows(const MeanArguments<Real>& a, std::int64_t begin, std::int64_t end) {
  for (std::int64_t row = begin; row < end; ++row) {
    const std::int64_t text = a.tokens.text[row];
    const auto length = static_cast<Real>(a.tokens.length[text]);
    const Real* __restrict gradient = a.gradient + text * a.width;
    Real* __restrict out = a.grad_x + row * a.width;
    for (std::int64_t i = 0; i < a.width; ++i) out[i] = gradient[i] / length;
  }
}

// Columns [begin, end): a sum belongs to one thread.
template <class Real>
TWINBENCH_CPU_CLONES void table_columns(const TableGradient<Real>& a, std::int64_t begin, std::int64_t end) {
  for (std::int64_t entry = 0; entry < a.entries; ++entry)
    std::fill(a.sums + entry * a.width + begin, a.sums + entry * a.width + end, Real(0));
  for (std::int64_t row = 0; row < a.rows; ++row) {
    const Real* __restrict first = a.first + row * a.width, * __restrict second = a.second + row * a.width;
    Real* __restrict sums = a.sums + a.entry[row] * a.width;
    for (std::int64_t i = begin; i < end; ++i) sums[i] += first[i] + second[i];
  }
}

}  // namespace

template <class Real>
CpuTextEncoder<Real>::CpuTextEncoder(const NamedTensors& inputs, const Setting& setting, const at::Tensor& surface,
                                     const NamedTensors& gradients)
    : TextEncoderPass<Real>(inputs, setting, at::kFloat, surface, gradients),
      attention_(setting.size("batch") * setting.size("heads"), setting.size("max_length"), setting.size("max_length"),
                 setting.size("head_width"), setting.backward()) {
  this->refresh();
}

template <class Real>
void CpuTextEncoder<Real>::embed(const EmbedArguments<Real>& step) {
  over_rows(step.rows, step.width, [&](auto begin, auto end) { embed_rows(step, begin, end); });
}
template <class Real>
void CpuTextEncoder<Real>::elements(const ElementArguments<Real>& step) {
  over_rows(step.rows, step.width, [&](auto begin, auto end) { element_rows(step, begin, end); });
}
template <class Real>
void CpuTextEncoder<Real>::norm(const ResidualNorm<Real>& step) {
  over_rows(step.rows, step.width, [&](auto begin, auto end) { norm_rows(step, begin, end); });
}
template <class Real>
void CpuTextEncoder<Real>::norm_back(const ResidualNorm<Real>& step) {
  over_rows(step.rows, step.width, [&](auto begin, auto end) { norm_back_rows(step, begin, end); });
  over_columns(step.rows, step.width, [&](auto begin, auto end) { norm_columns(step, begin, end); });
}
template <class Real>
void CpuTextEncoder<Real>::mean(const MeanArguments<Real>& step) {
  over_rows(step.texts, step.width * (step.rows / step.texts),
            [&](auto begin, auto end) { mean_texts(step, begin, end); });
}
template <class Real>
void CpuTextEncoder<Real>::mean_back(const MeanArguments<Real>& step) {
  over_rows(step.rows, step.width, [&](auto begin, auto end) { mean_back_rows(step, begin, end); });
}
template <class Real>
void CpuTextEncoder<Real>::column_sums(const at::Tensor& rows, const at::Tensor& sums) {
  sum_columns<Real>(rows, sums);
}
template <class Real>
void CpuTextEncoder<Real>::table_gradient(const TableGradient<Real>& table) {
  over_columns(table.rows + table.entries, table.width,
               [&](auto begin, auto end) { table_columns(table, begin, end); });
}
template <class Real>
void CpuTextEncoder<Real>::round(const Operand& operand) {
  if (operand.rounds()) round_all<Real>(operand.exact, operand.factor);
}

template class CpuTextEncoder<float>;
template class CpuTextEncoder<double>;

}  // namespace twinbench::energy_flow
