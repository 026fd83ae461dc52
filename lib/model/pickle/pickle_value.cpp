#include "model/pickle/pickle_value.h"

namespace model {

const PickleValue* PickleValue::find(std::string_view key) const {
  if (kind != PickleKind::dict) return nullptr;
  for (std::size_t i = items.size(); i >= 2; i -= 2)
    if (items[i - 2]->kind == PickleKind::text && items[i - 2]->text == key) return items[i - 1];
  return nullptr;
}

const PickleValue* PickleValue::arguments_of(std::string_view global) const {
  if (kind != PickleKind::call || !items[0]->is_global(global)) return nullptr;
  return items[1]->kind == PickleKind::tuple ? items[1] : nullptr;
}

}  // namespace model
