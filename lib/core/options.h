#pragma once
// Option structs list their fields once; flags, config files, config.json and --print-config all
// come from that list.
//
//   struct Options {
//     std::int64_t layers = 4;
//     void fields(core::FieldList& f) { f("layers", layers, "number of blocks"); }
//   };

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/json.h"

namespace core {

/// The numbers a field takes: from `least` to `most`, the ends among them unless they are open.
struct Bounds {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool open_least = false, open_most = false;

  bool hold(double value) const;
  bool any() const;
};

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
  Bounds bounds = {};  ///< of a number; of each number of a list
  bool size = false;  ///< bytes, whose K, M, G and T are powers of 1024; of counts they are of 1000
  bool open = false;  ///< `auto` leaves the choice to the program: 0 in the struct, never as text

  Field& between(double least, double most) { return at_least(least).at_most(most); }
  Field& at_least(double least) { return bounds.least = least, *this; }
  Field& above(double least) { return bounds.open_least = true, at_least(least); }
  Field& at_most(double most) { return bounds.most = most, *this; }
  Field& below(double most) { return bounds.open_most = true, at_most(most); }
  Field& bytes() { return size = true, *this; }
  Field& or_auto() { return open = true, *this; }

  std::string key() const;
  /// What it takes: "1 to 16M", "above 0 to 1000", "0 to below 1, or auto"; nothing where there are
  /// no bounds.
  std::string range() const;
  bool is_list() const;  ///< takes several values
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

  /// While one lives, fields that are listed stand under its heading in --help; then under the one
  /// before it again.
  class [[nodiscard]] Group {
   public:
    Group(FieldList& list, std::string title)
        : list_(list), before_(std::exchange(list.group_, std::move(title))) {}
    ~Group() { list_.group_ = std::move(before_); }
    Group(const Group&) = delete;
    Group& operator=(const Group&) = delete;

   private:
    FieldList& list_;
    std::string before_;
  };
  Group group(std::string title) { return {*this, std::move(title)}; }
  /// The fields of `options` under a heading of their own.
  template <class Options>
  void group(std::string title, Options& options) {
    const Group scope(*this, std::move(title));
    options.fields(*this);
  }

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

/// Parses, holds against the bounds and stores one value (or the values of a vector). Throws
/// Error{usage} naming the field and what it takes; the field keeps what it had.
void assign(const Field& field, const std::vector<std::string>& values);
/// The value(s) as assign() takes them.
std::vector<std::string> to_strings(const Field& field);

/// Of `names` the one that `word` may have been meant to be; nothing where none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& names);
/// "; did you mean PREFIXnearest?", or nothing.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& names,
                         std::string_view prefix = {});

/// For structs that were filled in otherwise: throws Error{bad_config} as "KEY: takes 1 to 10K, not
/// 0" for the first value beyond its bounds.
void expect_within_bounds(const FieldList& fields);

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
