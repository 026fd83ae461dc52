#pragma once
// Checkpoints of other training programs: one map for each program, from its options and names to
// Tessera's.

#include "model/pickle/torch_file.h"
#include "nn/base/model_options.h"

namespace model {

/// Tensors by name: a dict of the file.
class StateDict {
 public:
  /// Collects the tensors of a dict and removes `prefixes` from their names (those of torch.compile
  /// or a wrapper). `file` and `dict` must outlive the object. Throws Error{bad_data} unless `dict`
  /// is a dict with names of plausible length.
  StateDict(const TorchFile& file, const PickleValue& dict, std::vector<std::string> prefixes);
  /// Collects the result of weights_of_module().
  StateDict(const TorchFile& file, const std::map<std::string, const PickleValue*>& weights);

  const std::string& origin() const { return file_.name(); }
  bool has(const std::string& name) const { return values_.count(name) > 0; }
  bool has_any(std::string_view start) const;
  /// Returns whether two names refer to the same memory, that is, one parameter.
  bool same(const std::string& a, const std::string& b) const;
  /// Throws Error{bad_data} for a tensor with another number of dimensions than `dimensions`.
  std::vector<std::int64_t> shape(const std::string& name, std::size_t dimensions) const;
  /// Returns a tensor as float32, or in its own type. Throws Error{bad_data} that names a missing
  /// tensor, and if the taken tensors exceed a multiple of the file's size (many names for one
  /// storage).
  torch::Tensor take(const std::string& name, bool own_type = false);
  /// Accounts for a computed float32 matrix before its allocation. Throws Error{bad_data} that
  /// names `what` if all such matrices exceed a large multiple of the file's size.
  void expect_makes(std::int64_t rows, std::int64_t columns, const std::string& what);
  /// Returns rows (n, width) times a projection (d, width): (n, d), rounded once. Throws the errors
  /// of expect_makes(), and Error{bad_data} for other shapes.
  torch::Tensor product(
      const torch::Tensor& rows, const torch::Tensor& projection, const std::string& what);
  /// Concatenates matrices with equal numbers of columns, or vectors, by rows.
  torch::Tensor take_rows(const std::vector<std::string>& names);
  /// Marks names with these suffixes as no weights.
  void ignore(const std::vector<std::string_view>& ends);
  /// Throws Error{bad_data} that names the first tensor which was neither taken nor ignored.
  void expect_none_left() const;
  /// Returns the names that were neither taken nor ignored.
  std::vector<std::string> left() const;

 private:
  void put(const std::string& name, const PickleValue& value);
  const PickleValue& value(const std::string& name) const;
  const TorchFile& file_;
  std::map<std::string, const PickleValue*> values_;
  std::set<std::string> others_;  // names of values that are no readable tensors
  std::set<std::string> done_;
  std::uint64_t taken_ = 0, read_ = 0, made_ = 0;  // bytes
};

/// A dict of settings, or the attributes of a plain object (argparse.Namespace).
class Settings {
 public:
  /// Throws Error{bad_data} for any other value; `what` names it.
  Settings(const std::string& origin, const PickleValue* value, const std::string& what);

  bool has(const char* key) const;  ///< present and not None
  /// These functions throw Error{bad_data} that names a key which is missing or of another type.
  std::int64_t whole(const char* key) const;
  std::int64_t whole(const char* key, std::int64_t otherwise) const;
  double number(const char* key, double otherwise) const;
  bool truth(const char* key, bool otherwise) const;
  std::string text(const char* key, const std::string& otherwise) const;
  /// Returns numbers from a list, or from comma-separated text such as "20000,60000".
  std::vector<std::int64_t> numbers(const char* key) const;
  [[noreturn]] void unsupported(const char* key, const std::string& value) const;

 private:
  const PickleValue* find(const char* key) const;
  [[noreturn]] void wrong(const char* key) const;
  std::string origin_, what_;
  const PickleValue* dict_;
};

/// Maximum number of bands of an adaptive embedding; trained models have three to five.
inline constexpr std::int64_t kMostBands = 64;

/// An imported model in memory.
struct ImportedModel {
  nn::ModelOptions options;
  std::int64_t vocabulary = 0;
  std::map<std::string, torch::Tensor> weights;  ///< by their names in nn::Model
  core::OrderedJson facts;                       ///< for config.json; "imported": {"program", ...}
};

/// Throws Error{bad_data} with the file and the option unless every number is possible for a model,
/// because a checkpoint's settings are untrusted. Maps call it before they take tensors.
void expect_possible(const ImportedModel& model, const std::string& origin);

/// Reader for the checkpoints of one program.
struct ImportMap {
  std::string_view program;
  bool (*takes)(const PickleValue& root);
  /// Throws Error{bad_data} or Error{bad_config} that names what is missing or not supported.
  ImportedModel (*read)(const TorchFile& file);
};

/// Returns the map that accepts the file. Throws Error{bad_data} that lists the known maps.
const ImportMap& import_map_of(const TorchFile& file);

/// The maps, each defined in a separate file.
extern const ImportMap nanogpt_map, fairseq_map, transformer_xl_map;

}  // namespace model
