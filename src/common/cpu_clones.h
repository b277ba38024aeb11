// TWINBENCH_CPU_CLONES: compiles a hot CPU loop once per instruction set (AVX-512, AVX2, plain) and picks at run time.
//
// Put it on a *non-template, non-inline function with external or internal linkage* whose loops call the branch-free
// functions of math.h (they are forced inline, so each clone vectorises them at its own width):
//
//   TWINBENCH_CPU_CLONES void gelu_rows(const float* __restrict x, float* __restrict y, std::int64_t n) {
//     for (std::int64_t i = 0; i < n; ++i) y[i] = gelu(x[i]);
//   }
//
// A lambda inside such a function is NOT cloned (it has the plain target): keep the loop in the function's own body.
// Compile with -O3 -ffp-contract=off -fno-math-errno -fno-trapping-math (neither of the last two changes a value;
// without them GCC keeps square roots and some selections scalar). All clones then give the same bits.
#pragma once

// Sanitizers instrument the ifunc resolver that runs before they are initialised; nvcc and clang lack the mechanism.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(TWINBENCH_NO_CPU_CLONES) || \
    defined(__CUDACC__) || defined(__clang__) || !defined(__GNUC__) || !defined(__x86_64__)
#define TWINBENCH_CPU_CLONES
#else
#define TWINBENCH_CPU_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
