#pragma once
// The keys of a config.json of transformers, each with what it means where it is absent or null.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"

namespace model {

/// All throw Error{bad_config} naming origin and key.
class ConfigKeys {
 public:
  ConfigKeys(const core::Json& object, std::string origin);

  const std::string& origin() const { return origin_; }
  bool has(const char* key) const;      ///< there, and not null
  bool is_null(const char* key) const;  ///< there, and null
  double number(const char* key, double otherwise) const;
  std::int64_t whole(const char* key, std::int64_t otherwise) const;
  bool truth(const char* key, bool otherwise) const;
  std::string text(const char* key, const std::string& otherwise) const;
  std::vector<std::string> texts(const char* key) const;  ///< empty: not there
  /// Of [[["a", "b"], 2], ...] "a", "b", "a", "b", ...; empty: not there.
  std::vector<std::string> repeated_texts(const char* key) const;
  std::vector<std::int64_t> wholes(const char* key) const;  ///< empty: not there
  std::vector<double> numbers(const char* key) const;       ///< empty: not there
  ConfigKeys object(const char* key) const;                 ///< empty: not there
  std::int64_t required(const char* key) const;
  /// Nn's name for an activation.
  std::string activation(const char* key, const std::string& otherwise) const;
  /// A switch that changes the model's function and must stand so.
  void expect(const char* key, bool otherwise, bool expected) const;
  [[noreturn]] void unsupported(const char* key, const std::string& value) const;

 private:
  const core::Json& object_;
  std::string origin_;
};

/// transformers' name for an activation of nn's.
std::string their_activation(const std::string& ours);

}  // namespace model
