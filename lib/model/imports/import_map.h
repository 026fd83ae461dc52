#pragma once
// Checkpoints of other programs' trainers: a map a program, from its options and names to ours.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"
#include "model/pickle/torch_file.h"
#include "nn/base/model_options.h"
#include "nn/base/torch.h"

namespace model {

/// Tensors by name: a dict of the file.
class StateDict {
 public:
  /// Of names that begin with one of `prefixes` (torch.compile's, a wrapper's) the rest. Both
  /// outlive it. Throws Error{bad_data} unless `dict` is a dict of names as long as tensors have.
  StateDict(const TorchFile& file, const PickleValue& dict, std::vector<std::string> prefixes);
  /// As weights_of_module() has them.
  StateDict(const TorchFile& file, const std::map<std::string, const PickleValue*>& weights);

  const std::string& origin() const { return file_.name(); }
  bool has(const std::string& name) const { return values_.count(name) > 0; }
  bool has_any(std::string_view start) const;
  /// The same memory: one parameter under two names.
  bool same(const std::string& a, const std::string& b) const;
  /// Throws Error{bad_data} for a tensor of another number of dimensions than `dimensions`.
  std::vector<std::int64_t> shape(const std::string& name, std::size_t dimensions) const;
  /// float32. Throws Error{bad_data} naming what is missing, and where what was taken is several
  /// times the file: many names for one storage.
  torch::Tensor take(const std::string& name);
  /// Counts a float32 matrix that is computed, not read, before it is allocated. Throws
  /// Error{bad_data} naming `what` where all of them are a large multiple of the file.
  void expect_makes(std::int64_t rows, std::int64_t columns, const std::string& what);
  /// Rows (n, width) through a projection (d, width): (n, d), rounded once. Throws as
  /// expect_makes(), and Error{bad_data} for tensors of other shapes.
  torch::Tensor product(const torch::Tensor& rows, const torch::Tensor& projection,
                        const std::string& what);
  /// Matrices of as many columns, or vectors, one below the other.
  torch::Tensor take_rows(const std::vector<std::string>& names);
  /// Names whose ends are these are no weights.
  void ignore(const std::vector<std::string_view>& ends);
  /// Throws Error{bad_data} naming the first that was neither taken nor ignored.
  void expect_none_left() const;
  /// Names that were neither taken nor ignored.
  std::vector<std::string> left() const;

 private:
  void put(const std::string& name, const PickleValue& value);
  const PickleValue& value(const std::string& name) const;
  const TorchFile& file_;
  std::map<std::string, const PickleValue*> values_;
  std::set<std::string> others_;  // names of what is no tensor that can be read
  std::set<std::string> done_;
  std::uint64_t taken_ = 0, read_ = 0, made_ = 0;  // bytes
};

/// A dict, or the attributes of an object that is nothing else (argparse.Namespace).
class Settings {
 public:
  /// Throws Error{bad_data} for anything else; `what` names it.
  Settings(const std::string& origin, const PickleValue* value, const std::string& what);

  bool has(const char* key) const;  ///< there, and not None
  /// Throw Error{bad_data} naming what is missing or of another type.
  std::int64_t whole(const char* key) const;
  std::int64_t whole(const char* key, std::int64_t otherwise) const;
  double number(const char* key, double otherwise) const;
  bool truth(const char* key, bool otherwise) const;
  std::string text(const char* key, const std::string& otherwise) const;
  /// Numbers between commas, as "20000,60000", or in a list.
  std::vector<std::int64_t> numbers(const char* key) const;
  [[noreturn]] void unsupported(const char* key, const std::string& value) const;

 private:
  const PickleValue* find(const char* key) const;
  [[noreturn]] void wrong(const char* key) const;
  std::string origin_, what_;
  const PickleValue* dict_;
};

/// Of an adaptive embedding; those of trained models have three to five.
inline constexpr std::int64_t kMostBands = 64;

/// A model of ours, in memory.
struct ImportedModel {
  nn::ModelOptions options;
  std::int64_t vocabulary = 0;
  std::map<std::string, torch::Tensor> weights;  ///< by the names of nn::Model
  core::OrderedJson facts;                       ///< for config.json; "imported": {"program", ...}
};

/// Throws Error{bad_data} naming the file and the option unless every number is one that a model
/// can have: a checkpoint's settings are data. A map asks for it before it takes tensors.
void expect_possible(const ImportedModel& model, const std::string& origin);

/// One program's checkpoints.
struct ImportMap {
  std::string_view program;
  bool (*takes)(const PickleValue& root);
  /// Throws Error{bad_data}, Error{bad_config} naming what is missing or not supported.
  ImportedModel (*read)(const TorchFile& file);
};

/// The one that takes the file. Throws Error{bad_data} naming those that there are.
const ImportMap& import_map_of(const TorchFile& file);

/// The maps, a file each.
const ImportMap& nanogpt_map();
const ImportMap& fairseq_map();
const ImportMap& transformer_xl_map();

}  // namespace model
