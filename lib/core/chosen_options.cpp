#include "core/chosen_options.h"

namespace core {

std::vector<std::string> changed_fields(const FieldList& fields, const FieldList& defaults) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < fields.all().size(); ++i)
    if (to_strings(fields.all()[i]) != to_strings(defaults.all()[i]))
      names.push_back(fields.all()[i].name);
  return names;
}

OrderedJson chosen_to_json(const FieldList& fields, const std::set<std::string>& names) {
  auto object = fields_to_json(fields);
  for (const auto& field : fields.all())
    if (!names.contains(field.name)) object.erase(field.key());
  return object;
}

}  // namespace core
