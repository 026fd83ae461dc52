#include "task/ruler_variables.h"

#include <fmt/format.h>

#include <unordered_set>

namespace task {
namespace {

constexpr int kNameLetters = 5;

std::string letters(core::Rng& rng) {
  std::string name;
  for (int i = 0; i < kNameLetters; ++i) name += static_cast<char>('A' + rng.below(26));
  return name;
}

}  // namespace

RulerProblem VariableTask::draw(std::uint64_t seed, std::uint64_t number,
                                std::int64_t filling) const {
  core::Rng rng(seed, number);
  std::unordered_set<std::string> used;
  const auto fresh = [&](const auto& draw) {
    for (;;)
      if (auto made = draw(); used.insert(made).second) return made;
  };
  RulerProblem problem;
  std::string asked;
  std::vector<std::string> text(static_cast<std::size_t>(filling), std::string(ruler_noise()));
  for (std::int64_t chain = 0; chain < chains_; ++chain) {
    const auto value = fresh([&] { return std::to_string(10000 + rng.below(90000)); });
    std::vector<std::string> lines;
    std::string before = value;
    for (std::int64_t i = 0; i <= hops_; ++i) {
      const auto name = fresh([&] { return letters(rng); });
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

}  // namespace task
