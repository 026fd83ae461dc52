#pragma once
// The parts of LibTorch that the project uses: tensors, gradients, modules, threads. torch/torch.h
// would also bring every layer, optimiser and data loader of torch, whose templates double what
// each file takes to compile.

#include <ATen/Parallel.h>
#include <torch/autograd.h>
#include <torch/cuda.h>
#include <torch/nn/init.h>
#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>
