#pragma once
// Transformers families that Tessera supports: conversions between config.json and options, and the
// location of each weight in the files.
//
// A weight consists of one tensor of the file or of several concatenated by rows: Llama's q_proj,
// k_proj and v_proj are the rows of c_attn. To add a family, describe its class in families.json,
// list its keys in a file beside gpt2.cpp and add its line in family.cpp.

#include "model/families/config_keys.h"
#include "nn/base/torch.h"

namespace model {

/// Factor applied to the numbers of a module when they are read.
struct WeightFactor {
  std::string_view ours;  ///< as in ClassRow::modules
  double factor;
};

/// Reads the options that determine the model's function and the dropouts of training, or writes
/// them, except for the keys common to all families. `options` begins without a scaled embedding,
/// and is a copy if it is written. Throws Error{bad_config} for a key that is missing, wrong or
/// unsupported.
using FamilyKeys = void(const ConfigPairs& pairs, nn::ModelOptions& options, const ClassRow& row);
/// Returns the factors for a config.json, whose options describe the weights after multiplication.
using FamilyFactors = std::vector<WeightFactor>(const ConfigKeys& keys);

struct Family {
  std::string_view type;  ///< "model_type"
  FamilyKeys* keys;
  FamilyFactors* factors = nullptr;  ///< null: no factors. Files written with keys() need none
  const ClassRow& row = class_row(type);
};

/// Returns the family with this model_type. Throws Error{bad_config} that names it and the known
/// ones.
const Family& family_named(const std::string& type, const std::string& origin);
/// Returns the family `preferred` if it supports the options, else the first that does; null: none.
const Family* family_of(const nn::ModelOptions& options, const std::string& preferred = {});

/// Returns all model_types.
std::vector<std::string> family_names();
/// Returns why the family does not support the options, such as "positions is learned, not rope";
/// empty if it does: then its class in transformers computes the model from family_config().
std::string unlike(const Family& family, const nn::ModelOptions& options);
/// Returns a note that no family supports the options, with the nearest one and why; empty: some
/// family does, or the architecture is not that of any.
std::string without_family(const nn::ModelOptions& options);

/// Returns the complete config.json. `end_of_document`: token that ends a text; -1: none.
core::OrderedJson family_config(const Family& family, const nn::ModelOptions& options,
    std::int64_t vocabulary, std::int64_t end_of_document);
/// Returns the options of a config.json, with the dropouts of training, and the size of the
/// vocabulary.
nn::ModelOptions family_options(const Family& family, const core::Json& config,
    const std::string& origin, std::int64_t* vocabulary);

/// Throws Error{bad_config} unless every number is possible for a model. A family's keys() calls it
/// before it computes with width, layers and heads.
void expect_bounded(const nn::ModelOptions& options, const std::string& origin);

/// "hidden_size", "num_hidden_layers" and "num_attention_heads", bounded.
void size_keys(const ConfigPairs& pairs, nn::ModelOptions& options);
/// The width of the feed-forward networks; an absent key, if it may be absent: 4 times that of the
/// model.
void inner_key(const ConfigPairs& pairs, nn::ModelOptions& options, const std::string& key,
    bool required = true);
/// "num_key_value_heads" and "head_dim", after size_keys().
void kv_heads_key(const ConfigPairs& pairs, nn::ModelOptions& options, const ClassRow& row);
void head_width_key(const ConfigPairs& pairs, nn::ModelOptions& options, const ClassRow& row);

/// Rows of a weight that form a tensor of the file.
struct Piece {
  std::string tensor;
  std::int64_t begin, rows;  ///< of the weight
  Layout layout;
  std::int64_t parts = 1;  ///< by_head: heads; by_part: parts
  /// Returns the tensor's shape for a weight of `shape`.
  std::vector<std::int64_t> shape_there(torch::IntArrayRef shape) const;
  /// there() converts rows of the weight to the tensor, here() the tensor to rows; views if
  /// possible.
  torch::Tensor there(const torch::Tensor& rows_here) const;
  torch::Tensor here(const torch::Tensor& tensor) const;
};

/// Returns the factor of a weight by its name in nn::Model.
double factor_of(const std::vector<WeightFactor>& factors, const std::string& weight);

/// Whether a file has a tensor for each expert (RWKV-7: for each token shift) of a layer, or one in
/// which they are stacked.
enum class Stacking { each, stacked };

/// Returns the pieces of a weight by its name in nn::Model, with `rows` rows. Null family: the
/// weight itself.
std::vector<Piece> pieces_of(const Family* family, const nn::ModelOptions& options,
    const std::string& weight, std::int64_t rows, Stacking stacking = Stacking::each);
/// Returns a tensor that the first layer of a file with stacked tensors has; empty: the family has
/// none.
std::string stacked_name(const Family& family);
/// Returns whether a file of the family may contain this tensor, which is no weight.
bool is_buffer(const Family* family, std::string_view tensor);
/// Returns the name of the softmax's matrix, which models with a tied embedding lack.
std::string head_name(const Family& family, const nn::ModelOptions& options);
/// Returns the tensor's name without the family's base.
std::string bare_name(const Family& family, const std::string& tensor);

FamilyKeys gpt2_keys, neox_keys, opt_keys, neo_keys, phi_keys, mamba_keys, mamba2_keys;
FamilyKeys ministral3_keys, qwen2_keys, qwen3_keys, olmo_keys, smollm3_keys, granite_keys,
    phi3_keys;
FamilyKeys qwen3_5_keys;
FamilyKeys gemma1_keys, gemma2_keys, gemma3_keys, mixtral_keys, qwen3_moe_keys, olmoe_keys;
FamilyFactors granite_factors;
/// Common part of the relatives of Llama, and Llama's own: what the row describes of shape, biases,
/// windows and angles. Defaults are written too.
FamilyKeys gated_keys;

}  // namespace model
