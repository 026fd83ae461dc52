#pragma once
// Includes the parts of LibTorch that the project uses: tensors, gradients, modules, threads.
// torch/torch.h would also include all layers, optimisers and data loaders, whose templates double
// the compile time of each file. Gives the types that most files of nn use short names there.

#include <ATen/Parallel.h>
#include <torch/autograd.h>
#include <torch/cuda.h>
#include <torch/nn/init.h>
#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

namespace nn {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

}  // namespace nn
