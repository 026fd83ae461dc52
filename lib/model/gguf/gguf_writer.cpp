#include "model/gguf/gguf_writer.h"

#include <cstring>
#include <type_traits>

#include "core/error.h"

namespace model {
namespace {

constexpr std::size_t kStep = 32;

// Returns the number of a metadata type (gguf_file.cpp).
template <class T>
constexpr std::uint32_t type_number() {
  if constexpr (std::is_same_v<T, bool>) return 7;
  if constexpr (std::is_same_v<T, std::uint32_t>) return 4;
  if constexpr (std::is_same_v<T, std::int32_t>) return 5;
  if constexpr (std::is_same_v<T, float>) return 6;
  return 8;
}
constexpr std::uint32_t kArrayNumber = 9;

class Header {
 public:
  template <class T>
  void raw(T value) {
    const auto at = bytes_.size();
    bytes_.resize(at + sizeof value);
    std::memcpy(bytes_.data() + at, &value, sizeof value);
  }
  void text(const std::string& text) {
    raw(std::uint64_t{text.size()});
    for (const char c : text) bytes_.push_back(static_cast<std::byte>(c));
  }
  void element(bool value) { raw(static_cast<std::uint8_t>(value)); }
  void element(const std::string& value) { text(value); }
  template <class T>
  void element(T value) {
    raw(value);
  }
  template <class T>
  void value(const T& value) {
    raw(type_number<T>());
    element(value);
  }
  template <class T>
  void value(const std::vector<T>& values) {
    raw(kArrayNumber), raw(type_number<T>()), raw(std::uint64_t{values.size()});
    for (std::size_t i = 0; i < values.size(); ++i) element(static_cast<T>(values[i]));
  }
  void pad() { bytes_.resize((bytes_.size() + kStep - 1) / kStep * kStep); }
  const core::Bytes& bytes() const { return bytes_; }

 private:
  core::Bytes bytes_;
};

}  // namespace

std::size_t GgufNewTensor::bytes() const {
  std::size_t elements = 1;
  for (const auto n : shape) elements *= static_cast<std::size_t>(n);
  return elements / type->elements * type->bytes;
}

void write_gguf(core::ByteSink& sink, const GgufMetadata& metadata,
                const std::vector<GgufNewTensor>& tensors,
                const std::function<std::vector<float>(std::size_t)>& numbers) {
  Header header;
  for (const char c : std::string_view("GGUF")) header.raw(c);
  header.raw(std::uint32_t{3});
  header.raw(std::uint64_t{tensors.size()}), header.raw(std::uint64_t{metadata.size()});
  for (const auto& [key, value] : metadata) {
    header.text(key);
    std::visit([&](const auto& of) { header.value(of); }, value);
  }
  std::uint64_t offset = 0;
  const auto padded = [](std::uint64_t n) { return (n + kStep - 1) / kStep * kStep; };
  for (const auto& tensor : tensors) {
    if (static_cast<std::size_t>(tensor.shape.back()) % tensor.type->elements != 0)
      core::fail(core::Code::bug, "tensor {}: rows are not whole blocks", tensor.name);
    header.text(tensor.name);
    header.raw(static_cast<std::uint32_t>(tensor.shape.size()));
    for (auto n = tensor.shape.rbegin(); n != tensor.shape.rend(); ++n)
      header.raw(static_cast<std::uint64_t>(*n));
    header.raw(tensor.type->id), header.raw(offset);
    offset += padded(tensor.bytes());
  }
  header.pad();
  sink.write(header.bytes());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    core::Bytes blocks(padded(tensors[i].bytes()));
    gguf_pack(*tensors[i].type, numbers(i), blocks.data());
    sink.write(blocks);
  }
}

}  // namespace model
