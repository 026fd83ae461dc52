#include "shard/is_shard.h"

#include <array>

#include "core/io.h"
#include "shard/layout.h"
#include "shard/unpacked_source.h"

namespace shard {

bool is_shard(const std::string& path) {
  if (!is_stored(path)) return false;
  const auto source = core::open_source(path);
  std::array<std::byte, layout::kFrameHeadBytes + layout::kHeaderName.size()> head;
  if (core::read_fully(*source, head) < head.size()) return false;
  const auto* const name = reinterpret_cast<const char*>(head.data() + layout::kFrameHeadBytes);
  return layout::get<std::uint32_t>(head, 0) == layout::kHeaderMagic &&
         std::string_view(name, layout::kHeaderName.size()) == layout::kHeaderName;
}

}  // namespace shard
