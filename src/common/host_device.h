// Marks a function as callable on the host and on the device, whichever compiler reads it.
#pragma once

#if defined(__CUDACC__)
#define TWINBENCH_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define TWINBENCH_HOST_DEVICE inline __attribute__((always_inline))
#endif
