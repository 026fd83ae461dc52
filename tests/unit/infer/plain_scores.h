#pragma once
// The scores of a text by plain loops over every pair.

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "nn/base/torch.h"
#include "tiny.h"

/// An entry of a store.
struct Stored {
  torch::Tensor key;  // (d_key), as stored
  std::int64_t label;
};

// The parts of p from each source.
struct PlainShares {
  double vocabulary = 0, local = 0, far = 0, cache = 0, stores = 0;
};

// Scores by double loops: sliding windows, one forward pass each. Entries of the window come from
// its own encoding; earlier entries keep the encoding with which they were scored.
inline std::vector<double> plain_scores(nn::Model& model, const std::vector<std::uint32_t>& tokens,
    const infer::WindowPlan& windows, const infer::MemoryPlan& memory,
    const std::vector<Stored>& stored = {}, bool l2 = false,
    std::vector<PlainShares>* shares = nullptr) {
  const torch::NoGradGuard no_gradient;
  const auto n = static_cast<std::int64_t>(tokens.size()) - 1;  // inputs
  const std::int64_t W = windows.window, S = windows.stride;
  const double width = static_cast<double>(model.architecture->d_key());
  const bool local = tiny::context(memory).rule.local, far = tiny::context(memory).rule.far;
  // exp of a score in the joint softmax.
  const auto joint_mass = [&](double score, const infer::JointPart& part) {
    const double temperature = part.temperature > 0 ? part.temperature : memory.joint_temperature;
    return std::exp(score / (std::sqrt(width) * temperature) + part.bias);
  };
  std::vector<double> log_probs;
  std::map<std::int64_t, std::pair<torch::Tensor, torch::Tensor>>
      kept;  // position -> f, g as scored
  for (std::int64_t number = 0;; ++number) {
    const std::int64_t start = number * S;
    const std::int64_t from = number == 0 ? 0 : (number - 1) * S + W;
    if (from >= n) break;
    const std::int64_t end = std::min(start + W, n);
    nn::Batch batch;
    batch.inputs = torch::empty({1, end - start}, torch::kInt64);
    for (std::int64_t i = start; i < end; ++i)
      batch.inputs[0][i - start] = static_cast<std::int64_t>(tokens[static_cast<std::size_t>(i)]);
    const torch::Tensor at = torch::arange(start, end).unsqueeze(0);
    batch.targets = torch::zeros_like(batch.inputs);
    batch.weight = torch::ones({1, end - start});
    batch.place = {torch::zeros_like(at), torch::zeros_like(at), at};
    batch.fresh = torch::ones({1}, torch::kBool);
    const nn::Hidden hidden = model.architecture->forward(batch, nullptr);
    const auto key = [&](std::int64_t j) {
      return j >= start ? std::make_pair(hidden.output[0][j - start].to(torch::kFloat64),
                              hidden.key[0][j - start].to(torch::kFloat64))
                        : kept.at(j);
    };
    for (std::int64_t i = from; i < end; ++i) {
      const auto label = [&](std::int64_t j) { return tokens[static_cast<std::size_t>(j + 1)]; };
      const auto [f, g] = key(i);
      torch::Tensor log_z;
      const torch::Tensor words =
          model.head->log_probs(hidden.output[0].slice(0, i - start, i - start + 1), &log_z);
      const double z = log_z.item<double>(), head = words[0][label(i)].item<double>();
      double all = 0, hit = 0, local_hit = 0, cache_all = 0, cache_hit = 0, joined_all = 0,
             joined_hit = 0;
      for (std::int64_t j = 0; j < i; ++j) {
        const auto [f_j, g_j] = key(j);
        if ((local && j >= start) || (far && i - j <= tiny::context(memory).rule.reach)) {
          const double mass = joint_mass(g.dot(g_j).item<double>(),
              local && j >= start ? tiny::context(memory).local : tiny::context(memory).far);
          all += mass;
          if (label(j) == label(i)) hit += mass;
          if (label(j) == label(i) && local && j >= start) local_hit += mass;
        }
        if (tiny::cache(memory).positions > 0 && i - j <= tiny::cache(memory).positions) {
          const double mass = std::exp(tiny::cache(memory).theta * f.dot(f_j).item<double>());
          cache_all += mass;
          if (label(j) == label(i)) cache_hit += mass;
        }
      }
      double stores_all = 0, stores_hit = 0;
      if (tiny::stores(memory).any()) {
        std::vector<std::pair<double, std::int64_t>> hits;
        for (const Stored& entry : stored) {
          const torch::Tensor key = entry.key.to(torch::kFloat64);
          const double score =
              l2 ? -(g - key).pow(2).sum().item<double>() : g.dot(key).item<double>();
          hits.emplace_back(-score, entry.label);
        }
        std::stable_sort(hits.begin(), hits.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
        hits.resize(std::min(hits.size(), static_cast<std::size_t>(tiny::stores(memory).k)));
        for (const auto& [less, stored_label] : hits) {
          const bool match = stored_label == label(i);
          const double mass = std::exp(-less / tiny::stores(memory).temperature);
          stores_all += mass;
          if (match) stores_hit += mass;
          if (!tiny::stores(memory).joined()) continue;
          const double joined = joint_mass(-less, tiny::stores(memory).joint);
          joined_all += joined;
          if (match) joined_hit += joined;
        }
      }
      double l_m = tiny::context(memory).interpolated() ? tiny::context(memory).lambda : 0;
      double l_c = tiny::cache(memory).positions > 0 ? tiny::cache(memory).lambda : 0;
      double l_s = tiny::stores(memory).interpolated() ? tiny::stores(memory).lambda : 0;
      if (!tiny::context(memory).interpolated()) joined_all += all, joined_hit += hit;
      const double joint = (std::exp(head + z) + joined_hit) / (std::exp(z) + joined_all);
      if (all == 0) l_m = 0;
      if (cache_all == 0) l_c = 0;
      if (stores_all == 0) l_s = 0;
      double p = (1 - l_m - l_c - l_s) * joint;
      if (l_m > 0) p += l_m * hit / all;
      if (l_c > 0) p += l_c * cache_hit / cache_all;
      if (l_s > 0) p += l_s * stores_hit / stores_all;
      log_probs.push_back(std::log(p));
      if (shares == nullptr) continue;
      const double rest = 1 - l_m - l_c - l_s, joint_all = std::exp(z) + joined_all;
      const double context =
          tiny::context(memory).interpolated() ? (all > 0 ? l_m / all : 0) : rest / joint_all;
      const double apart = tiny::context(memory).interpolated() ? joined_hit : joined_hit - hit;
      PlainShares& own = shares->emplace_back();
      own.vocabulary = rest * std::exp(head + z) / joint_all / p;
      own.local = context * local_hit / p;
      own.far = context * (hit - local_hit) / p;
      own.cache = l_c > 0 ? l_c * cache_hit / cache_all / p : 0;
      own.stores = (rest * apart / joint_all + (l_s > 0 ? l_s * stores_hit / stores_all : 0)) / p;
    }
    for (std::int64_t i = from; i < end; ++i) kept[i] = key(i);
  }
  return log_probs;
}

inline std::vector<double> plain_scores(nn::Model& model, const std::vector<std::uint32_t>& tokens,
    const infer::WindowPlan& windows, const infer::MemoryOptions& memory) {
  return plain_scores(model, tokens, windows, infer::plan_memory(memory, windows, model));
}
