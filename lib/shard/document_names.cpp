#include "shard/document_names.h"

#include "core/error.h"
#include "core/hash.h"
#include "core/io.h"
#include "core/plain_text.h"

namespace shard {
namespace {

using core::Code;
using core::fail;

}  // namespace

std::string write_names(const std::string& path, const std::vector<std::string>& names) {
  std::string text;
  for (const auto& name : names) {
    if (name.find('\n') != name.npos) fail(Code::bad_data, "{}: a name with a newline", path);
    text += name;
    text += '\n';
  }
  core::write_file(path, text);
  return core::hash128(text).hex();
}

std::vector<std::string> read_names(const std::string& path, std::uint64_t count,
                                    const std::string& hash) {
  const std::string text = core::read_text(path, std::size_t{1} << 36);
  if (core::hash128(text).hex() != hash)
    fail(Code::bad_data, "{}: corrupt file: checksum mismatch", path);
  std::vector<std::string> names;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    if (end == text.npos || names.size() == count) break;
    names.push_back(text.substr(at, end - at));
    at = end + 1;
    if (core::utf8_length(names.back()) != names.back().size()) break;
    if (at == text.size() && names.size() == count) return names;
  }
  fail(Code::bad_data, "{}: does not have {} lines of names", path, count);
}

}  // namespace shard
