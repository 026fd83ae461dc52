#include "shard/elements.h"

#include <cstring>

#include "core/error.h"

namespace shard {
namespace {

template <class Stored, class T>
void widen(const std::byte* in, std::span<T> out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    Stored x;
    std::memcpy(&x, in + i * sizeof x, sizeof x);
    out[i] = x;
  }
}

[[noreturn]] void misfit(Dtype dtype, const char* wanted, const std::string& name) {
  core::fail(core::Code::bad_data, "{}: has elements of type {}; expected {}", name, name_of(dtype),
             wanted);
}

template <class T>
void decode_integers(Dtype dtype, const std::byte* in, std::span<T> out, const std::string& name) {
  switch (dtype) {
    case Dtype::u8:
      return widen<std::uint8_t>(in, out);
    case Dtype::u16:
      return widen<std::uint16_t>(in, out);
    case Dtype::u32:
      return widen<std::uint32_t>(in, out);
    case Dtype::u64:
      if constexpr (sizeof(T) == 8) return widen<std::uint64_t>(in, out);
      misfit(dtype, "at most 32 bits", name);
    case Dtype::f32:
      misfit(dtype, "integers", name);
  }
}

}  // namespace

void decode_elements(Dtype dtype, const std::byte* in, std::span<std::uint32_t> out,
                     const std::string& name) {
  decode_integers(dtype, in, out, name);
}
void decode_elements(Dtype dtype, const std::byte* in, std::span<std::uint64_t> out,
                     const std::string& name) {
  decode_integers(dtype, in, out, name);
}
void decode_elements(Dtype dtype, const std::byte* in, std::span<float> out,
                     const std::string& name) {
  if (dtype != Dtype::f32) misfit(dtype, "f32", name);
  widen<float>(in, out);
}
void decode_elements(Dtype, const std::byte* in, std::span<std::byte> out, const std::string&) {
  if (!out.empty()) std::memcpy(out.data(), in, out.size());
}

}  // namespace shard
