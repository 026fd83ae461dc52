#pragma once
// Transformers families that Tessera supports, one table each: conversions between config.json and
// options, and the location of each weight in the files.
//
// A weight consists of one tensor of the file or of several concatenated by rows: Llama's q_proj,
// k_proj and v_proj are the rows of c_attn. To add a family, write its table in a file beside
// gpt2.cpp and add its line in family.cpp.

#include "model/families/config_keys.h"
#include "nn/base/torch.h"

namespace model {

/// Layout of a weight's rows in a tensor of the file.
enum class Layout {
  as_is,
  transposed,  ///< (in, out), as in GPT-2's Conv1D; biases are unchanged
  by_head,     ///< (heads, 3, width) for a weight (3, heads, width): GPT-NeoX
  after_two,   ///< after two unused rows: OPT's positions
  taps,        ///< (width, 1, taps) for a convolution's weight (width, taps)
  by_expert,   ///< (experts, rows, columns) for a weight (experts rows, columns)
};

/// A module or parameter of nn::Model and the file's modules with its weight and bias, rows in this
/// order: one; two halves; or queries, keys and values. "N" represents the layer's number, "E" that
/// of an expert: the rows of one expert follow those of another, each in this order.
struct ModuleNames {
  std::string_view ours;
  std::vector<std::string_view> theirs;
  Layout layout = Layout::as_is;
  /// For experts: the tensor that holds all experts' weights in files that transformers 5 writes
  /// with save_original_format=False; empty: only `theirs`.
  std::string_view stacked = {};
};

/// Factor applied to the numbers of a module when they are read.
struct WeightFactor {
  std::string_view ours;  ///< as in ModuleNames
  double factor;
};

struct Family {
  /// Returns the options. Throws Error{bad_config} for a key that is missing, wrong or unsupported.
  using Options = nn::ModelOptions (*)(const ConfigKeys& keys, const ClassRow& row);
  /// Writes the keys for the options, except those common to all families (family_config).
  using Keys = void (*)(
      const nn::ModelOptions& options, const ClassRow& row, core::OrderedJson& config);

  const ClassRow& row;
  std::string_view base;  ///< prefix of all names except the head's; "model."
  std::vector<ModuleNames> modules;
  /// Suffixes of tensor names that are no weights.
  std::vector<std::string_view> buffers;
  Options options;
  Keys keys;
  /// Returns the factors for a config.json, whose options describe the weights after
  /// multiplication; null: no factors. Files written with keys() need none.
  std::vector<WeightFactor> (*factors)(const ConfigKeys& keys) = nullptr;
  std::string_view type = row.type;  ///< "model_type"
  std::string_view arch = "transformer";
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

/// Throws Error{bad_config} unless every number is possible for a model. A family's options() calls
/// it before it computes with width, layers and heads.
void expect_bounded(const nn::ModelOptions& options, const std::string& origin);

/// Returns, for a family's options(), the width, layers, heads and feed-forward width (key `d_ff`)
/// of a config.json, with an unscaled embedding.
nn::ModelOptions sized(const ConfigKeys& keys, const char* d_ff);
/// Set kv_heads and d_head after sized().
void read_kv_heads(const ConfigKeys& keys, const ClassRow& row, nn::ModelOptions& options);
void read_head_width(const ConfigKeys& keys, const ClassRow& row, nn::ModelOptions& options);

/// Rows of a weight that form a tensor of the file.
struct Piece {
  std::string tensor;
  std::int64_t begin, rows;  ///< of the weight
  Layout layout;
  std::int64_t parts = 1;  ///< by_head: heads; by_expert: experts
  /// Returns the tensor's shape for a weight of `shape`.
  std::vector<std::int64_t> shape_there(torch::IntArrayRef shape) const;
  /// there() converts rows of the weight to the tensor, here() the tensor to rows; views if
  /// possible.
  torch::Tensor there(const torch::Tensor& rows_here) const;
  torch::Tensor here(const torch::Tensor& tensor) const;
};

/// Returns the factor of a weight by its name in nn::Model.
double factor_of(const std::vector<WeightFactor>& factors, const std::string& weight);

/// Whether a file has a tensor per expert, or the experts of a layer stacked in one.
enum class ExpertTensors { each, stacked };

/// Returns the pieces of a weight by its name in nn::Model, with `rows` rows. Null family: the
/// weight itself.
std::vector<Piece> pieces_of(const Family* family, const nn::ModelOptions& options,
    const std::string& weight, std::int64_t rows, ExpertTensors experts = ExpertTensors::each);
/// Returns a tensor that the first layer of a file with stacked experts has; empty: the family has
/// none.
std::string stacked_name(const Family& family);
/// Returns whether a file of the family may contain this tensor, which is no weight.
bool is_buffer(const Family* family, std::string_view tensor);
/// Returns the name of the softmax's matrix, which models with a tied embedding lack.
std::string head_name(const Family& family, const nn::ModelOptions& options);
/// Returns the tensor's name without the family's base.
std::string bare_name(const Family& family, const std::string& tensor);

/// The tables of the families.
const Family& gpt2_family();
std::vector<const Family*> llama_families();
const Family& neox_family();
const Family& phi_family();
const Family& opt_family();
const Family& gpt_neo_family();
std::vector<const Family*> gemma_families();
std::vector<const Family*> expert_families();
const Family& mamba2_family();

}  // namespace model
