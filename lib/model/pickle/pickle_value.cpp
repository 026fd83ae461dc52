#include "model/pickle/pickle_value.h"

namespace model {
namespace {

const PickleValue* item(const PickleValue* tuple, std::size_t i) {
  return tuple != nullptr && tuple->kind == PickleKind::tuple && i < tuple->items.size()
             ? tuple->items[i]
             : nullptr;
}

bool is_text(const PickleValue* value) {
  return value != nullptr && value->kind == PickleKind::text;
}

// Limits: bytes of the widest number, and of its text in UTF-8. Longer texts are not copied,
// because one text may be an argument of many calls.
constexpr std::size_t kMostBytes = 8, kMostEncoded = 2 * kMostBytes;

// Returns "i8" for dtype("i8", ...) with the state (version, byte order, ...), or an empty string
// for any other type.
std::string_view type_of(const PickleValue* dtype) {
  if (dtype == nullptr) return {};
  const auto* const name = item(dtype->arguments_of("numpy dtype"), 0);
  const auto* const order = item(dtype->state, 1);
  if (!is_text(name) || !is_text(order) || order->text == ">") return {};
  return name->text;
}

// Returns the bytes. Before protocol 3 they are the call encode(text, "latin1"), where a character
// is a byte.
std::optional<std::string> bytes_of(const PickleValue* value) {
  if (value == nullptr) return std::nullopt;
  if (value->kind == PickleKind::bytes && value->text.size() <= kMostBytes) return value->text;
  const auto* const encoded = item(value->arguments_of("_codecs encode"), 0);
  if (!is_text(encoded) || encoded->text.size() > kMostEncoded) return std::nullopt;
  std::string bytes;
  const auto& text = encoded->text;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto first = static_cast<unsigned char>(text[i]);
    if (first < 0x80) {
      bytes += text[i];
    } else if ((first & 0xFE) == 0xC2 && i + 1 < text.size()) {
      bytes += static_cast<char>((first & 3) << 6 | (text[++i] & 0x3F));
    } else {
      return std::nullopt;
    }
  }
  return bytes;
}

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
  void each(
      const PickleValue& module, const char* kind, const std::string& prefix, const Visit& visit) {
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
    if (!holds) core::bad_data("{}: its modules are too many, or contain each other", origin_);
  }

  std::string origin_;
  std::size_t looks_ = 0, name_bytes_ = 0;
  std::map<std::string, const PickleValue*> all_;
};

}  // namespace

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

std::optional<PickleValue> numpy_scalar(const PickleValue& callee, const PickleValue& arguments) {
  if (!callee.is_global("numpy.core.multiarray scalar") &&
      !callee.is_global("numpy._core.multiarray scalar"))
    return std::nullopt;
  const auto type = type_of(item(&arguments, 0));
  const auto bytes = bytes_of(item(&arguments, 1));
  if (type.size() != 2 || !bytes || bytes->empty() || bytes->size() > kMostBytes ||
      bytes->size() != static_cast<std::size_t>(type[1] - '0'))
    return std::nullopt;
  std::uint64_t bits = 0;
  for (std::size_t i = bytes->size(); i-- > 0;)
    bits = bits << 8 | static_cast<unsigned char>((*bytes)[i]);
  PickleValue number;
  number.kind = type[0] == 'b'   ? PickleKind::boolean
                : type[0] == 'f' ? PickleKind::real
                                 : PickleKind::integer;
  if (type == "f8") {
    number.real = std::bit_cast<double>(bits);
  } else if (type == "f4") {
    number.real = static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  } else if (type[0] == 'i' || type[0] == 'u' || type[0] == 'b') {
    const auto unused = 64 - 8 * static_cast<int>(bytes->size());
    number.integer = static_cast<std::int64_t>(bits);
    if (type[0] == 'i')  // extend the sign
      number.integer = static_cast<std::int64_t>(bits << unused) >> unused;
    if (type[0] == 'u' && number.integer < 0) return std::nullopt;
  } else {
    return std::nullopt;
  }
  return number;
}

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

std::map<std::string, const PickleValue*> weights_of_module(
    const PickleValue& module, const std::string& origin) {
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
