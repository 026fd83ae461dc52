#pragma once
// Decodes NumPy scalars in a pickle, which trainers store among their settings.

#include <optional>

#include "model/pickle/pickle_value.h"

namespace model {

/// Returns the value of scalar(dtype, bytes) for the little-endian types i1 to i8, u1 to u8, b1, f4
/// and f8, as an integer, boolean or real; nullopt for any other call.
std::optional<PickleValue> numpy_scalar(const PickleValue& callee, const PickleValue& arguments);

}  // namespace model
