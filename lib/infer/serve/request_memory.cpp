#include "infer/serve/request_memory.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "core/error.h"
#include "core/json.h"

namespace infer {
namespace {

using core::Code;
using core::fail;
using core::Json;

// Whether an option's values are names of files or were read from files. Of the options with
// several texts, only n-grams' weights are numbers.
bool names_files(const core::Field& field) {
  return std::holds_alternative<std::vector<std::string>*>(field.target) &&
         field.key() != "ngrams_lambda";
}

std::string text_of(const std::string& name, const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_structured() || value.is_null())
    fail(Code::usage, "{}: takes a number, a text, true or false", name);
  return core::dump(value);
}

void take(const core::Field& field, const std::string& name, const Json& value) {
  if (names_files(field)) {
    if (!value.is_array() || !value.empty())
      fail(Code::usage, "{}: is set when the server starts; [] leaves it out", name);
    std::get<std::vector<std::string>*>(field.target)->clear();
    return;
  }
  std::vector<std::string> values;
  if (value.is_array() && field.is_list()) {
    for (const Json& one : value) values.push_back(text_of(name, one));
  } else {
    values.push_back(text_of(name, value));
  }
  try {
    core::assign(field, values);
  } catch (const core::Error& error) {
    fail(Code::usage, "{}", error.what());
  }
}

void copy_value(const core::Field& from, const core::Field& to) {
  const auto copy = [](auto* source, auto* target) {
    if constexpr (std::is_same_v<decltype(source), decltype(target)>) *target = *source;
  };
  std::visit(copy, from.target, to.target);
}

}  // namespace

MemoryOptions request_memory(const MemoryOptions& started, const std::string& asked) {
  MemoryOptions memory = started, defaults;
  const auto fields = core::list_fields(memory).all();
  std::set<std::string> given, left_out;
  const Json json = core::parse_json(asked, "memory");
  for (const auto& [name, value] : json.items()) {
    std::string key = name;
    std::replace(key.begin(), key.end(), '-', '_');
    const auto field = std::find_if(fields.begin(), fields.end(),
                                    [&](const auto& one) { return one.key() == key; });
    if (field == fields.end() || key == "tuned_on")
      fail(Code::usage, "{}: is not an option of a memory", name.substr(0, 40));
    take(*field, name, value);
    given.insert(key);
    if (names_files(*field)) left_out.insert(key);
  }
  // Options of what is left out, such as --combine both, would now contradict the others.
  const auto plain = core::list_fields(defaults).all();
  const auto group_of = [&](const std::string& key) {
    return std::find_if(fields.begin(), fields.end(), [&](const auto& f) { return f.key() == key; })
        ->group;
  };
  for (const char* list : {"datastore", "ngrams", "ensemble"}) {
    if (!left_out.contains(list)) continue;
    const auto group = group_of(list);
    for (std::size_t i = 0; i < fields.size(); ++i)
      if (fields[i].group == group && !given.contains(fields[i].key()))
        copy_value(plain[i], fields[i]);
  }
  if (left_out.contains("datastore") && !given.contains("combine") && memory.combine == "both")
    memory.combine = defaults.combine;
  return memory;
}

}  // namespace infer
