#pragma once
// LoRA adapters in peft's format: a folder with adapter_config.json and adapter_model.safetensors,
// whose low-rank terms are added to a model's matrices.
//
// A matrix W (out, in) becomes W + s B A with A (r, in), B (out, r) and s = lora_alpha / r (Hu et
// al. 2021, section 4.1), or lora_alpha / sqrt(r) with use_rslora (Kalajdzievski 2023).

#include "model/adapter_rules.h"
#include "model/weights.h"

namespace model {

inline constexpr const char* kAdapterWeightsFile = "adapter_model.safetensors";

/// Returns s B A as float32, (out, in). Loading reproduces the trained term bit for bit.
torch::Tensor low_rank_term(const torch::Tensor& a, const torch::Tensor& b, double scale);

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
    std::string whole = {};      ///< tensor that replaces the piece (modules_to_save); empty: none
    std::string base = {};       ///< tensor that replaces the model's; empty: none
    std::string a = {}, b = {};  ///< tensors; empty: no term
    bool embedding = false;      ///< the term is (B A)^T, with a row for each token
    std::int64_t rank = 0;
    double scale = 0;
    double factor = 1;  ///< of the weight in the model's files
  };
  /// Returns whether the adapter gives the embedding and the head of a model that ties them a
  /// change each. The model must then be read with Config::untied.
  bool unties(const Config& config) const;
  /// Returns the changes of each weight of `weights`, in order. Throws Error{bad_data} that names a
  /// tensor which is missing, belongs to no weight, or has the wrong shape.
  std::vector<std::vector<Change>> changes(
      const Config& config, const StoredWeights& weights) const;
  /// Applies the changes in place to a float32 weight as read from the model's files. Reports
  /// values that are not finite.
  void apply(const std::vector<Change>& changes, const torch::Tensor& weight,
      const FaultFound& found) const;

  const std::string& folder() const { return folder_; }

 private:
  std::set<std::string> saved_modules(const std::vector<std::string>& modules) const;
  void complete_tied(Change& embedding, Change& head) const;
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
void save_adapter(
    const std::string& folder, const AdapterFacts& facts, const std::vector<AdapterTerm>& terms);

/// Lists the option --adapter of a program that loads a model.
void adapter_field(core::FieldList& f, std::string& adapter);

/// Returns the base model of an adapter's folder, such as "org/model"; empty if unknown or
/// unreadable. Never throws.
std::string adapter_base(const std::string& folder);

}  // namespace model
