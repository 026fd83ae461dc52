#include "core/file_text.h"

#include <span>

#include "core/error.h"
#include "core/io.h"
#include "core/json_line.h"

namespace core {

std::string read_file(const std::string& path, std::size_t limit) {
  const RandomFile file(path);
  if (file.size() > limit) fail(Code::bad_data, "{}: larger than {} bytes", path, limit);
  std::string text(static_cast<std::size_t>(file.size()), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(text.data(), text.size())));
  return text;
}

Json read_json(const std::string& path, std::size_t limit) {
  const std::string text = read_file(path, limit);
  try {
    return parse_json(text, path);
  } catch (const Error&) {
    const MendedJson mended = mend_json(text);
    if (!mended.only_numbers()) throw;
    return parse_json(mended.text, path);
  }
}

}  // namespace core
