#pragma once
// A matrix's nearest orthogonal one, nearly and without a decomposition.

#include "nn/base/torch.h"

namespace train {

/// matrix (rows, columns), floating -> the same shape and type: with matrix = U S V^T it is U S'
/// V^T whose singular values S' lie between about 0.7 and 1.2 where S is more than about 1e-3 of
/// the norm. Five steps of the quintic Newton-Schulz iteration (Jordan et al. 2024, "Muon: an
/// optimizer for hidden layers in neural networks"):
///   X = matrix / (|matrix| + 1e-7), Frobenius' norm, transposed where rows > columns
///   A = X X^T;  X = a X + (b A + c A^2) X,  (a, b, c) = (3.4445, -4.7750, 2.0315)
/// A matrix of zeros stays one. Nothing is waited for on a device.
torch::Tensor orthogonalised(const torch::Tensor& matrix);

}  // namespace train
