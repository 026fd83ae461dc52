#pragma once
// LoRA adapters in peft's format: a folder with adapter_config.json and adapter_model.safetensors,
// whose low-rank terms are added to a model's matrices.
//
// A matrix W (out, in) becomes W + s B A with A (r, in), B (out, r) and s = lora_alpha / r (Hu et
// al. 2021, section 4.1), or lora_alpha / sqrt(r) with use_rslora (Kalajdzievski 2023).

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/options.h"
#include "model/families/family.h"
#include "model/model_config.h"
#include "model/safetensors.h"
#include "model/weights.h"
#include "nn/base/torch.h"

namespace model {

inline constexpr const char* kAdapterConfigFile = "adapter_config.json";
inline constexpr const char* kAdapterWeightsFile = "adapter_model.safetensors";

/// Returns s B A as float32, (out, in). Loading reproduces the trained term bit for bit.
torch::Tensor low_rank_term(const torch::Tensor& a, const torch::Tensor& b, double scale);

/// Mathematical settings of adapter_config.json. Modules have transformers' names, such as
/// "model.layers.0.self_attn.q_proj".
class AdapterRules {
 public:
  /// Throws Error{bad_config} that names the key: for adapters other than LoRA, for unsupported
  /// variants (use_dora, init_lora_weights of pissa, ...), and for unknown keys with a value.
  AdapterRules(const core::Json& config, const std::string& origin);
  ~AdapterRules();
  AdapterRules(AdapterRules&&) noexcept;

  /// Returns whether target_modules, exclude_modules and layers_to_transform select the module.
  /// `linear`: whether "all-linear" selects it.
  bool targets(const std::string& module, bool linear) const;
  /// Returns whether the configuration selects modules.
  bool says_targets() const;
  std::int64_t rank(const std::string& module) const;  ///< r, or the value of rank_pattern
  double scale(const std::string& module) const;       ///< s
  /// Returns the base model, such as "org/model"; empty: unknown.
  const std::string& base() const { return base_; }

 private:
  struct Choice;
  std::unique_ptr<Choice> choice_;
  std::int64_t rank_;
  double alpha_;
  bool root_;
  std::string base_;
};

/// An open adapter. Its tensors are read when a model uses them.
class Adapter {
 public:
  /// Opens a folder. Throws Error{no_input} if it contains no adapter, and the errors of
  /// AdapterRules and SafetensorsReader.
  explicit Adapter(const std::string& folder);
  /// Opens terms in a file with other tensors; the terms' names begin with `prefix`. `rules` has
  /// the content of adapter_config.json. Throws as the other constructor, with the file's name.
  Adapter(const core::Json& rules, const std::string& file, std::string prefix);

  /// A change to rows of a weight.
  struct Change {
    Piece piece;
    std::string whole;  ///< tensor that replaces the piece (modules_to_save); empty: none
    std::string a, b;   ///< tensors; empty: no term
    bool embedding;     ///< the term is (B A)^T, with a row for each token
    double scale;
    double factor;  ///< of the weight in the model's files
  };
  /// Returns the changes of each weight of `weights`, in order. Throws Error{bad_data} that names a
  /// tensor which is missing, belongs to no weight, or has the wrong shape.
  std::vector<std::vector<Change>> changes(const Config& config,
                                           const StoredWeights& weights) const;
  /// Applies the changes in place to a float32 weight as read from the model's files. Reports
  /// values that are not finite.
  void apply(const std::vector<Change>& changes, const torch::Tensor& weight,
             const FaultFound& found) const;

  const std::string& folder() const { return folder_; }

 private:
  torch::Tensor read(const std::string& tensor, const FaultFound& found) const;

  std::string folder_;
  AdapterRules rules_;
  SafetensorsReader file_;
  std::string prefix_;  ///< of its tensors
  bool alone_ = true;   ///< the file contains nothing else
};

/// A low-rank term and its module.
struct AdapterTerm {
  std::string module;  ///< "model.layers.0.self_attn.q_proj"
  torch::Tensor a, b;
};

/// Facts that save_adapter() writes beside the terms.
struct AdapterFacts {
  std::int64_t rank;
  double alpha;
  std::vector<std::string> targets;  ///< of target_modules
  bool transposed;                   ///< the model's matrices are (in, out): fan_in_fan_out
  std::string base;                  ///< base_model_name_or_path
};

/// Writes adapter_config.json, then adapter_model.safetensors, each atomically, in a form that
/// peft.PeftModel.from_pretrained and Adapter read. Throws Error{cannot_create}, Error{io}.
void save_adapter(const std::string& folder, const AdapterFacts& facts,
                  const std::vector<AdapterTerm>& terms);

/// Lists the option --adapter of a program that loads a model.
void adapter_field(core::FieldList& f, std::string& adapter);

/// Returns the base model of an adapter's folder, such as "org/model"; empty if unknown or
/// unreadable. Never throws.
std::string adapter_base(const std::string& folder);

}  // namespace model
