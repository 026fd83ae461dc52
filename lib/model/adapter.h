#pragma once
// LoRA adapters as peft writes them: a folder with adapter_config.json and
// adapter_model.safetensors, whose low-rank terms are added to the matrices of a model.
//
// A matrix W (out, in) becomes W + s B A with A (r, in), B (out, r) and s = lora_alpha / r
// (Hu et al. 2021, section 4.1), or lora_alpha / sqrt(r) with use_rslora (Kalajdzievski 2023).

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

/// s B A as float32, (out, in). The term that is loaded is the one that was trained, bit for bit.
torch::Tensor low_rank_term(const torch::Tensor& a, const torch::Tensor& b, double scale);

/// What adapter_config.json says of the maths. Modules are named as transformers names them,
/// "model.layers.0.self_attn.q_proj".
class AdapterRules {
 public:
  /// Throws Error{bad_config} naming the key: of another kind of adapter than LoRA, of a variant
  /// that is computed in another way (use_dora, init_lora_weights of pissa, ...), or unknown here
  /// and set.
  AdapterRules(const core::Json& config, const std::string& origin);
  ~AdapterRules();
  AdapterRules(AdapterRules&&) noexcept;

  /// Whether target_modules, exclude_modules and layers_to_transform choose the module. `linear`:
  /// what "all-linear" chooses.
  bool targets(const std::string& module, bool linear) const;
  /// Whether the configuration says which modules are chosen.
  bool says_targets() const;
  std::int64_t rank(const std::string& module) const;  ///< r, or of rank_pattern
  double scale(const std::string& module) const;       ///< s
  /// "org/model"; empty: not said.
  const std::string& base() const { return base_; }

 private:
  struct Choice;
  std::unique_ptr<Choice> choice_;
  std::int64_t rank_;
  double alpha_;
  bool root_;
  std::string base_;
};

/// An open adapter. Its tensors are read when a model gets them.
class Adapter {
 public:
  /// Throws Error{no_input} where `folder` is no adapter's, Error{bad_config} as AdapterRules,
  /// Error{bad_data} as SafetensorsReader.
  explicit Adapter(const std::string& folder);
  /// Of terms that stand in another file of tensors, each behind `prefix`; all others are none of
  /// its own. `rules`: what adapter_config.json would say. Throws as the other, naming the file.
  Adapter(const core::Json& rules, const std::string& file, std::string prefix);

  /// What becomes of rows of a weight.
  struct Change {
    Piece piece;
    std::string whole;  ///< a tensor in the place of the piece (modules_to_save); empty: none
    std::string a, b;   ///< tensors; empty: no term
    bool embedding;     ///< the term is (B A)^T: a row a token
    double scale;
    double factor;  ///< of the weight's numbers in the model's files
  };
  /// Of each weight of `weights`, in its order. Throws Error{bad_data} naming a tensor that belongs
  /// to no weight or does not fit, and one that is missing.
  std::vector<std::vector<Change>> changes(const Config& config,
                                           const StoredWeights& weights) const;
  /// Makes them of a weight as read from the model's files, float32, in place. Tells of values that
  /// are not finite.
  void apply(const std::vector<Change>& changes, const torch::Tensor& weight,
             const FaultFound& found) const;

  const std::string& folder() const { return folder_; }

 private:
  torch::Tensor read(const std::string& tensor, const FaultFound& found) const;

  std::string folder_;
  AdapterRules rules_;
  SafetensorsReader file_;
  std::string prefix_;  ///< of its tensors
  bool alone_ = true;   ///< the file holds nothing else
};

/// A low-rank term by the module that has it.
struct AdapterTerm {
  std::string module;  ///< "model.layers.0.self_attn.q_proj"
  torch::Tensor a, b;
};

/// What save_adapter() writes beside the terms.
struct AdapterFacts {
  std::int64_t rank;
  double alpha;
  std::vector<std::string> targets;  ///< of target_modules
  bool transposed;                   ///< the model's matrices are (in, out): fan_in_fan_out
  std::string base;                  ///< base_model_name_or_path
};

/// Writes adapter_config.json, then adapter_model.safetensors, each whole or not at all, so that
/// peft.PeftModel.from_pretrained and Adapter read them. Throws Error{cannot_create}, Error{io}.
void save_adapter(const std::string& folder, const AdapterFacts& facts,
                  const std::vector<AdapterTerm>& terms);

/// The option of a program that has a model.
void adapter_field(core::FieldList& f, std::string& adapter);

/// "org/model" of an adapter's folder; empty: it says none, or cannot be read. Never throws.
std::string adapter_base(const std::string& folder);

}  // namespace model
