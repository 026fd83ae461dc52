#include "core/options.h"

#include <cctype>

#include "core/units.h"

namespace core {
namespace {

template <class T>
constexpr bool is_number = std::is_same_v<T, std::int64_t> || std::is_same_v<T, double>;
template <class T> constexpr bool is_vector = false;
template <class T> constexpr bool is_vector<std::vector<T>> = true;

void parse_into(const Field&, const std::string& text, std::string& out) { out = text; }
void parse_into(const Field& field, const std::string& text, std::int64_t& out) {
  out = field.size ? parse_size(text) : parse_count(text);
}
void parse_into(const Field&, const std::string& text, double& out) { out = parse_real(text); }
void parse_into(const Field&, const std::string& text, bool& out) {
  if (text == "true" || text == "on" || text == "yes" || text == "1") {
    out = true;
  } else if (text == "false" || text == "off" || text == "no" || text == "0") {
    out = false;
  } else {
    bad_usage("'{}' is neither true nor false", text);
  }
}

void refuse(const Field& field, const std::string& value) {
  bad_usage("takes {}, not {}", field.range(), value);
}

// Parses one value and checks the bounds.
template <class T> T value_of(const Field& field, const std::string& text) {
  T value{};
  if constexpr (is_number<T>) {
    if (const auto* word = field.word(text)) return static_cast<T>(word->held);
    // Other words are refused with the accepted ones; 1e and -x are refused as numbers.
    const bool letters = std::ranges::all_of(text, [](char c) { return c >= 'a' && c <= 'z'; });
    if (!field.words.empty() && field.bounds.any() && !text.empty() && letters) refuse(field, text);
  }
  parse_into(field, text, value);
  if constexpr (is_number<T>) {
    if (!field.bounds.hold(static_cast<double>(value))) refuse(field, text);
  }
  return value;
}

std::string print(const std::string& value) { return value; }
std::string print(bool value) { return value ? "true" : "false"; }
std::string print(std::int64_t value) { return std::to_string(value); }
std::string print(double value) { return fmt::format("{}", value); }

// Formats a value as assign() reads it.
template <class T> std::string print_for(const Field& field, const T& value) {
  if constexpr (is_number<T>) {
    if (const auto* word = field.word_for(static_cast<double>(value))) return word->text;
  }
  return print(value);
}

// Returns the text in the letters of choices: lower case, with hyphens, and without the
// abbreviations that other programs have for some.
std::string as_choice(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) {
    return static_cast<char>(c == '_' || c == ' ' ? '-' : std::tolower(c));
  });
  constexpr std::array<std::array<std::string_view, 2>, 10> kShort = {
      {{"bf16", "bfloat16"}, {"f32", "float32"}, {"fp32", "float32"}, {"f64", "float64"},
          {"fp64", "float64"}, {"q8-0", "int8"}, {"validation", "valid"}, {"training", "train"},
          {"numpy", "npy"}, {"json", "jsonl"}}};
  for (const auto& [other, choice] : kShort)
    if (text == other) return std::string(choice);
  return text;
}

// Returns the first value of the field that is out of bounds, if any.
template <class T> void expect_within(const Field& field, const T& value) {
  if constexpr (is_vector<T>) {
    for (const auto& item : value) expect_within(field, item);
  } else if constexpr (is_number<T>) {
    const auto number = static_cast<double>(value);
    if (!field.word_for(number) && !field.bounds.hold(number)) refuse(field, print(value));
  }
}

// Returns a name without leading dashes and with '-' between its words.
std::string words_of(std::string_view name) {
  std::string words(name.substr(std::min(name.find_first_not_of('-'), name.size())));
  std::ranges::replace(words, '_', '-');
  return words;
}

// Returns the number of insertions, deletions, substitutions and transpositions between two words.
std::size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

bool Bounds::hold(double value) const {
  if (!any()) return true;
  return std::isfinite(value) && (open_least ? value > least : value >= least) &&
         (open_most ? value < most : value <= most);
}

std::string Field::range() const {
  if (!bounds.any()) return {};
  const auto text = [&](double end) { return format_count(end, size ? 1024 : 1000); };
  std::string range;
  if (!std::isfinite(bounds.most))
    range = bounds.open_least ? "above " + text(bounds.least) : text(bounds.least) + " or more";
  else if (!std::isfinite(bounds.least))
    range = (bounds.open_most ? "below " : "up to ") + text(bounds.most);
  else
    range = fmt::format("{}{} to {}{}", bounds.open_least ? "above " : "", text(bounds.least),
        bounds.open_most ? "below " : "", text(bounds.most));
  for (std::size_t i = 0; i < words.size(); ++i)
    range += (i > 0 ? " or " : words.size() == 1 ? ", or " : ", ") + words[i].text;
  return range;
}

const NamedNumber* Field::word(std::string_view text) const {
  return find_by(words, text, &NamedNumber::text);
}

const NamedNumber* Field::word_for(double number) const {
  const auto held = [](const NamedNumber& one) { return static_cast<double>(one.held); };
  return find_by(words, number, held);
}

bool Field::is_list() const {
  constexpr std::size_t kFirstList = 4;  // index in Target
  return target.index() >= kFirstList;
}

std::string Field::key() const {
  std::string key = name;
  std::ranges::replace(key, '-', '_');
  return key;
}

Field& FieldList::operator()(
    std::string name, Field::Target target, std::string help, std::vector<std::string> choices) {
  fields_.push_back(Field{.name = std::move(name),
      .help = std::move(help),
      .target = target,
      .choices = std::move(choices),
      .group = scope_.first,
      .needed = scope_.second});
  return fields_.back();
}

void assign(const Field& field, const std::vector<std::string>& values) {
  const std::string flag = field.positional ? field.name : "--" + field.name;
  // An unset choice reads back as unset.
  if (!field.choices.empty() && values == std::vector<std::string>{""} &&
      to_strings(field) == values)
    return;
  for (const auto& value : values) {
    if (!field.choices.empty() && std::ranges::find(field.choices, value) == field.choices.end())
      bad_usage("{}: '{}' is not one of {}{}", flag, value, fmt::join(field.choices, ", "),
          did_you_mean(as_choice(value), field.choices));
  }
  try {
    std::visit(
        [&](auto* target) {
          using T = std::remove_pointer_t<decltype(target)>;
          if constexpr (is_vector<T>) {
            *target = mapped(values,
                [&](const auto& value) { return value_of<typename T::value_type>(field, value); });
          } else {
            if (values.size() != 1) bad_usage("takes one value, got {}", values.size());
            *target = value_of<T>(field, values[0]);
          }
        },
        field.target);
  } catch (const Error& error) { bad_usage("{}: {}", flag, error.what()); }
}

void expect_within_bounds(const FieldList& fields) {
  for (const auto& field : fields.all()) {
    try {
      std::visit([&](const auto* target) { expect_within(field, *target); }, field.target);
    } catch (const Error& error) { bad_config("{}: {}", field.name, error.what()); }
  }
}

std::string named_in_part(std::string_view word, const std::vector<std::string>& names) {
  const std::string part = words_of(word);
  std::string found;
  int best = 4;
  for (const auto& name : names) {
    const std::string own = words_of(name);
    const bool within = part.size() > 1 && (own + "-").find("-" + part + "-") != own.npos;
    const int rank = own.size() <= part.size()                  ? 4
                     : own.starts_with(part + "-")              ? 1
                     : part.size() > 2 && own.starts_with(part) ? 2
                     : within                                   ? 3
                                                                : 4;
    // Of names that fit equally, the shortest.
    if (part.size() < 2 || rank > best || rank == 4) continue;
    if (rank == best && name.size() >= found.size()) continue;
    best = rank;
    found = name;
  }
  return found;
}

std::string nearest(std::string_view word, const std::vector<std::string>& names) {
  if (auto name = named_in_part(word, names); !name.empty()) return name;
  // Allow one edit for every three letters, and one for shorter words.
  constexpr std::size_t kLongest = 64;
  if (word.size() > kLongest) return {};
  const std::size_t letters = word.size() - std::min(word.find_first_not_of('-'), word.size());
  std::size_t least = std::max<std::size_t>(letters / 3, 1) + 1;
  std::string found;
  for (const auto& name : names) {
    const std::size_t far = edits(word, name);
    if (far < least && far < name.size()) least = far, found = name;
  }
  return found;
}

std::string did_you_mean(
    std::string_view word, const std::vector<std::string>& names, std::string_view prefix) {
  const std::string name = nearest(word, names);
  return name.empty() ? name : fmt::format("; did you mean {}{}?", prefix, name);
}

std::vector<std::string> to_strings(const Field& field) {
  return std::visit(
      [&](auto* target) {
        using T = std::remove_pointer_t<decltype(target)>;
        if constexpr (is_vector<T>)
          return mapped(*target, [&](const auto& value) { return print_for(field, value); });
        else return std::vector{print_for(field, *target)};
      },
      field.target);
}

OrderedJson fields_to_json(const FieldList& fields) {
  OrderedJson object = OrderedJson::object();
  for (const auto& field : fields.all())
    std::visit([&](auto* target) { object[field.key()] = *target; }, field.target);
  return object;
}

void fields_from_json(
    const FieldList& fields, const Json& object, const std::string& origin, bool allow_unknown) {
  if (!object.is_object()) bad_config("{}: not a JSON object", origin);
  for (const auto& item : object.items()) {
    const std::string& key = item.key();
    const Json& value = item.value();
    const auto& all = fields.all();
    const auto field = std::ranges::find(all, key, &Field::key);
    if (field == all.end()) {
      if (allow_unknown) continue;
      const auto keys = mapped(all, &Field::key);
      bad_config("{}: unknown key \"{}\"{}", origin, key, did_you_mean(key, keys));
    }
    const auto text_of = [&](const Json& one) {
      const auto* word = one.is_number() ? field->word_for(one.get<double>()) : nullptr;
      if (word) return word->text;
      return one.is_string() ? one.get<std::string>() : one.dump();
    };
    const auto texts = value.is_array() ? mapped(value, text_of) : std::vector{text_of(value)};
    try {
      assign(*field, texts);
    } catch (const Error& error) { bad_config("{}: {}", origin, error.what()); }
  }
}

FieldValues values_of(const FieldList& fields) { return mapped(fields.all(), to_strings); }

std::vector<std::string> changed_fields(const FieldList& fields, const FieldValues& defaults) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < defaults.size(); ++i)
    if (to_strings(fields.all()[i]) != defaults[i]) names.push_back(fields.all()[i].name);
  return names;
}

void expect_needed(const FieldList& fields, const FieldValues& defaults) {
  const auto changed = changed_fields(fields, defaults);
  for (const auto& field : fields.all())
    if (!field.needed.empty() && contains(changed, field.name) && !contains(changed, field.needed))
      bad_usage("--{}: requires --{}", field.name, field.needed);
}

OrderedJson chosen_to_json(const FieldList& fields, const std::set<std::string>& names) {
  auto object = fields_to_json(fields);
  for (const auto& field : fields.all())
    if (!names.contains(field.name)) object.erase(field.key());
  return object;
}

}  // namespace core
