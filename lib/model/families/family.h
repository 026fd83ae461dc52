#pragma once
// Models of transformers that Tessera has too: a table a family. What its config.json says in
// options, options in its config.json, and where each weight stands in its files.
//
// A weight is one tensor of the file or several, one below the other: Llama's q_proj, k_proj and
// v_proj are the rows of c_attn. Adding a family is its table, in a file beside gpt2.cpp, and its
// line in family.cpp.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"
#include "model/families/config_keys.h"
#include "nn/base/model_options.h"
#include "nn/base/torch.h"

namespace model {

/// How the rows of a weight lie in a tensor of the file.
enum class Layout {
  as_is,
  transposed,  ///< (in, out), as GPT-2's Conv1D; biases as they are
  by_head,     ///< (heads, 3, width), where a weight has (3, heads, width): GPT-NeoX
  after_two,   ///< behind two rows that no token reads: OPT's positions
};

/// A module of nn::Model and those of the file that hold its weight and bias, rows in this order:
/// one; two halves; or queries, keys and values. "N" stands for the number of a layer.
struct ModuleNames {
  std::string_view ours;
  std::vector<std::string_view> theirs;
  Layout layout = Layout::as_is;
};

/// What the numbers of a module in a file are multiplied by when they are read.
struct WeightFactor {
  std::string_view ours;  ///< as ModuleNames has it
  double factor;
};

struct Family {
  std::string_view type;          ///< "model_type"
  std::string_view architecture;  ///< of "architectures"
  std::string_view base;          ///< what every name begins with, but the head's; "model."
  std::vector<ModuleNames> modules;
  /// Ends of the names of tensors that are no weights.
  std::vector<std::string_view> buffers;
  /// Throws Error{bad_config} for a key that is missing, wrong or asks for what is not supported.
  nn::ModelOptions (*options)(const ConfigKeys& keys);
  /// The keys that say what the options do, but those that all families have (common_keys).
  void (*keys)(const nn::ModelOptions& options, core::OrderedJson& config);
  /// Of a config.json: the options are those of the weights after it; null: all are as they stand.
  /// What keys() says needs no factor.
  std::vector<WeightFactor> (*factors)(const ConfigKeys& keys) = nullptr;
};

/// By model_type. Throws Error{bad_config} naming it and those that there are.
const Family& family_named(const std::string& type, const std::string& origin);
/// The one that `preferred` names if it can say what these options do, else the first that can;
/// null: none.
const Family* family_of(const nn::ModelOptions& options, const std::string& preferred = {});

/// All model_types.
std::vector<std::string> family_names();
/// What keeps the options from being written as the family: "positions is learned, not rope", ...;
/// empty: nothing does.
std::string unlike(const Family& family, const nn::ModelOptions& options);

/// The whole config.json. `end_of_document`: ends a text; -1: none.
core::OrderedJson family_config(const Family& family, const nn::ModelOptions& options,
                                std::int64_t vocabulary, std::int64_t end_of_document);
/// What it says: options, with the dropouts of training, and the size of the vocabulary.
nn::ModelOptions family_options(const Family& family, const core::Json& config,
                                const std::string& origin, std::int64_t* vocabulary);

/// Throws Error{bad_config} unless every number is one that a model can have. A family's options()
/// asks for it before it computes anything of width, layers and heads.
void expect_bounded(const nn::ModelOptions& options, const std::string& origin);

/// For a family's options(): of the width, layers, heads and width of the feed-forward networks,
/// whose key is `d_ff`, that a config.json says, with an embedding that is not scaled.
nn::ModelOptions sized(const ConfigKeys& keys, const char* d_ff);

/// Rows of a weight that are a tensor of the file.
struct Piece {
  std::string tensor;
  std::int64_t begin, rows;  ///< of the weight
  Layout layout;
  std::int64_t heads = 1;  ///< by_head
  /// The tensor's shape, of a weight of `shape`.
  std::vector<std::int64_t> shape_there(torch::IntArrayRef shape) const;
  /// The tensor out of its rows of the weight, and back; views where that is possible.
  torch::Tensor there(const torch::Tensor& rows_here) const;
  torch::Tensor here(const torch::Tensor& tensor) const;
};

/// The factor of a weight by its name in nn::Model, of those of its family's config.json.
double factor_of(const std::vector<WeightFactor>& factors, const std::string& weight);

/// Of a weight by its name in nn::Model, with that many rows. Null family: the weight itself.
std::vector<Piece> pieces_of(const Family* family, const nn::ModelOptions& options,
                             const std::string& weight, std::int64_t rows);
/// A tensor that a file of the family may hold and that is no weight.
bool is_buffer(const Family* family, std::string_view tensor);
/// Of the softmax's own matrix, which a model that shares the embedding does not have.
std::string head_name(const Family& family, const nn::ModelOptions& options);
/// `tensor` without the family's base.
std::string bare_name(const Family& family, const std::string& tensor);

/// The tables.
const Family& gpt2_family();
std::vector<const Family*> llama_families();
const Family& neox_family();
const Family& phi_family();
const Family& opt_family();
const Family& gpt_neo_family();
std::vector<const Family*> gemma_families();

}  // namespace model
