#include "task/ruler.h"

#include <cctype>

#include "core/json_line.h"
#include "core/units.h"
#include "task/story_prompts.h"
#include "text/python/python_text.h"

namespace task {
namespace {

constexpr std::int64_t kShotFilling = 5;
constexpr std::uint64_t kShots = std::uint64_t{1} << 62;  // first number of the solved examples

/// Returns solved examples in sequence.
std::string shots(
    const RulerTask& task, std::int64_t count, std::uint64_t seed, std::uint64_t number) {
  std::string text;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto own =
        kShots + number * static_cast<std::uint64_t>(count) + static_cast<std::uint64_t>(i);
    const auto shot = task.draw(seed, own, std::min(kShotFilling, task.most_filling()));
    text += shot.prompt + task.answer_of(shot) + "\n\n";
  }
  return text;
}

constexpr int kNameLetters = 5;

std::string letters(core::Rng& rng) {
  std::string name;
  for (int i = 0; i < kNameLetters; ++i) name += static_cast<char>('A' + rng.below(26));
  return name;
}

std::string needle(const std::string& kind, const std::string& key, const std::string& value) {
  return fmt::format("The secret {} of {} is {}.", kind.substr(0, kind.size() - 1), key, value);
}

std::string uuid(core::Rng& rng) {
  const auto high = rng.next(), low = rng.next();
  return fmt::format("{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}", high >> 32, high >> 16 & 0xffff,
      high & 0xfff, (low >> 48 & 0x3fff) | 0x8000, low & 0xffffffffffff);
}

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

// Returns a line that is irrelevant to every question.
std::string_view ruler_noise() {
  return "Rain fell all morning. The boats stayed in the harbour. A dog slept by the stove. "
         "Nobody was in a hurry.";
}

}  // namespace

FittedProblem fitted_problem(const RulerTask& task, const RulerLength& length, std::uint64_t seed,
    std::uint64_t number, const CountTokens& count) {
  const auto front = shots(task, length.shots, seed, number);
  const auto at = [&](std::int64_t filling) {
    FittedProblem made;
    made.problem = task.draw(seed, number, filling);
    made.problem.prompt.insert(0, front);
    made.tokens = count(made.problem.prompt);
    return made;
  };
  auto best = at(0);
  const auto answer = count(task.answer_of(best.problem));
  if (answer > length.answer && !length.longer_answers)
    core::bad_usage("--answer-tokens {}: the answer of problem {} has {} tokens; give more",
        length.answer, number, answer);
  const auto reserved = std::max(length.answer, answer), room = length.tokens - reserved;
  if (best.tokens > room)
    core::bad_usage(
        "--length {}: problem {} has {} tokens without filler, and {} are reserved for the "
        "answer; give a larger --length",
        length.tokens, number, best.tokens, reserved);
  std::int64_t fits = 0, above = task.most_filling() + 1;
  for (std::int64_t step = 1; fits + 1 < above;) {  // doubles the length, then bisects
    const bool growing = step > 0;
    const auto filling = growing ? std::min(fits + step, above - 1) : (fits + above) / 2;
    auto made = at(filling);
    if (made.tokens <= room) {
      fits = filling, best = std::move(made);
      step *= 2;
    } else {
      above = filling, step = 0;
    }
  }
  best.answer = reserved;
  return best;
}

std::string said(const std::vector<std::string>& answers) { return joined(answers, ", "); }

std::vector<std::string> strewn(
    std::vector<std::string> parts, std::vector<std::string> others, core::Rng& rng) {
  std::vector<std::uint64_t> places;
  for (std::size_t i = 0; i < others.size(); ++i) places.push_back(rng.below(parts.size() + 1));
  std::ranges::sort(places);
  std::vector<std::string> all;
  all.reserve(parts.size() + others.size());
  std::size_t other = 0;
  for (std::size_t i = 0; i <= parts.size(); ++i) {
    for (; other < others.size() && places[other] == i; ++other)
      all.push_back(std::move(others[other]));
    if (i < parts.size()) all.push_back(std::move(parts[i]));
  }
  return all;
}

std::string joined(const std::vector<std::string>& parts, std::string_view between) {
  return fmt::format("{}", fmt::join(parts, between));
}

std::string made_name(core::Rng& rng) {
  static constexpr std::string_view kStarts[] = {"b", "br", "d", "dr", "f", "g", "gr", "h", "k",
      "l", "m", "n", "p", "r", "s", "sk", "st", "t", "tr", "v", "w"};
  static constexpr std::string_view kVowels[] = {
      "a", "e", "i", "o", "u", "ai", "au", "ea", "ei", "ou"};
  static constexpr std::string_view kEnds[] = {
      "", "l", "m", "n", "r", "s", "t", "ck", "nd", "rd", "ln", "st"};
  const auto drawn = [&](const auto& list) { return list[rng.below(std::size(list))]; };
  std::string name;
  const auto syllables = 2 + rng.below(2);
  for (std::uint64_t i = 0; i < syllables; ++i) {
    name += drawn(kStarts);
    name += drawn(kVowels);
  }
  name += drawn(kEnds);
  name[0] = static_cast<char>(name[0] - 'a' + 'A');
  return name;
}

RulerProblem VariableTask::draw(
    std::uint64_t seed, std::uint64_t number, std::int64_t filling) const {
  core::Rng rng(seed, number);
  std::unordered_set<std::string> used;
  RulerProblem problem;
  std::string asked;
  std::vector<std::string> text(static_cast<std::size_t>(filling), std::string(ruler_noise()));
  for (std::int64_t chain = 0; chain < chains_; ++chain) {
    const auto value = fresh(used, [&] { return std::to_string(10000 + rng.below(90000)); });
    std::vector<std::string> lines;
    std::string before = value;
    for (std::int64_t i = 0; i <= hops_; ++i) {
      const auto name = fresh(used, [&] { return letters(rng); });
      lines.push_back(fmt::format("LET {} = {}.", name, before));
      before = name;
      if (chain == 0) problem.answers.push_back(name);
    }
    if (chain == 0) asked = value;
    text = strewn(std::move(text), std::move(lines), rng);
  }
  problem.prompt = fmt::format(
      "This text sets variables, each to a number or to another variable. Keep track of them.\n"
      "{}\nQuestion: which variables have the value {}?\nAnswer: {} variables have the value {}:",
      joined(text, "\n"), asked, hops_ + 1, asked);
  return problem;
}

void NeedleShape::fields(core::FieldList& f) {
  f("num-keys", keys, "needles: keys in the text").between(1, 1000);
  f("num-values", values, "needles: values per key").between(1, 1000);
  f("num-queries", queries, "needles: number of keys in the question, at most --num-keys")
      .between(1, 1000);
  f("key-kind", key_kind, "needles: type of the keys", {"words", "numbers", "uuids"});
  f("value-kind", value_kind, "needles: type of the values", {"words", "numbers", "uuids"});
}

NeedleTask::NeedleTask(
    const NeedleShape& shape, Haystack haystack, std::vector<std::string> sentences)
    : shape_(shape), haystack_(haystack), sentences_(std::move(sentences)) {
  if (shape_.queries > shape_.keys)
    core::bad_usage("--num-queries: takes at most --num-keys, {}", shape_.keys);
  auto parts = default_story_parts();
  nouns_ = std::move(parts.nouns), adjectives_ = std::move(parts.adjectives);
}

std::string NeedleTask::drawn(const std::string& kind, core::Rng& rng) const {
  if (kind == "uuids") return uuid(rng);
  if (kind == "numbers") return std::to_string(1000000 + rng.below(9000000));
  const auto& adjective = adjectives_[rng.below(adjectives_.size())];
  return adjective + "-" + nouns_[rng.below(nouns_.size())];
}

RulerProblem NeedleTask::draw(
    std::uint64_t seed, std::uint64_t number, std::int64_t filling) const {
  core::Rng rng(seed, number);
  std::unordered_set<std::string> used;  // each key has one set of values
  std::vector<std::string> keys, needles;
  std::vector<std::vector<std::string>> values;
  for (std::int64_t k = 0; k < shape_.keys; ++k) {
    keys.push_back(fresh(used, [&] { return drawn(shape_.key_kind, rng); }));
    values.emplace_back();
    for (std::int64_t v = 0; v < shape_.values; ++v) {
      values.back().push_back(drawn(shape_.value_kind, rng));
      needles.push_back(needle(shape_.value_kind, keys.back(), values.back().back()));
    }
  }
  rng.shuffle(needles);
  std::vector<std::size_t> asked(keys.size());
  for (std::size_t i = 0; i < asked.size(); ++i) asked[i] = i;
  rng.shuffle(asked);
  asked.resize(static_cast<std::size_t>(shape_.queries));

  std::vector<std::string> hay;
  for (std::int64_t i = 0; i < filling; ++i) {
    if (haystack_ == Haystack::needles) {
      auto key = drawn(shape_.key_kind, rng);
      while (used.count(key) > 0) key = drawn(shape_.key_kind, rng);
      hay.push_back(needle(shape_.value_kind, key, drawn(shape_.value_kind, rng)));
    } else if (haystack_ == Haystack::sentences) {
      hay.push_back(sentences_[static_cast<std::size_t>(i) % sentences_.size()]);
    } else {
      hay.emplace_back(ruler_noise());
    }
  }
  const auto text = joined(strewn(std::move(hay), std::move(needles), rng),
      haystack_ == Haystack::sentences ? " " : "\n");

  RulerProblem problem;
  std::vector<std::string> names;
  for (const auto i : asked) {
    names.push_back(keys[i]);
    problem.answers.insert(problem.answers.end(), values[i].begin(), values[i].end());
  }
  const bool one = problem.answers.size() == 1;
  const auto what =
      one ? shape_.value_kind.substr(0, shape_.value_kind.size() - 1) : shape_.value_kind;
  problem.prompt = fmt::format(
      "Somewhere in this text {0} told. Remember {1}.\n{2}\nQuestion: "
      "which {3} the secret {4} of {5}?\nAnswer: the secret {4} of {5} {3}",
      one ? "a secret is" : "secrets are", one ? "it" : "them", text, one ? "is" : "are", what,
      core::listed(names, "and"));
  return problem;
}

std::vector<std::string> sentences_of(std::string_view text, const std::string& origin) {
  std::vector<std::string> sentences;
  std::string sentence;
  bool ends = false, gap = false;
  for (const char c : text) {
    if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      if (ends && !sentence.empty()) sentences.push_back(std::move(sentence)), sentence.clear();
      gap = !sentence.empty(), ends = false;
      continue;
    }
    if (gap) sentence += ' ';
    sentence += c;
    gap = false, ends = c == '.' || c == '?' || c == '!';
  }
  if (!sentence.empty()) sentences.push_back(std::move(sentence));
  if (sentences.empty()) core::bad_data("{}: has no sentence", origin);
  return sentences;
}

std::string ruler_said(std::string_view text) {
  std::string made = text::python::lower(text);
  std::ranges::replace_if(
      made, [](char c) { return static_cast<unsigned char>(c) < 32; }, '\n');
  const auto begin = made.find_first_not_of(" \n");
  if (begin == std::string::npos) return "";
  return made.substr(begin, made.find_last_not_of(" \n") - begin + 1);
}

double ruler_score(std::string_view text, const std::vector<std::string>& answers, bool any) {
  const auto said = ruler_said(text);
  const auto there = std::ranges::count_if(answers,
      [&](const auto& answer) { return said.find(text::python::lower(answer)) != said.npos; });
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
