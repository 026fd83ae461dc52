// How much of a token's probability each source gave.

#include <algorithm>
#include <cmath>

#include "infer/memory/stream_memory.h"
#include "infer/stores/stores.h"
#include "nn/memory/memory_block.h"

namespace infer {
namespace {

using torch::Tensor;

bool has_local(const MemoryPlan& plan) { return plan.rule.local; }
bool has_long(const MemoryPlan& plan) { return plan.rule.far; }

// exp(mass - all); 0 where nothing is seen.
Tensor part_of(const Tensor& mass, const Tensor& all) {
  return torch::where(mass > nn::kUnseen / 2, (mass - all).exp(), 0.);
}

}  // namespace

std::vector<std::string> source_names(const MemoryPlan& plan) {
  std::vector<std::string> names{"vocabulary"};
  if (has_local(plan)) names.emplace_back("local");
  if (has_long(plan)) names.emplace_back("long");
  if (plan.cache > 0) names.emplace_back("cache");
  for (std::size_t i = 0; plan.stores.any() && i < plan.stores.opened->size(); ++i)
    names.push_back((*plan.stores.opened)[i].name());
  for (const auto& model : plan.with.models) names.push_back(model->loaded.folder);
  if (plan.ngrams.any()) names.emplace_back("n-grams");
  return names;
}

Masses StreamMemory::masses_of_rows(const Source& source, const nn::MemoryRule& rule,
                                    const Tensor& of_window, const Window& window,
                                    std::int64_t begin, std::int64_t end) const {
  const Tensor keys = of_window.slice(0, 0, end).to(dtype_);
  const nn::Place place = window.place.slice(begin, end);
  const Tensor targets = window.targets.slice(0, begin, end);
  const auto of = [&](const nn::Entries& entries) {
    const auto seen = nn::tempered_masses(keys.slice(0, begin), place, targets, entries, rule,
                                          {rule.temperature});
    return Masses{seen.all[0].to(torch::kCPU, torch::kFloat64),
                  seen.positive[0].to(torch::kCPU, torch::kFloat64)};
  };
  Masses sum = of({keys, window.targets.slice(0, 0, end), window.place.slice(0, end)});
  if (const nn::Entries older = before(source, window); older.size() > 0) {
    const Masses more = of(older);
    sum = {torch::logaddexp(sum.all, more.all), torch::logaddexp(sum.positive, more.positive)};
  }
  return sum;
}

Tensor StreamMemory::source_shares(const Window& window, std::int64_t begin,
                                   const Tensor& log_probs) const {
  const std::int64_t rows = log_probs.size(0), end = begin + rows;
  const Tensor log_prob = log_probs.to(torch::kCPU, torch::kFloat64).contiguous();
  const auto row_of = [](const Tensor& column) {
    return column.squeeze(1).to(torch::kCPU, torch::kFloat64);
  };
  const Tensor rest = row_of(rest_);
  std::vector<Tensor> shares{torch::Tensor()};  // the vocabulary's is what the others leave
  if (context_) {
    const nn::MemoryRule rule = rule_of(*context_);
    const Masses all = masses_of_rows(*context_, rule, window.g, window, begin, end);
    const Tensor weight = rest * row_of(plan_.interpolated() ? memory_share_ : joint_share_);
    const Tensor whole = plan_.interpolated() ? all.all : row_of(joint_log_z_);
    const auto share = [&](const Tensor& mass) { return weight * part_of(mass, whole); };
    Tensor far = share(all.positive);
    if (has_local(plan_)) {
      nn::MemoryRule own = local_rule_;
      own.temperature = rule.temperature;
      const Tensor local =
          share(masses_of_rows(*context_, own, window.g, window, begin, end).positive).minimum(far);
      far = far - local;
      shares.push_back(local);
    }
    if (has_long(plan_)) shares.push_back(far);
  }
  if (cache_) {
    const Masses seen = masses_of_rows(*cache_, rule_of(*cache_), window.f, window, begin, end);
    shares.push_back(rest * row_of(cache_share_) * part_of(seen.positive, seen.all));
  }
  for (auto& share : shares)
    if (share.defined()) share /= log_prob.exp();
  const Tensor targets =
      window.targets.slice(0, begin, end).to(torch::kCPU, torch::kInt64).contiguous();
  const auto* const token = targets.const_data_ptr<std::int64_t>();
  const auto* const own = log_prob.const_data_ptr<double>();
  if (plan_.stores.any()) {
    const auto stores = static_cast<std::int64_t>(plan_.stores.opened->size());
    const Tensor of = torch::zeros({stores, rows}, torch::kFloat64);
    auto sums = of.accessor<double, 2>();
    for (std::int64_t i = 0; i < rows; ++i)
      for (const auto& one : store_shares(i, token[i], own[i])) sums[one.store][i] += one.share;
    for (std::int64_t i = 0; i < stores; ++i) shares.push_back(of[i]);
  }
  if (plan_.with.any()) {
    const auto models = static_cast<std::int64_t>(plan_.with.models.size());
    const Tensor of = torch::zeros({models, rows}, torch::kFloat64);
    auto sums = of.accessor<double, 2>();
    for (std::int64_t i = 0; i < rows; ++i) {
      const auto given = with_shares(i, token[i], own[i]);
      for (std::int64_t j = 0; j < models; ++j) sums[j][i] = given[static_cast<std::size_t>(j)];
    }
    for (std::int64_t j = 0; j < models; ++j) shares.push_back(of[j]);
  }
  if (ngrams_) {
    const Tensor of = torch::zeros({rows}, torch::kFloat64);
    for (std::int64_t i = 0; i < rows; ++i)
      if (const auto one = ngram_share(i, token[i], own[i])) of[i] = one->share;
    shares.push_back(of);
  }
  Tensor others = torch::zeros({rows}, torch::kFloat64);
  for (std::size_t i = 1; i < shares.size(); ++i) others = others + shares[i];
  shares[0] = (1 - others).clamp_min(0);
  return torch::stack(shares, 1);
}

}  // namespace infer
