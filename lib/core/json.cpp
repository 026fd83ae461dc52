#include "core/json.h"

#include "core/error.h"

namespace core {

Json parse_json(std::string_view text, const std::string& origin, int max_depth) {
  const auto guard = [&](int depth, Json::parse_event_t, Json&) {
    if (depth > max_depth) throw Error(Code::bad_data, origin + ": JSON nested too deeply");
    return true;
  };
  try {
    return Json::parse(text.begin(), text.end(), guard);
  } catch (const Json::parse_error& error) {
    fail(Code::bad_data, "{}: not JSON (byte {})", origin, error.byte);
  } catch (const Json::exception&) {
    fail(Code::bad_data, "{}: not JSON", origin);
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
