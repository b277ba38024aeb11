// What loops and kernels of the text encoder (C18) take, between its products and its attention. All matrices are
// contiguous: `rows` tokens, on the CPU those of all texts without padding, on a card max_length of each text, so that
// no count need be known to the host; what lies past a text's end there has no gradient. No CUDA headers.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/common/arguments.h"
#include "kernels/common/layer_norm.h"
#include "kernels/common/math.h"
#include "kernels/energy_flow/common/dropout.h"

namespace twinbench::energy_flow {

// Tokens and where their texts lie.
struct TokenRows {
  const std::int32_t *id = nullptr, *place = nullptr;          // [rows]: in the vocabulary, in the text
  const std::int32_t *text = nullptr;                          // [rows]: whose it is
  const std::int32_t *first_row = nullptr, *length = nullptr;  // [texts]
};

// x = embedding[id] + position[place].
template <class Real>
struct EmbedArguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  std::int64_t rows = 0, width = 0;
  TokenRows tokens = {};
  const Real *embedding = nullptr, *position = nullptr;
  kernels::Operands<Real> out = {};
};

// Zeros past the end of every text, where attention writes nothing.
struct ClearArguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  std::int64_t rows = 0, width = 0;
  TokenRows tokens = {};
  float *values = nullptr;  // [rows, width]
};

// What one element of a layer does with its product and its bias.
enum class EncoderStep {
  kBias,      // out = product + bias
  kGelu,      // out = dropped GELU(product + bias)
  kTanh,      // out = tanh(product + bias)
  kGeluBack,  // out = dropped gradient * GELU'(product + bias)
  kTanhBack,  // out = gradient * (1 - value^2)
};
template <class Real>
struct ElementArguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  std::int64_t rows = 0, width = 0;
  EncoderStep step = EncoderStep::kBias;
  const Real *product = nullptr, *bias = nullptr;  // [rows, width]; of kTanhBack the value; [width]
  kernels::StridedRows<Real> gradient = {};        // [rows, width]
  Dropout<Real> dropout = {};                      // of kGelu and kGeluBack: rows are samples
  kernels::Operands<Real> out = {};                // may be the product
};
template <class Real>
TWINBENCH_HOST_DEVICE Real encoder_element(EncoderStep step, Real product, Real bias, Real gradient) {
  switch (step) {
    case EncoderStep::kBias: return product + bias;
    case EncoderStep::kGelu: return kernels::gelu(product + bias);
    case EncoderStep::kTanh: return kernels::tanh(product + bias);
    case EncoderStep::kGeluBack: return gradient * kernels::gelu_derivative(product + bias);
    case EncoderStep::kTanhBack: break;
  }
  return gradient * kernels::tanh_derivative_from_output(product);
}

// out = LN(x + dropped(product + bias)), row by row, and its way back. Without a product: LN(x).
template <class Real>
struct ResidualNorm {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  std::int64_t rows = 0, width = 0;
  const Real *x = nullptr, *product = nullptr, *bias = nullptr, *gain = nullptr, *shift = nullptr;
  kernels::Operands<Real> out = {};
  TokenRows tokens = {};  // of the rows
  Dropout<Real> dropout = {};
  // Backward only, else null.
  Real *normal = nullptr, *inverse = nullptr;                              // [rows, width], [rows]
  const Real *gradient = nullptr, *other_gradient = nullptr;               // of out: their sum; the second may be null
  Real *grad_sum = nullptr;                                                // of what is normalised
  kernels::Operands<Real> grad_product = {};                               // plain: null where it is grad_sum
  Real *grad_bias = nullptr, *grad_gain = nullptr, *grad_shift = nullptr;  // [width]; without a product no bias

  TWINBENCH_HOST_DEVICE Real kept(Real value, std::int64_t row, std::int64_t column) const {
    return dropout.on ? dropout.kept(value, tokens.text[row], tokens.place[row] * width + column) : value;
  }
  TWINBENCH_HOST_DEVICE Real summand(std::int64_t row, std::int64_t column) const {
    const std::int64_t at = row * width + column;
    return product ? x[at] + kept(product[at] + bias[column], row, column) : x[at];
  }
};

// out[text] = mean over its tokens of x; back: grad[token] = gradient[text] / length.
template <class Real>
struct MeanArguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  std::int64_t rows = 0, texts = 0, width = 0;
  TokenRows tokens = {};
  const Real *x = nullptr;           // [rows, width]
  kernels::Operands<Real> out = {};  // [texts, width]
  const Real *gradient = nullptr;    // [texts, width], backward
  Real *grad_x = nullptr;            // [rows, width]
};

// sums[i] = sum of first[row] + second[row] over the tokens whose entry is i, in ascending order: the gradient of a
// table of which rows were taken. On a card the tokens are sorted by entry first: order [rows] holds those of entry i
// from end[i - 1] to end[i], the first from 0.
template <class Real>
struct TableGradient {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  std::int64_t rows = 0, texts = 0, entries = 0, width = 0;
  TokenRows tokens = {};
  const std::int32_t *entry = nullptr;  // [rows]: the tokens' id or place
  const Real *first = nullptr, *second = nullptr;
  Real *sums = nullptr;                           // [entries, width]
  std::int32_t *order = nullptr, *end = nullptr;  // [rows], [entries]: of a card's ids
};

TWINBENCH_HOST_DEVICE bool is_of_text(const TokenRows &tokens, std::int64_t row) {
  return tokens.place[row] < tokens.length[tokens.text[row]];
}

}  // namespace twinbench::energy_flow
