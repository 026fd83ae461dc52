#include "task/ruler_needles.h"

#include <cctype>

#include "task/story_prompts.h"

namespace task {
namespace {

/// Joins words: "a", "a and b", "a, b and c".
std::string listed(const std::vector<std::string>& items) {
  std::string text = items.front();
  for (std::size_t i = 1; i < items.size(); ++i)
    text += (i + 1 == items.size() ? " and " : ", ") + items[i];
  return text;
}

std::string needle(const std::string& kind, const std::string& key, const std::string& value) {
  return fmt::format("The secret {} of {} is {}.", kind.substr(0, kind.size() - 1), key, value);
}

std::string uuid(core::Rng& rng) {
  const auto high = rng.next(), low = rng.next();
  return fmt::format("{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}", high >> 32, high >> 16 & 0xffff,
      high & 0xfff, (low >> 48 & 0x3fff) | 0x8000, low & 0xffffffffffff);
}

}  // namespace

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
  const auto fresh_key = [&] {
    for (;;)
      if (auto key = drawn(shape_.key_kind, rng); used.insert(key).second) return key;
  };
  std::vector<std::string> keys, needles;
  std::vector<std::vector<std::string>> values;
  for (std::int64_t k = 0; k < shape_.keys; ++k) {
    keys.push_back(fresh_key());
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
      listed(names));
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

}  // namespace task
