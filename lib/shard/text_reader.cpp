#include "shard/text_reader.h"

#include <array>
#include <string_view>

#include "core/error.h"
#include "core/path_kind.h"
#include "core/plain_text.h"
#include "core/unnamed_file.h"
#include "shard/is_shard.h"
#include "shard/unpacked_source.h"

namespace shard {
namespace {

TextReader& reader() {
  static TextReader one;
  return one;
}

}  // namespace

void read_texts_by(TextReader with) { reader() = std::move(with); }

bool is_text(const std::string& path) {
  if (!core::is_regular_file(path) || is_shard(path)) return false;
  using core::PathKind;
  const auto kind = core::path_kind(path);
  if (kind == PathKind::config || kind == PathKind::tokenizer || kind == PathKind::lfs_pointer)
    return false;  // a user does not mean the text of these files
  std::array<std::byte, 4096> start;
  std::size_t n = 0;
  try {
    n = core::read_fully(*open_unpacked(path), start);
  } catch (const core::Error& error) {
    if (error.code() != core::Code::bad_data) throw;
    return false;  // corrupt compressed file; the reader of shards reports it
  }
  return n > 0 && core::begins_as_text({reinterpret_cast<const char*>(start.data()), n});
}

void refuse_text(const std::string& path, std::string_view give) {
  if (path != "-" && is_text(path))
    core::fail(core::Code::bad_data, "{}: is a text file; give {}", path, give);
}

std::shared_ptr<const core::RandomSource> spooled_or_made(const std::string& path) {
  const auto reads = [](const std::string& file) { return reader() && is_text(file); };
  if (path != "-" && core::is_regular_file(path))
    return reads(path) ? reader()(path, path) : nullptr;
  const auto source = core::open_source(path);
  core::UnnamedFile spooled(source->name());
  spooled.write_all_of(*source);
  return reads(spooled.path()) ? reader()(spooled.path(), source->name()) : spooled.contents();
}

}  // namespace shard
