#pragma once
// Approximates a matrix's nearest orthogonal one without a decomposition.

#include "nn/base/torch.h"

namespace train {

/// Returns U S' V^T for matrix (rows, columns) = U S V^T, floating, in its shape and type: the
/// singular values S' are between about 0.7 and 1.2 where S exceeds about 1e-3 of the norm. Uses
/// five steps of the quintic Newton-Schulz iteration (Jordan et al. 2024, "Muon: an optimizer for
/// hidden layers in neural networks"):
///   X = matrix / (|matrix| + 1e-7), Frobenius' norm, transposed where rows > columns
///   A = X X^T;  X = a X + (b A + c A^2) X,  (a, b, c) = (3.4445, -4.7750, 2.0315)
/// A zero matrix remains zero. Does not synchronise with the device.
torch::Tensor orthogonalised(const torch::Tensor& matrix);

}  // namespace train
