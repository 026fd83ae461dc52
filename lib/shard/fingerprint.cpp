#include "shard/fingerprint.h"

#include <cstring>
#include <vector>

#include "core/error.h"
#include "shard/header_json.h"
#include "shard/layout.h"

namespace shard {
namespace {

__extension__ typedef unsigned __int128 U128;

constexpr U128 kPrime = (U128{1} << 127) - 1;
// Any large generic number would do; this is the first 126 bits of pi's fraction.
constexpr U128 kBase = (U128{0x090fdaa22168c234u} << 64) | 0xc4c6628b80dc1cd1u;

U128 reduce(U128 x) {
  x = (x & kPrime) + (x >> 127);
  return x >= kPrime ? x - kPrime : x;
}

// Multiplies a, b < 2^127 - 1. The product has 254 bits: high * 2^128 + low, and 2^128 = 2 modulo
// the prime.
U128 multiply(U128 a, U128 b) {
  const std::uint64_t a1 = static_cast<std::uint64_t>(a >> 64), a0 = static_cast<std::uint64_t>(a);
  const std::uint64_t b1 = static_cast<std::uint64_t>(b >> 64), b0 = static_cast<std::uint64_t>(b);
  const U128 middle = U128{a1} * b0 + U128{a0} * b1;  // < 2^128, because a1, b1 < 2^63
  U128 high = U128{a1} * b1 + (middle >> 64);
  const U128 low0 = U128{a0} * b0;
  const U128 low = low0 + (middle << 64);
  if (low < low0) ++high;
  return reduce(reduce(low) + reduce(high << 1));
}

U128 power(U128 base, std::uint64_t n) {
  U128 result = 1;
  for (; n > 0; n >>= 1, base = multiply(base, base))
    if (n & 1) result = multiply(result, base);
  return result;
}

U128 number(const core::Digest& d) { return reduce((U128{d.high} << 64) | d.low); }
core::Digest digest(U128 x) {
  return {static_cast<std::uint64_t>(x >> 64), static_cast<std::uint64_t>(x)};
}
// Adds two numbers below the prime; the sum fits in 128 bits.
core::Digest sum(U128 a, U128 b) { return digest(reduce(a + b)); }

}  // namespace

void Chain::append(const core::Digest& digest) {
  value_ = sum(multiply(number(value_), kBase), number(digest));
}

void Chain::append_chain(const Chain& next, std::uint64_t n) {
  value_ = sum(multiply(number(value_), power(kBase, n)), number(next.value_));
}

Chain Chain::from(const core::Digest& value) {
  Chain chain;
  chain.value_ = value;
  return chain;
}

Chain Chain::read(const core::Json& json, const std::string& origin) {
  const auto hex = core::get<std::string>(json, "digest", origin);
  try {
    return from(core::Digest::from_hex(hex));
  } catch (const core::Error& error) {
    core::fail(error.code(), "{}: \"digest\": {}", origin, error.what());
  }
}

void Content::append(const core::Digest& document_data, std::uint64_t n_elements,
                     std::uint64_t source_bytes, std::uint64_t source_words,
                     std::span<const Span> marks) {
  std::vector<std::uint64_t> numbers = {n_elements, source_bytes, source_words};
  for (const auto& mark : marks) numbers.insert(numbers.end(), {mark.begin, mark.end});
  ++documents;
  elements += n_elements;
  boundaries.append(core::hash128(std::as_bytes(std::span(numbers))));
  data.append(document_data);
}

void Content::append(const Content& next) {
  documents += next.documents;
  elements += next.elements;
  boundaries.append_chain(next.boundaries, next.documents);
  data.append_chain(next.data, next.documents);
}

core::Digest fingerprint(const Header& header, const Content& content) {
  core::Bytes bytes;
  layout::put(bytes, core::hash128(header_json(header)));
  layout::put(bytes, core::hash128(header.tokenizer));
  layout::put(bytes, content.documents);
  layout::put(bytes, content.boundaries.value());
  layout::put(bytes, content.elements);
  layout::put(bytes, content.data.value());
  return core::hash128(bytes);
}

}  // namespace shard
