#include "model/pickle/numpy_scalar.h"

#include <bit>
#include <string>
#include <string_view>

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

}  // namespace

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

}  // namespace model
