#pragma once
// Option structs list their fields once; flags, config files, config.json and --print-config are
// all derived from this list.
//
//   struct Options {
//     std::int64_t layers = 4;
//     void fields(core::FieldList& f) { f("layers", layers, "number of blocks"); }
//   };
// Refuses options that cannot be combined with another option.

#include "core/json.h"

namespace core {

/// Bounds is the range of numbers that a field accepts, from `least` to `most`. The ends are
/// included unless they are open.
struct Bounds {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool open_least = false, open_most = false;

  bool hold(double value) const;
  bool any() const { return std::isfinite(least) || std::isfinite(most); }
};

/// A NamedNumber is a word that an option accepts in place of a number, and the number, out of the
/// option's bounds, that the struct then holds.
struct NamedNumber {
  std::string text;
  std::int64_t held = 0;
};

/// A Field is one option. Its flag is --name; its key in config.json is the name with '_' for '-'.
/// The flag of a vector may be repeated. Numbers of a vector may also be given as one value,
/// separated by commas; texts are not split, because they may contain commas. With several(), the
/// flag takes all values up to the next flag.
struct Field {
  using Target = std::variant<bool*, std::int64_t*, double*, std::string*,
      std::vector<std::string>*, std::vector<std::int64_t>*, std::vector<double>*>;
  std::string name;
  std::string help;
  Target target;
  std::vector<std::string> choices = {};  ///< if not empty, the only accepted values
  std::string group = {};                 ///< the heading in --help
  char short_name = 0;                    ///< -x, or 0 for none
  bool positional = false;
  bool required = false;
  bool greedy = false;  ///< set by several()
  Bounds bounds = {};   ///< for a number, or for each number of a list
  /// The value is in bytes: K, M, G and T are powers of 1024. Otherwise they are powers of 1000.
  bool size = false;
  std::string needed = {};  ///< the option without which this one has no use
  /// Words accepted in place of a number. A list of numbers accepts them for each number.
  std::vector<NamedNumber> words = {};

  Field& between(double least, double most) { return at_least(least).at_most(most); }
  Field& at_least(double least) { return bounds.least = least, *this; }
  Field& above(double least) { return bounds.open_least = true, at_least(least); }
  Field& above(double least, double most) { return above(least).at_most(most); }
  Field& at_most(double most) { return bounds.most = most, *this; }
  Field& below(double most) { return bounds.open_most = true, at_most(most); }
  /// Accepts 0 to below 1.
  Field& fraction() { return at_least(0).below(1); }
  Field& bytes() { return size = true, *this; }
  Field& bytes(double least, double most) { return between(least, most).bytes(); }
  Field& needs(std::string option) { return needed = std::move(option), *this; }
  Field& several() { return greedy = true, *this; }
  /// Accepts `auto`, which lets the program choose. The struct then holds `held`.
  Field& or_auto(std::int64_t held = 0) { return words.push_back({"auto", held}), *this; }
  /// Accepts `none`, which switches off what the number would limit or set. The struct then holds
  /// `held`.
  Field& or_none(std::int64_t held = 0) { return words.push_back({"none", held}), *this; }
  /// Accept such a word, or a number within bounds.
  Field& auto_or(double least, double most) { return between(least, most).or_auto(); }
  Field& none_or(double least, double most) { return between(least, most).or_none(); }
  Field& auto_or_above(double least, double most) { return above(least, most).or_auto(); }
  Field& none_or_above(double least, double most) { return above(least, most).or_none(); }

  /// Returns the word that is `text`, or nullptr.
  const NamedNumber* word(std::string_view text) const;
  /// Returns the word for which the struct holds `number`, or nullptr.
  const NamedNumber* word_for(double number) const;

  std::string key() const;
  /// Describes the accepted values: "1 to 16M", "above 0 to 1000", "0 to below 1, or auto", "1 to
  /// 9, none or auto". Returns an empty text if there are no bounds.
  std::string range() const;
  bool is_list() const;  ///< returns true if it takes several values
};

/// A FieldList is the list that an option struct fills in its fields(). Its pointers are valid as
/// long as the struct.
class FieldList {
 public:
  Field& operator()(std::string name, Field::Target target, std::string help,
      std::vector<std::string> choices = {});
  template <class T>
  Field& operator()(
      std::string name, T& field, std::string help, std::vector<std::string> choices = {}) {
    return (*this)(std::move(name), Field::Target(&field), std::move(help), std::move(choices));
  }
  /// Adds an argument without a flag; a vector takes all remaining arguments.
  template <class T> Field& positional(std::string name, T& field, std::string help) {
    Field& added = (*this)(std::move(name), field, std::move(help));
    added.positional = true;
    return added;
  }

  using Scope = std::pair<std::string, std::string>;  // the heading, and the option that is needed
  /// Sets the heading in --help for the fields that are listed while the result exists.
  ScopedValue<Scope> group(std::string title) { return {scope_, {std::move(title), ""}}; }
  /// Adds the fields of `options` under a heading of their own.
  template <class Options> void group(std::string title, Options& options) {
    const auto scope = group(std::move(title));
    options.fields(*this);
  }

  /// The fields that follow in the group have no use without `option`.
  void rest_needs(std::string option) { scope_.second = std::move(option); }

  const std::vector<Field>& all() const { return fields_; }

 private:
  std::vector<Field> fields_;
  Scope scope_;
};

template <class Options> FieldList list_fields(Options& options) {
  FieldList list;
  options.fields(list);
  return list;
}

/// Parses one value (or the values of a vector), checks the bounds and stores the result. Throws
/// Error{usage}, naming the field and the accepted values; the field is then unchanged.
void assign(const Field& field, const std::vector<std::string>& values);
/// Returns the field's value or values in the form that assign() accepts.
std::vector<std::string> to_strings(const Field& field);

/// Returns the element of `names` that begins with `word`, first with it as whole words, or that
/// has it among its words: vocab-size for vocab or size. Returns an empty text if there is none.
std::string named_in_part(std::string_view word, const std::vector<std::string>& names);
/// Returns the element of `names` that `word` most likely means, or an empty text: one that it
/// names in part, else the one of which it is a misspelling.
std::string nearest(std::string_view word, const std::vector<std::string>& names);
/// Returns "; did you mean PREFIXnearest?", or an empty text.
std::string did_you_mean(
    std::string_view word, const std::vector<std::string>& names, std::string_view prefix = {});

/// Checks the values of a struct that was not filled by assign(). Throws Error{bad_config} with a
/// text such as "KEY: takes 1 to 10K, not 0" for the first value out of bounds.
void expect_within_bounds(const FieldList& fields);

/// Returns the fields as an object, {"layers": 4, ...}, in the order of the list. Words are written
/// as the numbers that the struct holds.
OrderedJson fields_to_json(const FieldList& fields);
/// Sets the fields from an object of fields_to_json(). A field whose key is absent keeps its value.
/// Throws Error{bad_config}, naming origin and key, for an unknown key (unless `allow_unknown`) and
/// for a value of the wrong type.
void fields_from_json(const FieldList& fields, const Json& object, const std::string& origin,
    bool allow_unknown = false);

template <class Options> OrderedJson to_json(Options options) {
  return fields_to_json(list_fields(options));
}

using FieldValues = std::vector<std::vector<std::string>>;
/// Returns to_strings() of each field.
FieldValues values_of(const FieldList& fields);
/// Returns the names of the fields that differ from `defaults`, their values_of() before they were
/// set.
std::vector<std::string> changed_fields(const FieldList& fields, const FieldValues& defaults);
/// Throws Error{usage} for a changed field that needs one that is not changed.
void expect_needed(const FieldList& fields, const FieldValues& defaults);
/// Returns the names of the options that are not at their defaults.
template <class Options> std::vector<std::string> changed(Options options) {
  Options defaults;
  return changed_fields(list_fields(options), values_of(list_fields(defaults)));
}
/// Throws Error{usage} with the text "--MINE: WHY; leave --FLAG out" for the first such option.
template <class Options> void leave_out(const char* mine, const char* why, const Options& options) {
  for (const auto& flag : changed(options)) bad_usage("--{}: {}; leave --{} out", mine, why, flag);
}

/// Returns the fields that `names` has, as fields_to_json() does.
OrderedJson chosen_to_json(const FieldList& fields, const std::set<std::string>& names);

}  // namespace core
