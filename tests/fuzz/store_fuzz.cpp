// Any bytes as the front of a .npy file and as store.json: an answer or core::Error.

#include <cstdint>
#include <span>
#include <string>

#include "core/error.h"
#include "store/manifest.h"
#include "store/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  try {
    const auto header = store::parse_npy_header(bytes, "fuzz");
    if (header.data_offset > size) __builtin_trap();
    // What this program writes of it, it reads again.
    const auto again = store::format_npy_header(header.descr, header.shape);
    if (again.size() == store::kNpyHeaderBytes &&
        store::parse_npy_header(std::as_bytes(std::span(again)), "again").shape != header.shape)
      __builtin_trap();
  } catch (const core::Error&) {
  }
  try {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto manifest = store::manifest_from(core::parse_json(text, "fuzz"), "fuzz");
    if (core::dump(store::to_json(manifest)).empty()) __builtin_trap();
  } catch (const core::Error&) {
  }
  return 0;
}
