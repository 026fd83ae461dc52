// Any bytes as the front of a .npy file and as store.json give a result or an Error{bad_data}.

#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "core/error.h"
#include "core/hash.h"
#include "fuzz/target.h"
#include "store/manifest.h"
#include "store/npy.h"

namespace {

void expect_bad_data(const core::Error& error) {
  if (error.code() != core::Code::bad_data) std::abort();
}

}  // namespace

// Repairs store.json's hash of itself.
FUZZ_REPAIR(store)(std::vector<std::byte>& bytes) {
  auto json = core::parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, "");
  if (!json.is_object()) return;
  json.erase("hash");
  json["hash"] = core::hash128(core::dump(json)).hex();
  const std::string text = core::dump(json);
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  bytes.assign(data, data + text.size());
}

FUZZ_TARGET(store)(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  try {
    const auto header = store::parse_npy_header(bytes, "fuzz");
    if (header.data_offset > size) __builtin_trap();
    // A header that this program writes can be read again.
    const auto again = store::format_npy_header(header.descr, header.shape);
    if (again.size() == store::kNpyHeaderBytes &&
        store::parse_npy_header(std::as_bytes(std::span(again)), "again").shape != header.shape)
      __builtin_trap();
  } catch (const core::Error& error) { expect_bad_data(error); }
  try {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto manifest = store::manifest_from(core::parse_json(text, "fuzz"), "fuzz");
    if (core::dump(store::to_json(manifest)).empty()) __builtin_trap();
  } catch (const core::Error& error) { expect_bad_data(error); }
}
