#pragma once
// Files of RWKV-LM (github.com/BlinkDL/RWKV-LM): the tensors of an RWKV-7 of width C, in a file of
// torch.save (.pth) or of safetensors. The shapes determine the model; both norms' epsilons are
// fixed.
//
//   emb.weight (V, C); blocks.0.ln0; blocks.N.ln1, ln2; ln_out; head.weight (V, C)
//   blocks.N.att.x_r, x_w, x_k, x_v, x_a, x_g, k_k, k_a (1, 1, C); r_k (heads, C / heads)
//   blocks.N.att.w1 (C, rank), w2 (rank, C), w0 (1, 1, C); a, v (after layer 0) and g (no g0) alike
//   blocks.N.att.receptance, key, value, output (C, C); ln_x (C)
//   blocks.N.ffn.x_k (1, 1, C), key (width, C), value (C, width)

#include "model/folder.h"

namespace model {

/// A file with this tensor is one of RWKV-LM, of any version.
inline constexpr const char* kRwkvEmbedding = "emb.weight";

/// Returns the configuration of a file of RWKV-LM. Maps of a lower rank than nn's mixer has get
/// zeros in `tensors`, which change nothing. Throws Error{bad_data} that names a tensor which is
/// missing, of another number of dimensions or of a higher rank, also for another version than 7,
/// and Error{bad_config} for impossible numbers. `origin` names the file.
Config rwkv_config(TensorMap& tensors, const std::string& origin);

/// Writes the model to `path`: as safetensors if it ends with .safetensors, else as torch.save
/// does. `dtype` as in ExportOptions. A shared embedding is written twice. Throws the errors of
/// in_shape_of() and set_type().
void export_rwkv(const Loaded& loaded, const std::string& dtype, const std::string& path);

}  // namespace model
