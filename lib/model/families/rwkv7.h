#pragma once
// RWKV-7: folders of flash-linear-attention (fla), and files of RWKV-LM.

#include "model/families/family.h"

namespace model {

/// The keys of fla's config.json. fla takes the epsilon of the heads' norms from head_dim and
/// norm_eps, RWKV-LM has fixed epsilons; nn's mixer has that of both for heads of 64 channels.
FamilyKeys rwkv7_keys;

/// Returns the files of RWKV-LM (model/rwkv_file.h), which have no config.json: rwkv7_keys() reads
/// their sizes. family_named() and family_of() do not return this family.
const Family& rwkv_file_family();

}  // namespace model
