#include "task/score_request.h"

#include "core/json_line.h"
#include "core/plain_text.h"
#include "shard/unpacked_source.h"

namespace task {
namespace {

template <class Value> std::size_t best(const std::vector<ChoiceScore>& choices, Value value) {
  return static_cast<std::size_t>(std::ranges::max_element(choices, {}, value) - choices.begin());
}

// Returns the mean, or 0 for no items.
double each(double sum, std::int64_t n) {
  return sum / static_cast<double>(std::max<std::int64_t>(1, n));
}

using core::Json;

const std::vector<std::string_view> kMembers = {
    "text", "context", "continuation", "choices", "messages"};

void read_choices(const Json& json, ScoreRequest& request) {
  request.kind = ScoreRequest::Kind::choices;
  request.continuations = core::get<std::vector<std::string>>(json, "choices", request.origin);
  if (request.continuations.empty()) core::bad_data("{}: has no choices", request.origin);
  if (!json.contains("gold") || json.at("gold").is_null()) return;
  const auto gold = core::get<std::int64_t>(json, "gold", request.origin);
  if (gold < 0 || gold >= std::ssize(request.continuations))
    core::bad_data("{}: \"gold\" is {}, but the choices are 0 to {}", request.origin, gold,
        request.continuations.size() - 1);
  request.gold = static_cast<std::size_t>(gold);
}

void read_members(const Json& json, const std::string& line, ScoreRequest& request) {
  const auto has = [&](const char* key) { return json.contains(key); };
  if (has("special") && !json.at("special").is_null())
    request.special = core::get<bool>(json, "special", request.origin);
  if (has("text")) {
    if (has("context") || has("continuation") || has("choices") || has("messages"))
      core::bad_data("{}: \"text\" cannot be combined with \"context\"; give one", request.origin);
    request.text = core::get<std::string>(json, "text", request.origin);
    return;
  }
  if (has("messages")) {
    if (has("context"))
      core::bad_data(
          "{}: \"context\" and \"messages\" exclude each other; give one", request.origin);
    request.messages = *core::member_text(line, "messages");
  } else {
    if (!has("context")) core::bad_data("{}: has neither \"text\" nor \"context\"", request.origin);
    request.text = core::get<std::string>(json, "context", request.origin);
  }
  if (has("continuation") == has("choices"))
    core::bad_data("{}: \"{}\" needs \"continuation\" or \"choices\"; give one", request.origin,
        has("messages") ? "messages" : "context");
  if (has("choices")) return read_choices(json, request);
  request.kind = ScoreRequest::Kind::continuation;
  request.continuations = {core::get<std::string>(json, "continuation", request.origin)};
}

}  // namespace

std::vector<std::pair<std::string, std::size_t>> predict(const std::vector<ChoiceScore>& choices) {
  std::vector<std::pair<std::string, std::size_t>> predictions = {
      {"sum", best(choices, [](const auto& c) { return c.log_prob; })},
      {"byte", best(choices, [](const auto& c) { return each(c.log_prob, c.bytes); })},
      {"token", best(choices, [](const auto& c) { return each(c.log_prob, c.tokens); })}};
  if (std::ranges::all_of(choices, [](const auto& c) { return c.domain_log_prob.has_value(); }))
    predictions.emplace_back("mutual_information",
        best(choices, [](const auto& c) { return c.log_prob - *c.domain_log_prob; }));
  return predictions;
}

Accuracy accuracy(const std::vector<bool>& right) {
  constexpr double kZ = 1.959963984540054;  // 97.5 % quantile of the normal distribution
  const auto n = static_cast<double>(right.size());
  Accuracy found{static_cast<double>(std::ranges::count(right, true)) / n, {}, {}};
  if (right.size() < 2) return found;
  const double share = found.share, z2 = kZ * kZ / n;
  const double middle = (share + z2 / 2) / (1 + z2);
  const double reach = std::sqrt(z2 * (share * (1 - share) + z2 / 4)) / (1 + z2);
  found.low = share == 0 ? 0 : middle - reach;
  found.high = share == 1 ? 1 : middle + reach;
  return found;
}

ScoreRequest parse_score_request(const std::string& line, bool jsonl, const std::string& origin) {
  ScoreRequest request;
  request.origin = origin;
  if (!jsonl) {
    request.text = line;
    return request;
  }
  try {
    const Json json = core::parse_json_line(line, origin, kMembers);
    if (!json.is_object()) core::bad_data("{}: not a JSON object", origin);
    request.id = core::member_text(line, "id");
    read_members(json, line, request);
  } catch (const core::Error& error) {
    request.error = error.what();
    if (request.id) return request;
    // Reads the id of a line that is nearly JSON.
    const std::string mended = core::mend_json(line).text;
    if (const Json json = Json::parse(mended, nullptr, false); json.is_object())
      request.id = core::member_text(mended, "id");
  }
  return request;
}

ScoreRequestReader::ScoreRequestReader(std::vector<std::string> paths, std::string format)
    : paths_(std::move(paths)), format_(std::move(format)) {
  for (const auto& path : paths_) regular_ = regular_ && shard::is_stored(path);
  open();
}

bool ScoreRequestReader::open() {
  if (opened_ == paths_.size()) return false;
  lines_.emplace(shard::open_unpacked(paths_[opened_++]));
  jsonl_.reset();
  if (format_ != "auto") jsonl_ = format_ == "jsonl";
  return true;
}

// In a file of empty lines only, the lines are texts.
std::optional<ScoreRequest> ScoreRequestReader::next() {
  for (;;) {
    if (jsonl_ && !waiting_.empty()) {
      ScoreRequest request = std::move(waiting_.front());
      waiting_.pop_front();
      return request;
    }
    const auto line = lines_->next();
    if (!line) {
      if (!jsonl_ && !waiting_.empty()) {
        jsonl_ = false;
        continue;
      }
      if (!open()) return std::nullopt;
      continue;
    }
    hasher_.update(*line);
    hasher_.update("\n");
    const std::size_t first = line->find_first_not_of(" \t\r");
    const bool empty = first == line->npos;
    if (!jsonl_ && !empty) {
      jsonl_ = (*line)[first] == '{';
      if (!*jsonl_ && core::is_named_json_lines(paths_[opened_ - 1]))
        core::bad_data(
            "{}: is named like JSON lines, but does not begin with {{; convert an array with jq -c "
            "'.[]', or give --format lines to read it as text",
            paths_[opened_ - 1]);
      if (*jsonl_) waiting_.clear();
    }
    if (empty && jsonl_.value_or(false)) continue;
    waiting_.push_back(parse_score_request(*line, jsonl_.value_or(false), lines_->origin()));
    if (jsonl_.value_or(false) || any_bytes_) continue;
    if (const auto fault = core::utf8_fault(*line); !fault.empty())
      waiting_.back().error = fmt::format("{}: {}", lines_->origin(), fault);
  }
}

}  // namespace task
