#include "model/gguf/gguf_file.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/plain_text.h"

namespace model {
namespace {

constexpr std::string_view kMagic = "GGUF";
constexpr std::uint64_t kLeastPair = 8 + 1 + 4 + 1, kLeastTensor = 8 + 1 + 4 + 8 + 4 + 8;
constexpr std::uint64_t kMostName = 65535, kMostDimensions = 4;
constexpr std::uint64_t kMostElements = std::uint64_t{1} << 53;
constexpr int kMostDepth = 4;
constexpr const char* kAlignment = "general.alignment";

enum : std::uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kText,
  kArray,
  kU64,
  kI64,
  kF64,
  kTypesEnd
};
// Bytes of an element by type; 0: the element holds its own length.
constexpr std::array<std::uint64_t, kTypesEnd> kBytes = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

template <class T> T element(std::span<const std::byte> bytes, std::size_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
  return value;
}

// Returns the double with the shortest text among those that round to the float32: 1e-05 instead of
// 9.99999975e-06.
double shortest(float value) {
  if (!std::isfinite(value)) return value;
  return std::strtod(fmt::format("{}", value).c_str(), nullptr);
}

std::optional<double> number_at(
    std::uint32_t type, std::span<const std::byte> bytes, std::size_t i) {
  switch (type) {
    case kU8: return element<std::uint8_t>(bytes, i);
    case kI8: return element<std::int8_t>(bytes, i);
    case kU16: return element<std::uint16_t>(bytes, i);
    case kI16: return element<std::int16_t>(bytes, i);
    case kU32: return element<std::uint32_t>(bytes, i);
    case kI32: return element<std::int32_t>(bytes, i);
    case kU64: return static_cast<double>(element<std::uint64_t>(bytes, i));
    case kI64: return static_cast<double>(element<std::int64_t>(bytes, i));
    case kF32: return shortest(element<float>(bytes, i));
    case kF64: return element<double>(bytes, i);
    case kBool: return element<std::uint8_t>(bytes, i) != 0;
    default: return std::nullopt;
  }
}

}  // namespace

// Reads from the front of the rest of the file.
class GgufFile::Cursor {
 public:
  Cursor(std::span<const std::byte> bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  std::size_t at() const { return at_; }
  std::uint64_t left() const { return bytes_.size() - at_; }

  std::span<const std::byte> take(std::uint64_t n) {
    if (n > left())
      core::bad_data("{}: cut short, or damaged: {} bytes expected at byte {} of {}", name_, n, at_,
          bytes_.size());
    const auto taken = bytes_.subspan(at_, n);
    at_ += n;
    return taken;
  }
  template <class T> T number() { return element<T>(take(sizeof(T)), 0); }
  std::string_view text() {
    const auto bytes = take(number<std::uint64_t>());
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  std::string name(const char* what) {
    const auto found = text();
    if (found.empty() || found.size() > kMostName)
      core::bad_value(name_, fmt::format("the length of {} before byte {}", what, at_),
          found.size(), fmt::format("1 to {}", kMostName));
    return std::string(found);
  }
  // Skips n elements of a type.
  void skip(std::uint32_t type, std::uint64_t n, int depth, const std::string& key) {
    if (type >= kTypesEnd)
      core::bad_value(name_, "the type of " + core::printable(key), type,
          fmt::format("0 to {}", kTypesEnd - 1));
    if (kBytes[type] > 0) {
      if (n > left() / kBytes[type])
        core::bad_value(name_, "the number of elements of " + core::printable(key), n,
            fmt::format("0 to {}, which the rest of the file holds", left() / kBytes[type]));
      take(n * kBytes[type]);
      return;
    }
    if (depth == kMostDepth)
      core::bad_data("{}: {}: arrays nested too deeply", name_, core::printable(key));
    for (std::uint64_t i = 0; i < n; ++i) {
      if (type == kText) {
        text();
      } else {
        const auto inner = number<std::uint32_t>();
        const auto count = number<std::uint64_t>();
        skip(inner, count, depth + 1, key);
      }
    }
  }

 private:
  std::span<const std::byte> bytes_;
  const std::string& name_;
  std::size_t at_ = 0;
};

bool is_gguf(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;
  if (path.ends_with(".gguf")) return true;
  std::array<char, 4> start{};
  std::ifstream file(path, std::ios::binary);
  return file.read(start.data(), start.size()) &&
         std::string_view(start.data(), start.size()) == kMagic;
}

GgufFile::GgufFile(const std::string& path) : mapped_(path), name_(path), bytes_(mapped_.bytes()) {
  parse();
}

GgufFile::GgufFile(std::span<const std::byte> bytes, std::string name)
    : name_(std::move(name)), bytes_(bytes) {
  parse();
}

void GgufFile::parse() {
  Cursor cursor(bytes_, name_);
  const auto magic = cursor.take(std::min<std::uint64_t>(kMagic.size(), cursor.left()));
  if (std::string_view(reinterpret_cast<const char*>(magic.data()), magic.size()) != kMagic)
    core::bad_data("{}: not a GGUF file: it does not begin with GGUF", name_);
  const auto version = cursor.number<std::uint32_t>();
  if (version != 2 && version != 3) {
    const bool big = (version & 0xFFFF) == 0 && version != 0;
    core::bad_data("{}: GGUF of {} is not supported; convert it to version 3, little endian", name_,
        big ? "big endian" : fmt::format("version {}", version));
  }
  const auto tensors = cursor.number<std::uint64_t>(), pairs = cursor.number<std::uint64_t>();
  if (pairs > cursor.left() / kLeastPair || tensors > cursor.left() / kLeastTensor)
    core::bad_data("{}: damaged: its {} bytes cannot hold {} tensors and {} metadata", name_,
        bytes_.size(), tensors, pairs);
  for (std::uint64_t i = 0; i < pairs; ++i) {
    const auto key = cursor.name("a key");
    if (!values_.emplace(key, parse_value(cursor, key)).second)
      core::bad_data("{}: damaged: {} occurs twice", name_, core::printable(key));
  }
  for (std::uint64_t i = 0; i < tensors; ++i) parse_tensor(cursor);
  const auto alignment = whole(kAlignment).value_or(32);
  if (alignment < 1 || alignment > 1 << 20 || !std::has_single_bit<std::uint64_t>(alignment))
    core::bad_value(name_, kAlignment, alignment, "1, 2, 4, ..., 1048576");
  const auto step = static_cast<std::uint64_t>(alignment);
  const std::uint64_t start = (cursor.at() + step - 1) / step * step;
  for (auto& [name, tensor] : tensors_) {
    if (tensor.begin % step != 0)
      core::bad_data("{}: damaged: tensor {} is at {}, not a multiple of {}", name_,
          core::printable(name), tensor.begin, step);
    if (start > bytes_.size() || tensor.begin > bytes_.size() - start ||
        tensor.bytes > bytes_.size() - start - tensor.begin)
      core::bad_data("{}: cut short: tensor {} ends beyond the file's {} bytes", name_,
          core::printable(name), bytes_.size());
    tensor.begin += start;
  }
  expect_apart();
}

GgufFile::Value GgufFile::parse_value(Cursor& cursor, const std::string& key) const {
  Value value;
  value.type = cursor.number<std::uint32_t>();
  value.array = value.type == kArray;
  if (value.array) {
    value.type = cursor.number<std::uint32_t>();
    value.count = cursor.number<std::uint64_t>();
  }
  const auto begin = cursor.at();
  cursor.skip(value.type, value.count, 0, key);
  value.bytes = bytes_.subspan(begin, cursor.at() - begin);
  return value;
}

void GgufFile::parse_tensor(Cursor& cursor) {
  const auto name = cursor.name("a tensor's name");
  const auto said = core::printable(name);
  GgufTensor tensor{};
  const auto dimensions = cursor.number<std::uint32_t>();
  if (dimensions < 1 || dimensions > kMostDimensions)
    core::bad_value(name_, "the number of dimensions of tensor " + said, dimensions,
        fmt::format("1 to {}", kMostDimensions));
  std::uint64_t elements = 1;
  for (std::uint32_t i = 0; i < dimensions; ++i) {
    const auto n = cursor.number<std::uint64_t>();
    if (n == 0 || n > kMostElements / elements)
      core::bad_value(name_, "a dimension of tensor " + said, n,
          fmt::format("1 to {}", kMostElements / elements));
    elements *= n;
    tensor.shape.insert(tensor.shape.begin(), static_cast<std::int64_t>(n));
  }
  const auto id = cursor.number<std::uint32_t>();
  tensor.type = gguf_type(id);
  if (tensor.type == nullptr)
    core::bad_data("{}: tensor {} is of {}, which is not supported; supported: {}", name_, said,
        gguf_type_name(id), gguf_type_names());
  const auto inner = static_cast<std::uint64_t>(tensor.shape.back());
  if (inner % tensor.type->elements != 0)
    core::bad_value(name_, "the width of tensor " + said, inner,
        fmt::format("multiples of {}, the block of {}", tensor.type->elements, tensor.type->name));
  tensor.bytes = elements / tensor.type->elements * tensor.type->bytes;
  tensor.begin = cursor.number<std::uint64_t>();
  if (!tensors_.emplace(name, std::move(tensor)).second)
    core::bad_data("{}: damaged: tensor {} occurs twice", name_, said);
}

void GgufFile::expect_apart() const {
  auto order = core::mapped(tensors_, [](const auto& named) { return &named; });
  std::ranges::sort(order, {}, [](const auto* named) { return named->second.begin; });
  for (std::size_t i = 1; i < order.size(); ++i) {
    const auto& before = order[i - 1]->second;
    if (order[i]->second.begin < before.begin + before.bytes)
      core::bad_data("{}: damaged: tensors {} and {} overlap", name_,
          core::printable(order[i - 1]->first), core::printable(order[i]->first));
  }
}

const GgufFile::Value* GgufFile::find(const std::string& key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

bool GgufFile::is_list(const std::string& key) const {
  const Value* const value = find(key);
  return value != nullptr && value->array;
}

std::vector<std::string> GgufFile::keys(const std::string& prefix) const {
  std::vector<std::string> found;
  for (auto at = values_.lower_bound(prefix); at != values_.end() && at->first.starts_with(prefix);
       ++at)
    found.push_back(at->first);
  return found;
}

std::optional<double> GgufFile::number(const std::string& key) const {
  const Value* const value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto found = value->array ? std::nullopt : number_at(value->type, value->bytes, 0);
  if (!found || value->type == kBool || !std::isfinite(*found))
    core::bad_data("{}: {} is not a number", name_, key);
  return found;
}

std::optional<std::int64_t> GgufFile::whole(const std::string& key) const {
  const Value* const value = find(key);
  if (value == nullptr) return std::nullopt;
  std::optional<double> first;
  for (std::uint64_t i = 0; i < value->count; ++i) {
    const auto found = number_at(value->type, value->bytes, i);
    if (!found || value->type == kBool || *found != std::floor(*found) ||
        std::abs(*found) > static_cast<double>(kMostElements))
      break;
    if (first && *found != *first)
      core::bad_config("{}: {} differs between layers, which is not supported", name_, key);
    first = found;
    if (i + 1 == value->count) return static_cast<std::int64_t>(*first);
  }
  core::bad_data("{}: {} is not a whole number", name_, key);
}

std::optional<bool> GgufFile::truth(const std::string& key) const {
  const Value* const value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->array || value->type != kBool)
    core::bad_data("{}: {} is not true or false", name_, key);
  return value->bytes[0] != std::byte{0};
}

std::optional<std::string_view> GgufFile::text(const std::string& key) const {
  const Value* const value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->array || value->type != kText) core::bad_data("{}: {} is not a text", name_, key);
  return Cursor(value->bytes, name_).text();
}

std::vector<std::string_view> GgufFile::texts(const std::string& key) const {
  const Value* const value = find(key);
  if (value == nullptr) return {};
  if (!value->array || (value->type != kText && value->count > 0))
    core::bad_data("{}: {} is not a list of texts", name_, key);
  Cursor cursor(value->bytes, name_);
  return core::generated(value->count, [&](auto) { return cursor.text(); });
}

std::vector<double> GgufFile::numbers(const std::string& key) const {
  const Value* const value = find(key);
  if (value == nullptr) return {};
  if (!value->array || value->type == kText || value->type == kArray)
    core::bad_data("{}: {} is not a list of numbers", name_, key);
  return core::generated(
      value->count, [&](auto i) { return *number_at(value->type, value->bytes, i); });
}

}  // namespace model
