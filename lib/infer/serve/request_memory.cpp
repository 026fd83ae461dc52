#include "infer/serve/request_memory.h"

#include "infer/sources/source.h"

namespace infer {
namespace {

using core::Json;

// Returns the kind that an option adds; null: none.
const SourceKind* kind_of(const core::Field& field) {
  for (const auto* const kind : source_kinds())
    if (kind->name() == field.name) return kind;
  return nullptr;
}

// Whether an option's values are names of files or were read from files: texts that add a source
// or that no kind lists.
bool names_files(const core::Field& field) {
  if (!std::holds_alternative<std::vector<std::string>*>(field.target)) return false;
  return kind_of(field) != nullptr || std::ranges::none_of(source_kinds(), [&](const auto* kind) {
    return std::ranges::count(kind->options(), field.name) > 0;
  });
}

std::string text_of(const std::string& name, const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_structured() || value.is_null())
    core::bad_usage("{}: takes a number, a text, true or false", name);
  return core::dump(value);
}

void take(const core::Field& field, const std::string& name, const Json& value) {
  if (names_files(field)) {
    if (!value.is_array() || !value.empty())
      core::bad_usage("{}: is set when the server starts; [] leaves it out", name);
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
  } catch (const core::Error& error) { core::bad_usage("{}", error.what()); }
}

}  // namespace

MemoryOptions request_memory(const MemoryOptions& started, const std::string& asked) {
  MemoryOptions memory = started;
  memory.flags.clear();
  const auto fields = core::list_fields(memory).all();
  const Json json = core::parse_json(asked, "memory");
  std::vector<std::pair<const core::Field*, std::string>> given;
  for (const auto& [name, value] : json.items()) {
    std::string key = name;
    std::replace(key.begin(), key.end(), '-', '_');
    const auto field = std::find_if(
        fields.begin(), fields.end(), [&](const auto& one) { return one.key() == key; });
    if (field == fields.end() || key == "tuned_on")
      core::bad_usage("{}: is not an option of a memory", name.substr(0, 40));
    memory.flags.insert(field->name);
    given.emplace_back(&*field, name);
    // Before the values are taken, because the request may give an option of what it leaves out.
    if (const auto* const kind = kind_of(*field); kind != nullptr && names_files(*field))
      kind->drop(memory);
  }
  for (const auto& [field, name] : given) take(*field, name, json[name]);
  return memory;
}

}  // namespace infer
