#include "model/gguf/gguf_blocks.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

namespace model {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are read as they lie");

using Byte = std::uint8_t;
constexpr int kSmall = 32, kLarge = 256;  // elements of a block

// All products below are exact: a float16 has 11 bits, a scale at most 8, a number at most 8, and
// no product needs more than 24. A fused multiply-add therefore gives the same bits.

// T is c10::Half or c10::BFloat16.
template <class T> float widened(const Byte* p) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, p, sizeof bits);
  return T(bits, T::from_bits());
}
float half_at(const Byte* p) { return widened<c10::Half>(p); }

int nibble(const Byte* p, int low_or_high) { return p[0] >> 4 * low_or_high & 15; }

void unpack_f32(const Byte* in, float* out) { std::memcpy(out, in, sizeof *out); }
void unpack_f16(const Byte* in, float* out) { *out = half_at(in); }
void unpack_bf16(const Byte* in, float* out) { *out = widened<c10::BFloat16>(in); }

// Layout: d, 32 numbers of 8 bits.
void unpack_q8_0(const Byte* in, float* out) {
  const float d = half_at(in);
  for (int i = 0; i < kSmall; ++i)
    out[i] = static_cast<float>(static_cast<std::int8_t>(in[2 + i])) * d;
}

// Q4_0, Q4_1, Q5_0, Q5_1. Layout: d, m (Q4_1, Q5_1), the fifth bit of each number (Q5_0, Q5_1), 16
// bytes. The low halves are the first 16 numbers. Without m, the middle of the numbers is zero.
template <bool least, bool fifth> void unpack_small(const Byte* in, float* out) {
  const float d = half_at(in), m = least ? half_at(in + 2) : 0;
  const Byte *const high = in + (least ? 4 : 2), *const low = high + (fifth ? 4 : 0);
  for (int i = 0; i < kSmall; ++i) {
    const int top = fifth ? (high[i / 8] >> i % 8 & 1) << 4 : 0;
    const int number = (nibble(low + i % 16, i / 16) | top) - (least ? 0 : fifth ? 16 : 8);
    out[i] = d * static_cast<float>(number);
    if (least) out[i] += m;
  }
}

void unpack_iq4_nl(const Byte* in, float* out) {
  constexpr std::array<std::int8_t, 16> kValues = {
      -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
  const float d = half_at(in);
  for (int i = 0; i < kSmall; ++i)
    out[i] =
        d * static_cast<float>(kValues[static_cast<std::size_t>(nibble(in + 2 + i % 16, i / 16))]);
}

// Returns number i of 256 numbers of 2 bits. 32 bytes hold 128 of them; the lowest bits are the
// first 32.
int two_bits(const Byte* in, int i) { return in[i / 128 * 32 + i % 32] >> i % 128 / 32 * 2 & 3; }

// Layout: 16 scales and minima of 4 bits, 64 bytes of numbers, d, dmin.
void unpack_q2_k(const Byte* in, float* out) {
  const Byte* const numbers = in + 16;
  const float d = half_at(in + 80), least = half_at(in + 82);
  for (int part = 0; part < 16; ++part) {
    const float scale = d * static_cast<float>(in[part] & 15);
    const float minimum = least * static_cast<float>(in[part] >> 4);
    for (int i = 16 * part; i < 16 * part + 16; ++i)
      out[i] = scale * static_cast<float>(two_bits(numbers, i)) - minimum;
  }
}

// Layout: 32 bytes of third bits, 64 bytes of numbers, 16 scales of 6 bits, d.
void unpack_q3_k(const Byte* in, float* out) {
  const Byte *const high = in, *const numbers = in + 32, *const scales = in + 96;
  const float d = half_at(in + 108);
  for (int part = 0; part < 16; ++part) {
    const int low = nibble(scales + part % 8, part / 8);
    const int top = scales[8 + part % 4] >> part / 4 * 2 & 3;
    const float scale = d * static_cast<float>((low | top << 4) - 32);
    for (int i = 16 * part; i < 16 * part + 16; ++i) {
      const bool set = (high[i % 32] >> i / 32 & 1) != 0;
      out[i] = scale * static_cast<float>(two_bits(numbers, i) - (set ? 0 : 4));
    }
  }
}

// The scale and the minimum of 32 numbers, packed in 6 bits each: eight pairs in 12 bytes.
struct ScaleAndMinimum {
  int scale, minimum;
};
ScaleAndMinimum scale_at(const Byte* in, int part) {
  if (part < 4) return {in[part] & 63, in[part + 4] & 63};
  const int i = part - 4;
  return {(in[8 + i] & 15) | (in[i] >> 2 & 48), in[8 + i] >> 4 | (in[4 + i] >> 2 & 48)};
}

// Q4_K, Q5_K. Layout: d, dmin, scales, 32 bytes of fifth bits (Q5_K only), 128 bytes of numbers.
template <bool fifth> void unpack_k(const Byte* in, float* out) {
  const Byte *const high = in + 16, *const numbers = high + (fifth ? 32 : 0);
  const float d = half_at(in), least = half_at(in + 2);
  for (int part = 0; part < kLarge / 32; ++part) {
    const auto at = scale_at(in + 4, part);
    const float scale = d * static_cast<float>(at.scale);
    const float minimum = least * static_cast<float>(at.minimum);
    for (int i = 0; i < 32; ++i) {
      const int top = fifth ? (high[i] >> part & 1) << 4 : 0;
      const int number = nibble(numbers + part / 2 * 32 + i, part % 2) | top;
      out[32 * part + i] = scale * static_cast<float>(number) - minimum;
    }
  }
}

// Layout: 128 bytes of low bits, 64 bytes of the two high bits, 16 scales of 8 bits, d.
void unpack_q6_k(const Byte* in, float* out) {
  const Byte *const high = in + 128, *const scales = in + 192;
  const float d = half_at(in + 208);
  for (int part = 0; part < 16; ++part) {
    const float scale = d * static_cast<float>(static_cast<std::int8_t>(scales[part]));
    for (int i = 16 * part; i < 16 * part + 16; ++i) {
      const int low = nibble(in + i / 128 * 64 + i % 64, i % 128 / 64);
      out[i] = scale * static_cast<float>((low | two_bits(high, i) << 4) - 32);
    }
  }
}

// Rounds as IEEE 754 does. Numbers that are too large become infinity.
template <class T> void put(std::byte* out, float value) {
  const T rounded(value);
  std::memcpy(out, &rounded, sizeof rounded);
}

void pack_f32(const float* in, std::byte* out) { std::memcpy(out, in, sizeof *in); }
void pack_f16(const float* in, std::byte* out) { put<c10::Half>(out, *in); }
void pack_bf16(const float* in, std::byte* out) { put<c10::BFloat16>(out, *in); }

// The number of the largest magnitude; the first of several.
float largest_of(const float* in) {
  return *std::max_element(
      in, in + kSmall, [](float a, float b) { return std::abs(a) < std::abs(b); });
}
float inverse_of(float d) { return std::isfinite(1 / d) ? 1 / d : 0; }

void pack_q8_0(const float* in, std::byte* out) {
  const float d = std::abs(largest_of(in)) / 127, inverse = inverse_of(d);
  put<c10::Half>(out, d);
  for (int i = 0; i < kSmall; ++i)
    out[2 + i] = static_cast<std::byte>(static_cast<std::int8_t>(std::round(in[i] * inverse)));
}

// Rounds (x - from) inverse + half down to 0 to 15.
void pack_nibbles(const float* in, float from, float inverse, float half, std::byte* out) {
  const auto nibble = [&](int i) {
    // volatile: not fused with the addition, as in llama.cpp's package
    const volatile float product = (in[i] - from) * inverse;
    return static_cast<int>(std::clamp(product + half, 0.0F, 15.0F));
  };
  for (int i = 0; i < 16; ++i) out[i] = static_cast<std::byte>(nibble(i) | nibble(16 + i) << 4);
}

void pack_q4_0(const float* in, std::byte* out) {
  const float d = largest_of(in) / -8;
  put<c10::Half>(out, d);
  pack_nibbles(in, 0, inverse_of(d), 8.5F, out + 2);
}

void pack_q4_1(const float* in, std::byte* out) {
  const auto [least, most] = std::minmax_element(in, in + kSmall);
  const float d = (*most - *least) / 15;
  put<c10::Half>(out, d);
  put<c10::Half>(out + 2, *least);
  pack_nibbles(in, *least, inverse_of(d), 0.5F, out + 4);
}

constexpr std::array kTypes = {GgufType{0, "F32", 1, 4, unpack_f32, pack_f32},
    GgufType{1, "F16", 1, 2, unpack_f16, pack_f16},
    GgufType{30, "BF16", 1, 2, unpack_bf16, pack_bf16},
    GgufType{8, "Q8_0", 32, 34, unpack_q8_0, pack_q8_0},
    GgufType{2, "Q4_0", 32, 18, unpack_small<false, false>, pack_q4_0},
    GgufType{3, "Q4_1", 32, 20, unpack_small<true, false>, pack_q4_1},
    GgufType{6, "Q5_0", 32, 22, unpack_small<false, true>},
    GgufType{7, "Q5_1", 32, 24, unpack_small<true, true>},
    GgufType{10, "Q2_K", 256, 84, unpack_q2_k}, GgufType{11, "Q3_K", 256, 110, unpack_q3_k},
    GgufType{12, "Q4_K", 256, 144, unpack_k<false>}, GgufType{13, "Q5_K", 256, 176, unpack_k<true>},
    GgufType{14, "Q6_K", 256, 210, unpack_q6_k}, GgufType{20, "IQ4_NL", 32, 18, unpack_iq4_nl}};

struct Unread {
  std::uint32_t id;
  std::string_view name;
};
constexpr std::array kUnread = {Unread{9, "Q8_1"}, Unread{15, "Q8_K"}, Unread{16, "IQ2_XXS"},
    Unread{17, "IQ2_XS"}, Unread{18, "IQ3_XXS"}, Unread{19, "IQ1_S"}, Unread{21, "IQ3_S"},
    Unread{22, "IQ2_S"}, Unread{23, "IQ4_XS"}, Unread{24, "I8"}, Unread{25, "I16"},
    Unread{26, "I32"}, Unread{27, "I64"}, Unread{28, "F64"}, Unread{29, "IQ1_M"},
    Unread{34, "TQ1_0"}, Unread{35, "TQ2_0"}, Unread{39, "MXFP4"}, Unread{40, "NVFP4"}};

}  // namespace

const GgufType* gguf_type(std::uint32_t id) { return core::find_by(kTypes, id, &GgufType::id); }

const GgufType* gguf_type_to_write(std::string_view name) {
  const auto* const type = core::find_by(kTypes, name, &GgufType::name);
  return type != nullptr && type->pack != nullptr ? type : nullptr;
}

void gguf_pack(const GgufType& type, std::span<const float> numbers, std::byte* blocks) {
  for (std::size_t i = 0; i < numbers.size(); i += type.elements, blocks += type.bytes)
    type.pack(numbers.data() + i, blocks);
}

std::string gguf_type_name(std::uint32_t id) {
  if (const auto* const type = gguf_type(id)) return std::string(type->name);
  if (auto* const type = core::find_by(kUnread, id, &Unread::id)) return std::string(type->name);
  return fmt::format("type {}", id);
}

std::string gguf_type_names() {
  return fmt::format("{}", fmt::join(core::mapped(kTypes, &GgufType::name), ", "));
}

void gguf_unpack(const GgufType& type, std::span<const std::byte> blocks, float* out) {
  const auto* in = reinterpret_cast<const Byte*>(blocks.data());
  if (type.id == 0) {
    std::memcpy(out, in, blocks.size());
    return;
  }
  for (std::size_t n = blocks.size() / type.bytes; n > 0; --n) {
    type.unpack(in, out);
    in += type.bytes;
    out += type.elements;
  }
}

}  // namespace model
