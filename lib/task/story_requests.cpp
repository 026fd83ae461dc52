#include "task/story_requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "core/error.h"
#include "core/json_line.h"
#include "core/separated_pieces.h"

namespace task {
namespace {

/// Returns the beginning of the answer in a request, or an empty text.
std::string opening_of(const core::Json& request, const std::string& origin) {
  const auto body = core::get<core::Json>(request, "body", origin);
  const auto messages = core::get<core::Json::array_t>(body, "messages", origin);
  if (messages.empty() || core::get<std::string>(messages.back(), "role", origin) != "assistant")
    return {};
  return core::get<std::string>(messages.back(), "content", origin);
}

bool before(const core::Digest& a, const core::Digest& b) {
  return std::pair(a.high, a.low) < std::pair(b.high, b.low);
}

}  // namespace

core::OrderedJson StoryRequest::json() const {
  core::OrderedJson body;
  body["model"] = model;
  body["messages"] = {{{"role", "user"}, {"content", instruction}}};
  if (!begun.empty()) {
    // Servers that continue an unfinished message need both settings: do not end it, and do not
    // begin another.
    body["messages"].push_back({{"role", "assistant"}, {"content", begun}});
    body["continue_final_message"] = true;
    body["add_generation_prompt"] = false;
  }
  body["temperature"] = temperature;
  body["max_tokens"] = max_tokens;
  core::OrderedJson json;
  json["custom_id"] = id;
  json["method"] = "POST";
  json["url"] = "/v1/chat/completions";
  json["body"] = body;
  return json;
}

AnswerOpenings::AnswerOpenings(core::ByteSource& requests) : file_(requests.name()) {
  core::SeparatedPieces lines(requests, "\n");
  std::string line;
  for (std::uint64_t number = 1; lines.next(line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const auto origin = fmt::format("{}:{}", file_, number);
    const auto request = core::parse_json_line(line, origin, {"custom_id", "body"});
    const auto id = core::hash128(core::get<std::string>(request, "custom_id", origin));
    requests_.push_back({id, &*distinct_.insert(opening_of(request, origin)).first});
  }
  sort();
}

void AnswerOpenings::sort() {
  std::sort(requests_.begin(), requests_.end(),
            [](const Request& a, const Request& b) { return before(a.id, b.id); });
  const auto twice = std::adjacent_find(
      requests_.begin(), requests_.end(),
      [](const Request& a, const Request& b) { return a.id == b.id && a.opening != b.opening; });
  if (twice != requests_.end())
    core::fail(core::Code::bad_data,
               "{}: two requests, with '{}' and '{}', have the same custom_id", file_,
               *twice->opening, *(twice + 1)->opening);
}

const std::string& AnswerOpenings::of(const core::Json& answer, const std::string& origin) const {
  static const std::string kNone;
  if (file_.empty()) return kNone;
  const auto custom_id = core::get<std::string>(answer, "custom_id", origin);
  const auto id = core::hash128(custom_id);
  const auto found =
      std::lower_bound(requests_.begin(), requests_.end(), id,
                       [](const Request& a, const core::Digest& b) { return before(a.id, b); });
  if (found == requests_.end() || found->id != id)
    core::fail(core::Code::bad_data, "{}: its custom_id occurs in no request of {}: '{}'", origin,
               file_, custom_id);
  return *found->opening;
}

}  // namespace task
