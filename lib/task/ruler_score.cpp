#include "task/ruler_score.h"

#include "core/json_line.h"
#include "text/chat/template_text.h"

namespace task {
namespace {

core::Json object_of(std::string_view line, const std::string& origin) {
  auto json = core::parse_json_line(line, origin, {"outputs", "text"});
  if (!json.is_object() || !json.contains("id"))
    core::bad_data("{}: not an object with an \"id\"", origin);
  return json;
}

// Returns the id as text. A number that no integer type holds keeps all its digits.
std::string id_of(const core::Json& json, std::string_view line) {
  const auto& id = json["id"];
  return id.is_number_float() ? *core::member_text(line, "id") : core::dump(id);
}

}  // namespace

std::string ruler_said(std::string_view text) {
  std::string made = text::chat::lower(text);
  std::replace_if(
      made.begin(), made.end(), [](char c) { return static_cast<unsigned char>(c) < 32; }, '\n');
  const auto begin = made.find_first_not_of(" \n");
  if (begin == std::string::npos) return "";
  return made.substr(begin, made.find_last_not_of(" \n") - begin + 1);
}

double ruler_score(std::string_view text, const std::vector<std::string>& answers, bool any) {
  const auto said = ruler_said(text);
  std::size_t there = 0;
  for (const auto& answer : answers)
    there += said.find(text::chat::lower(answer)) != std::string::npos ? 1 : 0;
  if (any) return there > 0 ? 1 : 0;
  return answers.empty() ? 0 : static_cast<double>(there) / static_cast<double>(answers.size());
}

std::map<std::string, RulerAsked> read_ruler_problems(core::LineReader& lines) {
  std::map<std::string, RulerAsked> asked;
  while (const auto line = lines.next()) {
    if (line->empty()) continue;
    const auto origin = lines.origin();
    const auto json = object_of(*line, origin);
    RulerAsked problem;
    problem.task = core::get<std::string>(json, "task", origin);
    problem.length = core::get<std::int64_t>(json, "length", origin);
    problem.answers = core::get<std::vector<std::string>>(json, "outputs", origin);
    problem.any = problem.task == "documents";
    const auto id = id_of(json, *line);
    if (!asked.emplace(id, std::move(problem)).second)
      core::bad_data("{}: a second problem with the id {}", origin, id);
  }
  return asked;
}

void RulerScore::add(std::string_view line, const std::string& origin) {
  const auto json = object_of(line, origin);
  const auto id = id_of(json, line);
  const auto problem = asked_.find(id);
  if (problem == asked_.end())
    core::bad_data("{}: answers {}, which is not among the problems", origin, id);
  auto& sum = by_id_[id];
  ++sum.answers;
  sum.score += ruler_score(
      core::get<std::string>(json, "text", origin), problem->second.answers, problem->second.any);
}

void RulerScore::check_complete(const std::string& origin) const {
  for (const auto& [id, problem] : asked_)
    if (by_id_.count(id) == 0) core::bad_data("{}: problem {} has no answer", origin, id);
}

core::OrderedJson RulerScore::total() const {
  Sum all;
  for (const auto& [id, sum] : by_id_)
    all.answers += sum.answers, all.score += sum.score / static_cast<double>(sum.answers);
  const auto problems = static_cast<double>(std::max<std::size_t>(by_id_.size(), 1));
  return {
      {"problems", by_id_.size()}, {"answers", all.answers}, {"score", 100 * all.score / problems}};
}

std::vector<core::OrderedJson> RulerScore::parts() const {
  std::map<std::pair<std::string, std::int64_t>, std::pair<std::int64_t, Sum>> by;
  for (const auto& [id, sum] : by_id_) {
    const auto& problem = asked_.at(id);
    auto& [problems, part] = by[{problem.task, problem.length}];
    ++problems, part.answers += sum.answers;
    part.score += sum.score / static_cast<double>(sum.answers);
  }
  std::vector<core::OrderedJson> rows;
  for (const auto& [key, value] : by)
    rows.push_back({{"task", key.first}, {"length", key.second}, {"problems", value.first},
        {"answers", value.second.answers},
        {"score", 100 * value.second.score / static_cast<double>(value.first)}});
  return rows;
}

}  // namespace task
