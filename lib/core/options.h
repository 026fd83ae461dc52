#pragma once
// Option structs list their fields once; flags, config files, config.json and --print-config all
// come from that list.
//
//   struct Options {
//     std::int64_t layers = 4;
//     void fields(core::FieldList& f) { f("layers", layers, "number of blocks"); }
//   };

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/json.h"

namespace core {

/// One option: its flag is --name, its key in config.json is the name with '_' for '-'. The flag of
/// a vector is repeated, or its numbers stand in one value with commas (texts may have commas).
struct Field {
  using Target =
      std::variant<bool*, std::int64_t*, double*, std::string*, std::vector<std::string>*,
                   std::vector<std::int64_t>*, std::vector<double>*>;
  std::string name;
  std::string help;
  Target target;
  std::vector<std::string> choices = {};  ///< if not empty, the only values taken
  std::string group = {};                 ///< heading in --help
  char short_name = 0;                    ///< -x, or none
  bool positional = false;
  bool required = false;

  std::string key() const;
};

/// The list an option struct fills in its fields(). Pointers stay valid as long as the struct.
class FieldList {
 public:
  Field& operator()(std::string name, Field::Target target, std::string help,
                    std::vector<std::string> choices = {});
  template <class T>
  Field& operator()(std::string name, T& field, std::string help,
                    std::vector<std::string> choices = {}) {
    return (*this)(std::move(name), Field::Target(&field), std::move(help), std::move(choices));
  }
  /// An argument without a flag; a vector takes all that remain.
  template <class T>
  Field& positional(std::string name, T& field, std::string help) {
    Field& added = (*this)(std::move(name), field, std::move(help));
    added.positional = true;
    return added;
  }
  /// Fields that follow stand under this heading in --help.
  void group(std::string title) { group_ = std::move(title); }

  const std::vector<Field>& all() const { return fields_; }

 private:
  std::vector<Field> fields_;
  std::string group_;
};

template <class Options>
FieldList list_fields(Options& options) {
  FieldList list;
  options.fields(list);
  return list;
}

/// Parses and stores one value (or the values of a vector). Throws Error{usage} naming the field
/// and what it takes.
void assign(const Field& field, const std::vector<std::string>& values);
/// The value(s) as assign() takes them.
std::vector<std::string> to_strings(const Field& field);

/// {"layers": 4, ...} in the order of the list.
OrderedJson fields_to_json(const FieldList& fields);
/// Sets the fields from an object. Absent keys keep their value. Throws Error{bad_config} for an
/// unknown key (unless `allow_unknown`) or a value of the wrong type, naming origin and key.
void fields_from_json(const FieldList& fields, const Json& object, const std::string& origin,
                      bool allow_unknown = false);

template <class Options>
OrderedJson to_json(Options options) {
  return fields_to_json(list_fields(options));
}

}  // namespace core
