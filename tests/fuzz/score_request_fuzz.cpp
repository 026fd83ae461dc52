// Any bytes give requests or an error in a line. A request has the members of its kind.

#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>

#include "core/json_line.h"
#include "fuzz/target.h"
#include "task/score_request.h"

namespace {

void check(const task::ScoreRequest& request) {
  using Kind = task::ScoreRequest::Kind;
  if (!request.error.empty()) {
    if (request.error.rfind("here:", 0) != 0) std::abort();
    return;
  }
  const auto n = request.continuations.size();
  if (request.kind == Kind::text && n != 0) std::abort();
  if (request.kind == Kind::continuation && n != 1) std::abort();
  if (request.kind == Kind::choices && n == 0) std::abort();
  if (request.gold && (request.kind != Kind::choices || *request.gold >= n)) std::abort();
}

core::Json parse_nearly(const std::string& text) {
  return core::Json::parse(core::mend_json(text).text);
}

}  // namespace

FUZZ_TARGET(score_request)(const std::uint8_t* data, std::size_t size) {
  std::istringstream text(std::string(reinterpret_cast<const char*>(data), size));
  for (std::string line; std::getline(text, line);) {
    const auto request = task::parse_score_request(line, true, "here:1");
    check(request);
    if (request.id && parse_nearly(*request.id) != parse_nearly(line).at("id")) std::abort();
    const auto plain = task::parse_score_request(line, false, "here:1");
    if (plain.text != line || !plain.error.empty()) std::abort();
  }
}
