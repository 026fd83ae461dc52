#pragma once
// Mathematical settings of an adapter_config.json, as peft 0.21 reads them.

#include "core/base.h"

namespace model {

inline constexpr const char* kAdapterConfigFile = "adapter_config.json";

/// Modules have transformers' names, such as "model.layers.0.self_attn.q_proj". Not thread safe.
class AdapterRules {
 public:
  /// Parses the content of adapter_config.json. Throws Error{bad_data} for text that is not JSON;
  /// Error{bad_config} that names the key: for adapters other than LoRA, for unsupported variants
  /// (use_dora, init_lora_weights of pissa, ...), for unknown keys with a value, and for more than
  /// 1,000 regular expressions.
  AdapterRules(std::string_view json, const std::string& origin);
  ~AdapterRules();
  AdapterRules(AdapterRules&&) noexcept;

  /// Returns whether target_modules, exclude_modules, modules_to_save and layers_to_transform give
  /// the module a term. `linear`: whether "all-linear" does. This function and the next two throw
  /// Error{bad_config} if the regular expressions need too many steps.
  bool targets(const std::string& module, bool linear) const;
  std::int64_t rank(const std::string& module) const;  ///< r, or the value of rank_pattern
  double scale(const std::string& module) const;       ///< s
  /// Returns whether the configuration selects modules.
  bool says_targets() const;
  /// Returns modules_to_save. An entry selects all modules whose names end with it.
  const std::vector<std::string>& saved() const;
  /// Return what ensure_weight_tying means for a model whose head is its embedding: both get the
  /// embedding's term, or its tensor of modules_to_save.
  bool ties_terms() const;
  bool ties_saved() const;
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

}  // namespace model
