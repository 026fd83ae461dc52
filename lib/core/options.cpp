#include "core/options.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/error.h"
#include "core/units.h"

namespace core {
namespace {

void parse_into(const std::string& text, std::string& out) { out = text; }
void parse_into(const std::string& text, std::int64_t& out) { out = parse_size(text); }
void parse_into(const std::string& text, double& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc{} || end != text.data() + text.size() || std::isnan(out))
    fail(Code::usage, "'{}' is not a number", text);
}
void parse_into(const std::string& text, bool& out) {
  if (text == "true" || text == "on" || text == "yes" || text == "1") {
    out = true;
  } else if (text == "false" || text == "off" || text == "no" || text == "0") {
    out = false;
  } else {
    fail(Code::usage, "'{}' is neither true nor false", text);
  }
}
template <class T>
void parse_into(const std::vector<std::string>& texts, std::vector<T>& out) {
  out.clear();
  for (const auto& text : texts) {
    T value;
    parse_into(text, value);
    out.push_back(std::move(value));
  }
}

std::string print(const std::string& value) { return value; }
std::string print(bool value) { return value ? "true" : "false"; }
std::string print(std::int64_t value) { return std::to_string(value); }
std::string print(double value) { return fmt::format("{}", value); }

template <class T>
constexpr bool is_vector = false;
template <class T>
constexpr bool is_vector<std::vector<T>> = true;

}  // namespace

std::string Field::key() const {
  std::string key = name;
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

Field& FieldList::operator()(std::string name, Field::Target target, std::string help,
                             std::vector<std::string> choices) {
  fields_.push_back(Field{.name = std::move(name),
                          .help = std::move(help),
                          .target = target,
                          .choices = std::move(choices),
                          .group = group_});
  return fields_.back();
}

void assign(const Field& field, const std::vector<std::string>& values) {
  const std::string flag = field.positional ? field.name : "--" + field.name;
  // A choice that was not made reads back as such.
  if (!field.choices.empty() && values == std::vector<std::string>{""} &&
      to_strings(field) == values)
    return;
  for (const auto& value : values) {
    if (!field.choices.empty() &&
        std::find(field.choices.begin(), field.choices.end(), value) == field.choices.end())
      fail(Code::usage, "{}: '{}' is not one of {}", flag, value, fmt::join(field.choices, ", "));
  }
  try {
    std::visit(
        [&](auto* target) {
          if constexpr (is_vector<std::remove_pointer_t<decltype(target)>>) {
            parse_into(values, *target);
          } else {
            if (values.size() != 1) fail(Code::usage, "takes one value, got {}", values.size());
            parse_into(values[0], *target);
          }
        },
        field.target);
  } catch (const Error& error) {
    fail(Code::usage, "{}: {}", flag, error.what());
  }
}

std::vector<std::string> to_strings(const Field& field) {
  return std::visit(
      [](auto* target) {
        std::vector<std::string> texts;
        if constexpr (is_vector<std::remove_pointer_t<decltype(target)>>) {
          for (const auto& value : *target) texts.push_back(print(value));
        } else {
          texts.push_back(print(*target));
        }
        return texts;
      },
      field.target);
}

OrderedJson fields_to_json(const FieldList& fields) {
  OrderedJson object = OrderedJson::object();
  for (const auto& field : fields.all())
    std::visit([&](auto* target) { object[field.key()] = *target; }, field.target);
  return object;
}

void fields_from_json(const FieldList& fields, const Json& object, const std::string& origin,
                      bool allow_unknown) {
  if (!object.is_object()) fail(Code::bad_config, "{}: not a JSON object", origin);
  for (const auto& item : object.items()) {
    const std::string& key = item.key();
    const Json& value = item.value();
    const auto& all = fields.all();
    const auto field =
        std::find_if(all.begin(), all.end(), [&](const Field& f) { return f.key() == key; });
    if (field == all.end()) {
      if (allow_unknown) continue;
      fail(Code::bad_config, "{}: unknown key \"{}\"", origin, key);
    }
    std::vector<std::string> texts;
    const auto text_of = [](const Json& one) {
      return one.is_string() ? one.get<std::string>() : one.dump();
    };
    if (value.is_array()) {
      for (const auto& item : value) texts.push_back(text_of(item));
    } else {
      texts.push_back(text_of(value));
    }
    try {
      assign(*field, texts);
    } catch (const Error& error) {
      fail(Code::bad_config, "{}: {}", origin, error.what());
    }
  }
}

}  // namespace core
