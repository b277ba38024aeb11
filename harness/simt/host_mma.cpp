// Tensor-core tiles on the host: fragment layouts of the PTX ISA, products summed in fp32 along k.
#include "harness/simt/host_mma.h"

#include "kernels/common/half_bits.h"

namespace twinbench::kernels::simt {
namespace {

constexpr int kRows = 16, kColumns = 8;

const MmaLane& lane_at(void* const* lanes, int lane) { return *static_cast<const MmaLane*>(lanes[lane]); }

template <int kInner>
void multiply(void* const* lanes, const float (&left)[kRows][kInner], const float (&right)[kInner][kColumns]) {
  for (int lane = 0; lane < kWarpSize; ++lane)
    for (int i = 0; i < 4; ++i) {
      const int row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
      float& sum = lane_at(lanes, lane).sum->of[i];
      for (int k = 0; k < kInner; ++k) sum += left[row][k] * right[k][column];
    }
}

// 16 x 8 x 16 of numbers of two bytes, whose value `value` gives.
void multiply_pairs(void* const* lanes, float (*value)(std::uint16_t)) {
  constexpr int kInner = 16;
  float left[kRows][kInner], right[kInner][kColumns];
  for (int lane = 0; lane < kWarpSize; ++lane) {
    const MmaLane& own = lane_at(lanes, lane);
    const int group = lane / 4, k = lane % 4 * 2;
    for (int half = 0; half < 2; ++half) {  // of a word: the lower half is the smaller k
      const auto part = [half, value](std::uint32_t word) {
        return value(static_cast<std::uint16_t>(half == 0 ? word & 0xffffu : word >> 16));
      };
      for (int i = 0; i < 4; ++i) left[group + i % 2 * 8][k + i / 2 * 8 + half] = part(own.left->of[i]);
      for (int i = 0; i < 2; ++i) right[k + i * 8 + half][group] = part(own.right->of[i]);
    }
  }
  multiply<kInner>(lanes, left, right);
}

}  // namespace

void apply_bf16_product(void* const* lanes) { multiply_pairs(lanes, float_of_bf16_bits); }
void apply_half_product(void* const* lanes) { multiply_pairs(lanes, float_of_half_bits); }

void apply_tf32_product(void* const* lanes) {
  constexpr int kInner = 8;
  float left[kRows][kInner], right[kInner][kColumns];
  const auto value = [](std::uint32_t bits) { return float_of_bits(bits & 0xffffe000u); };
  for (int lane = 0; lane < kWarpSize; ++lane) {
    const MmaLane& own = lane_at(lanes, lane);
    const int group = lane / 4, k = lane % 4;
    for (int i = 0; i < 4; ++i) left[group + i % 2 * 8][k + i / 2 * 4] = value(own.left->of[i]);
    for (int i = 0; i < 2; ++i) right[k + i * 4][group] = value(own.right->of[i]);
  }
  multiply<kInner>(lanes, left, right);
}

void apply_matrix_load(void* const* lanes) {
  for (int lane = 0; lane < kWarpSize; ++lane)
    for (int matrix = 0; matrix < 4; ++matrix)
      static_cast<MatrixLane*>(lanes[lane])->to[matrix] =
          static_cast<const MatrixLane*>(lanes[matrix * 8 + lane / 4])->row[lane % 4];
}

}  // namespace twinbench::kernels::simt
