#pragma once
// Inline functions that run on the CPU and inside CUDA kernels: TESSERA_BOTH before their result.

#ifdef __CUDACC__
#define TESSERA_BOTH __host__ __device__
#else
#define TESSERA_BOTH
#endif
