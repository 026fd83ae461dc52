#include "infer/sources/ngram_memory.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"

namespace infer {
namespace {

using torch::Tensor;

constexpr double kNever = -std::numeric_limits<double>::infinity();

double log_ratio(std::uint64_t count, std::uint64_t all) {
  return std::log(static_cast<double>(count) / static_cast<double>(all));
}

}  // namespace

NgramPlan NgramPlan::without(const shard::Fingerprints& texts) const {
  if (!any() || !index->holds(texts)) return *this;
  return {index->without(texts), lambda};
}

std::shared_ptr<const ngrams::Index> open_ngrams(const std::vector<std::string>& folders,
                                                 const model::Loaded& loaded) {
  if (folders.empty()) return nullptr;
  auto index = std::make_shared<const ngrams::Index>(folders);
  const auto& first = *index->folders()[0];
  shard::Header header;
  header.vocabulary = first.manifest().vocabulary;
  header.tokenizer = first.tokenizer();
  model::check_tokenizer(loaded, header, first.name());
  return index;
}

std::array<double, 3> gate_features_of(const NgramContext& context) {
  if (context.bucket < 0) return {NAN, NAN, NAN};
  return {std::log1p(static_cast<double>(context.match.length)), context.followers.one ? 1.0 : 0.0,
          std::log(static_cast<double>(context.followers.count))};
}

NgramMemory::NgramMemory(NgramPlan plan, std::int64_t rows)
    : plan_(std::move(plan)),
      next_(plan_.index),
      followers_(static_cast<std::size_t>(rows), ngrams::SuffixFollower(plan_.index)) {}

void NgramMemory::read(std::int64_t row, std::span<const std::int64_t> tokens) {
  for (const std::int64_t token : tokens)
    followers_[static_cast<std::size_t>(row)].push(static_cast<std::uint32_t>(token));
}

NgramContext NgramMemory::context(std::int64_t row) const {
  NgramContext context;
  context.match = followers_[static_cast<std::size_t>(row)].match();
  context.followers = plan_.index->followers(context.match);
  if (context.followers.count > 0)
    context.bucket = ngram_bucket(context.match.length, context.followers.one);
  return context;
}

NgramScores NgramMemory::score(const Tensor& targets) {
  const Tensor tokens = targets.to(torch::kCPU, torch::kInt64).contiguous();
  NgramScores scores{torch::full({tokens.size(0)}, NAN, torch::kFloat64),
                     torch::full({tokens.size(0)}, -1, torch::kInt64),
                     torch::full({tokens.size(0), 3}, NAN, torch::kFloat64)};
  auto* const log_prob = scores.log_prob.data_ptr<double>();
  auto* const bucket = scores.bucket.data_ptr<std::int64_t>();
  auto* const features = scores.features.data_ptr<double>();
  const auto* const token = tokens.const_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < tokens.size(0); ++i) {
    const NgramContext known = context(0);
    if (known.bucket >= 0) {
      const auto count = plan_.index->count(known.match, static_cast<std::uint32_t>(token[i]));
      log_prob[i] = log_ratio(count, known.followers.count);
      bucket[i] = known.bucket;
      const auto seen = gate_features_of(known);
      std::copy(seen.begin(), seen.end(), features + 3 * i);
    }
    read(0, {token + i, 1});
  }
  return scores;
}

bool NgramMemory::wants_more(std::size_t n_read) const { return followers_[0].length() >= n_read; }

void NgramMemory::clear() {
  for (auto& follower : followers_) follower.clear();
}

void NgramMemory::select(const Tensor& rows) {
  std::vector<ngrams::SuffixFollower> chosen;
  for (std::int64_t i = 0; i < rows.size(0); ++i)
    chosen.push_back(followers_[static_cast<std::size_t>(rows[i].item<std::int64_t>())]);
  followers_ = std::move(chosen);
}

Tensor NgramMemory::words(const std::vector<NgramContext>& contexts, std::int64_t words) {
  const Tensor log_prob = torch::full({std::ssize(contexts), words}, kNever, torch::kFloat64);
  auto* row = log_prob.data_ptr<double>();
  for (const NgramContext& context : contexts) {
    if (context.bucket < 0) std::fill_n(row, words, NAN);
    if (context.bucket >= 0)
      for (const auto& [token, count] : next_.of(context.match))
        if (token < words) row[token] = log_ratio(count, context.followers.count);
    row += words;
  }
  return log_prob;
}

std::optional<NgramShare> NgramMemory::share(const NgramContext& context, std::int64_t token,
                                             double log_prob, double weight) const {
  if (context.bucket < 0) return std::nullopt;
  NgramShare share{{context.match.length + 1, {}}, 0};
  const auto& parts = plan_.index->parts();
  for (std::size_t i = 0; i < parts.size(); ++i)
    share.match.ranks.push_back(parts[i]->extend(context.match.ranks[i], context.match.length,
                                                 static_cast<std::uint32_t>(token)));
  const auto count = ngrams::Index::count(share.match);
  if (count == 0) return std::nullopt;
  share.share = weight * std::exp(log_ratio(count, context.followers.count) - log_prob);
  return share;
}

}  // namespace infer
