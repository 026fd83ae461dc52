// Any model.safetensors.index.json names files of its own folder or gives an Error.

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "core/error.h"
#include "fuzz/target.h"
#include "model/tensor_files.h"
#include "nn/base/torch.h"

FUZZ_TARGET(tensor_index)(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const auto files = model::parse_tensor_index(core::parse_json(text, "index"), "index");
    for (const auto& [tensor, file] : files) {
      const auto path = (std::filesystem::path("/folder") / file).lexically_normal();
      if (path.parent_path() != "/folder" || path.filename().empty()) std::abort();
    }
  } catch (const core::Error& error) {
    if (error.code() != core::Code::bad_data) std::abort();
  }
}
