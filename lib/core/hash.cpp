#include "core/hash.h"

#include <xxhash.h>

#include <new>

namespace core {

Digest Digest::from_hex(std::string_view hex) {
  if (hex.size() != 32 || hex.find_first_not_of("0123456789abcdef") != hex.npos)
    bad_data("'{}' is not a fingerprint (32 hexadecimal digits)", hex.substr(0, 40));
  const auto half = [&](std::size_t at) {
    return std::stoull(std::string(hex.substr(at, 16)), nullptr, 16);
  };
  return {half(0), half(16)};
}

std::uint64_t hash64(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

Digest hash128(std::span<const std::byte> bytes) {
  const XXH128_hash_t h = XXH3_128bits(bytes.data(), bytes.size());
  return {h.high64, h.low64};
}

Digest hash128(std::string_view text) {
  return hash128(std::as_bytes(std::span(text.data(), text.size())));
}

void Hasher::Free::operator()(XXH3_state_s* state) const { XXH3_freeState(state); }

Hasher::Hasher() : state_(XXH3_createState()) {
  if (state_ == nullptr) throw std::bad_alloc();
  reset();
}

void Hasher::update(std::span<const std::byte> bytes) {
  if (!bytes.empty()) XXH3_128bits_update(state_.get(), bytes.data(), bytes.size());
}

void Hasher::reset() { XXH3_128bits_reset(state_.get()); }

Digest Hasher::digest() const {
  const XXH128_hash_t h = XXH3_128bits_digest(state_.get());
  return {h.high64, h.low64};
}

}  // namespace core
