// The matrix component of the selftest: y = x w, in fp32 or with operands rounded to bf16.
#pragma once

#include "harness/selftest/row_scale.h"

namespace twinbench::selftest {

// How a correct optimized twin adds up: all are right, none gives the baseline's bits.
enum class Summation { kForward, kReversed, kBlocked };

// x fp32 [items, inner], w fp32 [inner, columns]. The baseline is one matrix-vector product a row.
Component project_component(Summation summation);
Setting project_setting(Component& component, std::int64_t items, std::int64_t inner, std::int64_t columns,
                        Dtype dtype);

}  // namespace twinbench::selftest
