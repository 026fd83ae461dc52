#pragma once
// TESSERA_BOTH declares an inline function that runs on the CPU and inside CUDA kernels.

#ifdef __CUDACC__
#define TESSERA_BOTH __host__ __device__
#else
#define TESSERA_BOTH
#endif
