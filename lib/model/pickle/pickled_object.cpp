#include "model/pickle/pickled_object.h"

#include "core/error.h"

namespace model {
namespace {

constexpr int kDeepest = 32;
// Limits of one walk. A shared module is visited once per path to it, so the limit counts visited
// elements, not modules. A model of 100 layers takes about 100,000.
constexpr std::size_t kMostLooks = std::size_t{1} << 22;
constexpr std::size_t kMostModuleNameBytes = std::size_t{1} << 24;

// Returns the dict of a module's attribute such as _parameters, or null if it is no dict.
const PickleValue* dict_of(const PickleValue& module, const char* name) {
  const auto* const attributes = attributes_of(module);
  const auto* const found = attributes == nullptr ? nullptr : attributes->find(name);
  return found != nullptr && found->kind == PickleKind::dict ? found : nullptr;
}

// Collects the weights below a module within the limits of one walk.
class Collector {
 public:
  explicit Collector(std::string origin) : origin_(std::move(origin)) {}

  void collect(const PickleValue& module, const std::string& prefix, int depth) {
    expect(depth <= kDeepest);
    for (const char* kind : {"_parameters", "_buffers"})
      each(module, kind, prefix, [&](std::string name, const PickleValue& value) {
        if (value.kind != PickleKind::none) all_[std::move(name)] = &value;
      });
    each(module, "_modules", prefix, [&](const std::string& name, const PickleValue& value) {
      collect(value, name + ".", depth + 1);
    });
  }

  std::map<std::string, const PickleValue*> all() && { return std::move(all_); }

 private:
  // Visits each value of a module's dict with its full name.
  template <class Visit>
  void each(const PickleValue& module, const char* kind, const std::string& prefix,
            const Visit& visit) {
    const auto* const attributes = attributes_of(module);
    look(1 + (attributes == nullptr ? 0 : attributes->items.size()));
    const auto* const dict = dict_of(module, kind);
    if (dict == nullptr) return;
    look(dict->items.size());
    for (std::size_t i = 0; i + 1 < dict->items.size(); i += 2) {
      if (dict->items[i]->kind != PickleKind::text) continue;
      const auto& end = dict->items[i]->text;
      expect((name_bytes_ += prefix.size() + end.size()) <= kMostModuleNameBytes);
      visit(prefix + end, *dict->items[i + 1]);
    }
  }
  void look(std::size_t times) { expect((looks_ += times) <= kMostLooks); }
  void expect(bool holds) const {
    if (!holds)
      core::fail(core::Code::bad_data, "{}: its modules are too many, or contain each other",
                 origin_);
  }

  std::string origin_;
  std::size_t looks_ = 0, name_bytes_ = 0;
  std::map<std::string, const PickleValue*> all_;
};

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
  Collector collector(origin);
  collector.collect(module, "", 0);
  return std::move(collector).all();
}

const PickleValue* submodule(const PickleValue& module, const std::string& name) {
  const auto dot = name.find('.');
  const auto* const modules = dict_of(module, "_modules");
  const auto* const found = modules == nullptr ? nullptr : modules->find(name.substr(0, dot));
  return found == nullptr || dot == name.npos ? found : submodule(*found, name.substr(dot + 1));
}

}  // namespace model
