#include "infer/generate/generator_draw.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.h"
#include "infer/decode/decode_kernels.h"

namespace infer {
namespace {

constexpr std::int64_t kHeapLimit = 1024;   // for more tokens, selection replaces the heap
constexpr std::int64_t kFirstNucleus = 64;  // number of best tokens first searched for top_p

}  // namespace

float scale_of_draw(double temperature) {
  constexpr double kSharpest = 1e30;  // keeps only the best tokens, and avoids 0 times infinity
  return static_cast<float>(std::min(1 / temperature, kSharpest));
}

void expect_numbers(double best) {
  if (!std::isfinite(best))
    core::fail(core::Code::bad_data,
               "the model's log-probabilities are not finite; its weights may be damaged");
}

std::int64_t best_word(std::span<const float> log_p) {
  const float best =
      log_p.empty() ? std::nanf("") : max_of(log_p.data(), static_cast<std::int64_t>(log_p.size()));
  expect_numbers(static_cast<double>(best));
  return std::find(log_p.begin(), log_p.end(), best) - log_p.begin();
}

std::vector<std::int64_t> best_words(std::span<const float> log_p, std::int64_t n) {
  const auto size = static_cast<std::int64_t>(log_p.size());
  n = std::min(n, size);
  const auto at = [&](std::int64_t i) { return log_p[static_cast<std::size_t>(i)]; };
  const auto better = [&](std::int64_t a, std::int64_t b) {
    return at(a) > at(b) || (at(a) == at(b) && a < b);
  };
  std::vector<std::int64_t> words(static_cast<std::size_t>(n > kHeapLimit ? size : n));
  std::iota(words.begin(), words.end(), 0);
  if (n > kHeapLimit) {
    if (n < size) std::nth_element(words.begin(), words.begin() + n - 1, words.end(), better);
    words.resize(static_cast<std::size_t>(n));
  } else if (n > 0) {  // the worst token kept is on top
    std::make_heap(words.begin(), words.end(), better);
    for (std::int64_t i = n; i < size; ++i) {
      if (at(i) <= at(words.front())) continue;
      std::pop_heap(words.begin(), words.end(), better);
      words.back() = i;
      std::push_heap(words.begin(), words.end(), better);
    }
  }
  std::sort(words.begin(), words.end(), better);
  return words;
}

Draw& Draw::by(const DrawOptions& options) {
  options_ = options;
  return *this;
}

void Draw::prepare(std::span<const float> log_p) {
  const float best = log_p[static_cast<std::size_t>(best_word(log_p))];
  const auto size = static_cast<std::int64_t>(log_p.size());
  words_.clear();
  if ((options_.top_k > 0 && options_.top_k < size) || options_.top_p < 1) {
    cut(log_p, best);
    return;
  }
  weights_.resize(log_p.size());
  total_ =
      exp_weights(log_p.data(), size, best, scale_of_draw(options_.temperature), weights_.data());
}

void Draw::cut(std::span<const float> log_p, float best) {
  const auto size = static_cast<std::int64_t>(log_p.size());
  const float scale = scale_of_draw(options_.temperature);
  const bool counted = options_.top_k > 0 && options_.top_k < size;
  const std::int64_t most = counted ? options_.top_k : size;
  const bool nucleus = options_.top_p < 1;
  double all = 0;
  if (nucleus && !counted) {
    weights_.resize(log_p.size());
    all = exp_weights(log_p.data(), size, best, scale, weights_.data());
  }
  for (std::int64_t n = nucleus && !counted ? std::min(kFirstNucleus, most) : most;; n *= 8) {
    n = std::min(n, most);
    words_ = best_words(log_p, n);
    std::vector<float> chosen;
    for (const auto word : words_) chosen.push_back(log_p[static_cast<std::size_t>(word)]);
    weights_.resize(chosen.size());
    total_ = exp_weights(chosen.data(), n, best, scale, weights_.data());
    if (!nucleus) return;
    const double wanted = options_.top_p * (counted ? total_ : all);
    double mass = 0;
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      mass += weights_[i];
      if (mass < wanted) continue;
      words_.resize(i + 1);
      weights_.resize(i + 1);
      total_ = mass;
      return;
    }
    if (n == most) return;
  }
}

std::int64_t Draw::operator()(std::span<const float> log_p, core::Rng& rng) {
  if (options_.temperature == 0) return best_word(log_p);
  prepare(log_p);
  double left = rng.uniform() * total_;
  std::size_t last = 0;  // rounding may leave mass beyond the last token
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    if (weights_[i] <= 0) continue;
    last = i;
    left -= weights_[i];
    if (left < 0) break;
  }
  return words_.empty() ? static_cast<std::int64_t>(last) : words_[last];
}

std::vector<std::pair<std::int64_t, double>> Draw::distribution(std::span<const float> log_p) {
  if (options_.temperature == 0) return {{best_word(log_p), 1.0}};
  prepare(log_p);
  std::vector<std::pair<std::int64_t, double>> pairs;
  for (std::size_t i = 0; i < weights_.size(); ++i)
    pairs.emplace_back(words_.empty() ? static_cast<std::int64_t>(i) : words_[i],
                       weights_[i] / total_);
  return pairs;
}

}  // namespace infer
