#include "cli/config.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/plain_text.h"
#include "core/printable.h"

namespace cli {
namespace {

using core::Field;

bool is_text(const Field& field) {
  return std::holds_alternative<std::string*>(field.target) ||
         std::holds_alternative<std::vector<std::string>*>(field.target);
}

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

// Without a comment behind it; a # within quotes is none.
std::string_view without_comment(std::string_view line) {
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\\' && quoted) {
      ++i;
    } else if (line[i] == '"') {
      quoted = !quoted;
    } else if (line[i] == '#' && !quoted && (i == 0 || line[i - 1] == ' ' || line[i - 1] == '\t')) {
      return line.substr(0, i);
    }
  }
  return line;
}

std::string text_of(const core::Json& item) {
  return item.is_string() ? item.get<std::string>() : item.dump();
}

// A piece of the file, for a message.
std::string quoted_piece(std::string_view piece) {
  constexpr std::size_t kShown = 60;  // bytes
  return core::printable(piece.substr(0, kShown)) + (piece.size() > kShown ? "..." : "");
}

// JSON, or discarded where it is none. Throws Error{bad_config} for arrays in the array of a list.
core::Json json_of(const Field& field, std::string_view value) {
  bool nested = false;
  const auto keep = [&](int depth, core::Json::parse_event_t event, core::Json&) {
    using Event = core::Json::parse_event_t;
    nested |= depth > 0 && (event == Event::array_start || event == Event::object_start);
    return !nested;
  };
  core::Json json = core::Json::parse(value.begin(), value.end(), keep, false);
  if (nested && field.is_list())
    core::fail(core::Code::bad_config, "--{}: takes a list, not lists in a list", field.name);
  return nested ? core::Json(core::Json::value_t::discarded) : json;
}

// The value's texts, as core::assign takes them: JSON where it is JSON, else bare words.
std::vector<std::string> values_of(const Field& field, std::string_view value) {
  const core::Json json = json_of(field, value);
  std::vector<std::string> texts;
  if (json.is_array() && field.is_list()) {
    for (const auto& item : json) texts.push_back(text_of(item));
  } else if (json.is_string()) {
    texts.push_back(json.get<std::string>());
  } else if (!field.is_list()) {
    texts.emplace_back(value);
  } else {
    if (value.size() >= 2 && value.front() == '[' && value.back() == ']')
      value = trim(value.substr(1, value.size() - 2));
    while (!value.empty()) {
      const auto comma = value.find(',');
      texts.emplace_back(trim(value.substr(0, comma)));
      value = comma == value.npos ? std::string_view{} : value.substr(comma + 1);
    }
  }
  return texts;
}

class Setter {
 public:
  Setter(const core::FieldList& fields, std::set<std::string>& given)
      : fields_(fields), given_(given), flags_(given) {}

  template <class Values>
  void set(std::string key, const std::string& where, const Values& values) {
    std::replace(key.begin(), key.end(), '-', '_');
    const auto& all = fields_.all();
    const auto field = std::find_if(
        all.begin(), all.end(), [&](const Field& f) { return !f.positional && f.key() == key; });
    if (field == all.end()) {
      std::vector<std::string> keys;
      for (const auto& known : all)
        if (!known.positional) keys.push_back(known.key());
      core::fail(core::Code::bad_config, "{}: unknown key \"{}\"{}; --print-config lists them",
                 where, quoted_piece(key), core::did_you_mean(key, keys));
    }
    if (!seen_.insert(key).second)
      core::fail(core::Code::bad_config, "{}: \"{}\" stands twice", where, key);
    if (flags_.count(field->name) > 0) return;
    try {
      core::assign(*field, values(*field));
    } catch (const core::Error& error) {
      core::fail(core::Code::bad_config, "{}: {}", where, error.what());
    }
    given_.insert(field->name);
  }

 private:
  const core::FieldList& fields_;
  std::set<std::string>& given_;
  const std::set<std::string> flags_;
  std::set<std::string> seen_;
};

}  // namespace

std::string format_config(const core::FieldList& fields) {
  std::string text;
  for (const auto& field : fields.all()) {
    if (field.positional) continue;
    std::vector<std::string> values = core::to_strings(field);
    if (is_text(field))
      for (auto& value : values) value = core::dump(core::Json(value));
    std::string help = field.help;
    std::replace(help.begin(), help.end(), '\n', ' ');
    if (!field.choices.empty()) help += fmt::format(" ({})", fmt::join(field.choices, "|"));
    if (const auto range = field.range(); !range.empty()) help += fmt::format(" ({})", range);
    text += fmt::format("# {}\n{} = ", help, field.name);
    text += field.is_list() ? fmt::format("[{}]\n\n", fmt::join(values, ", ")) : values[0] + "\n\n";
  }
  if (!text.empty()) text.pop_back();
  return text;
}

void read_config(const std::string& whole, const std::string& origin, const core::FieldList& fields,
                 std::set<std::string>& given) {
  const std::string text(core::without_byte_order_mark(whole));
  Setter setter(fields, given);
  if (trim(text.substr(0, text.find('\n'))).starts_with('{')) {
    core::Json json;
    try {
      json = core::parse_json(text, origin);
    } catch (const core::Error& error) {
      throw core::Error(core::Code::bad_config, error.what());
    }
    for (const auto& item : json.items()) {
      const core::Json& value = item.value();
      setter.set(item.key(), origin, [&](const Field&) {
        std::vector<std::string> texts;
        if (!value.is_array()) return std::vector<std::string>{text_of(value)};
        for (const auto& member : value) texts.push_back(text_of(member));
        return texts;
      });
    }
    return;
  }
  std::string_view rest = text;
  for (int number = 1; !rest.empty(); ++number) {
    const auto end = rest.find('\n');
    const std::string_view line = trim(without_comment(rest.substr(0, end)));
    rest = end == rest.npos ? std::string_view{} : rest.substr(end + 1);
    if (line.empty()) continue;
    const std::string where = fmt::format("{}:{}", origin, number);
    const auto equals = line.find('=');
    if (equals == line.npos || equals == 0)
      core::fail(core::Code::bad_config, "{}: '{}' is not \"key = value\"", where,
                 quoted_piece(line));
    const std::string_view value = trim(line.substr(equals + 1));
    setter.set(std::string(trim(line.substr(0, equals))), where,
               [&](const Field& field) { return values_of(field, value); });
  }
}

}  // namespace cli
