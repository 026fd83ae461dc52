#include "core/json.h"

#include "core/error.h"
#include "core/json_line.h"

namespace core {
namespace {

// Explains what Python writes, or what is not UTF-8; else gives the byte that ends the parse.
[[noreturn]] void refuse(std::string_view text, const std::string& origin, std::size_t byte) {
  const MendedJson mended = mend_json(text);
  if (!mended.constant.empty())
    fail(Code::bad_data, "{}: {}; write null or leave it out", origin,
         why_no_constant(mended.constant));
  if (!mended.not_utf8.empty()) fail(Code::bad_data, "{}: {}", origin, mended.not_utf8);
  if (mended.only_numbers() && byte == 0)
    fail(Code::bad_data, "{}: a number is beyond the range of a double", origin);
  if (byte > 0) fail(Code::bad_data, "{}: not JSON (byte {})", origin, byte);
  fail(Code::bad_data, "{}: not JSON", origin);
}

}  // namespace

Json parse_json(std::string_view text, const std::string& origin, int max_depth) {
  const auto guard = [&](int depth, Json::parse_event_t, Json&) {
    if (depth > max_depth) throw Error(Code::bad_data, origin + ": JSON nested too deeply");
    return true;
  };
  try {
    return Json::parse(text.begin(), text.end(), guard);
  } catch (const Json::parse_error& error) {
    refuse(text, origin, error.byte);
  } catch (const Json::exception&) {
    refuse(text, origin, 0);
  }
}

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}
std::string dump(const OrderedJson& json) {
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}
std::string dump_pretty(const OrderedJson& json) {
  return json.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

}  // namespace core
