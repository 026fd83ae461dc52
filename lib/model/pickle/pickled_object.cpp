#include "model/pickle/pickled_object.h"

#include "core/error.h"

namespace model {
namespace {

constexpr int kDeepest = 32;
constexpr std::size_t kMostWeights = std::size_t{1} << 16;

// The dict of a module's attribute, as _parameters; null: it is none.
const PickleValue* dict_of(const PickleValue& module, const char* name) {
  const auto* const attributes = attributes_of(module);
  const auto* const found = attributes == nullptr ? nullptr : attributes->find(name);
  return found != nullptr && found->kind == PickleKind::dict ? found : nullptr;
}

void collect(const PickleValue& module, const std::string& prefix, int depth,
             const std::string& origin, std::map<std::string, const PickleValue*>& all) {
  if (depth > kDeepest || all.size() > kMostWeights)
    core::fail(core::Code::bad_data, "{}: its modules are too many, or hold each other", origin);
  const auto each = [&](const char* name, const auto& visit) {
    const auto* const dict = dict_of(module, name);
    for (std::size_t i = 0; dict != nullptr && i + 1 < dict->items.size(); i += 2)
      if (dict->items[i]->kind == PickleKind::text)
        visit(prefix + dict->items[i]->text, *dict->items[i + 1]);
  };
  for (const char* kind : {"_parameters", "_buffers"})
    each(kind, [&](const std::string& name, const PickleValue& value) {
      if (value.kind != PickleKind::none) all[name] = &value;
    });
  each("_modules", [&](const std::string& name, const PickleValue& value) {
    collect(value, name + ".", depth + 1, origin, all);
  });
}

}  // namespace

std::string class_of(const PickleValue& value) {
  if (value.kind != PickleKind::call) return {};
  const PickleValue* type = value.items[0];
  if (type->kind == PickleKind::persistent) {  // ("module", CLASS, FILE, SOURCE)
    const PickleValue& id = *type->items[0];
    if (id.kind != PickleKind::tuple || id.items.size() < 2 || id.items[0]->text != "module")
      return {};
    type = id.items[1];
  }
  return type->kind == PickleKind::global ? type->text : std::string();
}

const PickleValue* attributes_of(const PickleValue& value) {
  const bool has = value.kind == PickleKind::call && value.state != nullptr;
  return has && value.state->kind == PickleKind::dict ? value.state : nullptr;
}

std::map<std::string, const PickleValue*> weights_of_module(const PickleValue& module,
                                                            const std::string& origin) {
  std::map<std::string, const PickleValue*> all;
  collect(module, "", 0, origin, all);
  return all;
}

const PickleValue* submodule(const PickleValue& module, const std::string& name) {
  const auto dot = name.find('.');
  const auto* const modules = dict_of(module, "_modules");
  const auto* const found = modules == nullptr ? nullptr : modules->find(name.substr(0, dot));
  return found == nullptr || dot == name.npos ? found : submodule(*found, name.substr(dot + 1));
}

}  // namespace model
