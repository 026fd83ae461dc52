#include "kernel_cases.h"
#include "nn/kernels/memory_kernels.h"
#include "on_device.h"

namespace cuda_test {
namespace {

using Ids = std::vector<std::int64_t>;

// Positions of tokens: runs of `run` tokens in segments of `segment`; every 37th token is padding.
struct Places {
  Ids run, segment, position;

  Places(std::int64_t n, std::int64_t run_length, std::int64_t segment_length, std::int64_t from) {
    for (std::int64_t i = from; i < from + n; ++i) {
      run.push_back(i % 37 == 36 ? -1 : i / run_length);
      segment.push_back(i / segment_length);
      position.push_back(i);
    }
  }
  nn::PositionIds ids() const { return {run.data(), segment.data(), position.data(), size()}; }
  std::int64_t size() const { return std::ssize(run); }
};

struct PlacesThere {
  OnDevice<std::int64_t> run, segment, position;
  std::int64_t size;

  explicit PlacesThere(const Places& places)
      : run(places.run), segment(places.segment), position(places.position), size(places.size()) {}
  nn::PositionIds ids() { return {run.data(), segment.data(), position.data(), size}; }
};

Ids labels_of(std::int64_t n, std::int64_t factor) {
  Ids labels;
  for (std::int64_t i = 0; i < n; ++i) labels.push_back(i * factor % 5);
  return labels;
}

// The formulas in double, pair by pair.
struct Expected {
  Floats maxima, exp, sum_all, sum_positive, d;
};

double seen_gap(const Places& queries, const Places& entries, const nn::VisibilityRule& rule) {
  const auto rows = std::size_t(queries.size()), n = std::size_t(entries.size());
  constexpr float kScale = 0.7F, kLeast = -5;
  const auto scores = random_floats(rows * n, 1, -30, 30), every = random_floats(rows, 2),
             matching = random_floats(rows, 3), before = random_floats(rows, 4, 0, 1);
  const auto targets = labels_of(queries.size(), 3), labels = labels_of(entries.size(), 7);
  Expected want{Floats(rows, kLeast), scores, before, before, scores};
  for (std::size_t r = 0; r < rows; ++r) {
    const auto query = queries.ids().at(std::int64_t(r));
    const auto seen = [&](std::size_t j) {
      return nn::sees(rule, query, entries.ids().at(std::int64_t(j)));
    };
    for (std::size_t j = 0; j < n; ++j)
      if (seen(j)) want.maxima[r] = std::max(want.maxima[r], kScale * scores[r * n + j]);
    double all = 0, positive = 0;
    for (std::size_t j = 0; j < n; ++j) {
      const double x = double(kScale * scores[r * n + j] - want.maxima[r]),
                   e = seen(j) ? std::exp(x) : 0;
      const bool hit = labels[j] == targets[r];
      want.exp[r * n + j] = float(e);
      want.d[r * n + j] = float(e * double(every[r] + (hit ? matching[r] : 0)));
      all += e, positive += hit ? e : 0;
    }
    want.sum_all[r] += float(all);
    want.sum_positive[r] += float(positive);
  }

  PlacesThere queries_(queries), entries_(entries);
  OnDevice<float> scores_(scores), maxima_(Floats(rows, kLeast)), sum_all_(before),
      sum_positive_(before), every_(every), matching_(matching);
  OnDevice<std::int64_t> targets_(targets), labels_(labels);
  OnDevice<nn::PositionRange> tiles_(
      std::vector<nn::PositionRange>(std::size_t(nn::seen_tiles(entries.size()))));
  require(nn::seen_tiles_cuda(entries_.ids(), tiles_.data(), nullptr) == 0, "tiles");
  const nn::SeenRows on{queries_.ids(), entries_.ids(), tiles_.data(), rule, scores_.data(), kScale,
      targets_.data(), labels_.data()};
  require(nn::seen_raise_cuda(on, maxima_.data(), nullptr) == 0, "raise");
  require(nn::seen_exponentiate_cuda(
              on, maxima_.data(), sum_all_.data(), sum_positive_.data(), nullptr) == 0,
      "exponentiate");
  constexpr double kClose = 1e-5;
  Worst worst;
  worst(gap(maxima_.back(), want.maxima) / kClose);
  worst(gap(scores_.back(), want.exp) / kClose);
  worst(gap(sum_all_.back(), want.sum_all) / kClose);
  worst(gap(sum_positive_.back(), want.sum_positive) / kClose);
  require(nn::seen_differentiate_cuda(on, every_.data(), matching_.data(), nullptr) == 0,
      "differentiate");
  worst(gap(scores_.back(), want.d) / kClose);
  return worst.gap;
}

}  // namespace

std::vector<KernelCase> memory_cases() {
  nn::VisibilityRule all;
  all.local = all.far = all.ext = true;
  nn::VisibilityRule near;
  near.far = true;
  near.reach = 50;
  nn::VisibilityRule local;
  local.local = true;
  nn::VisibilityRule others;
  others.local = others.ext = others.drop_own_segment = true;
  const auto gap_of = [](const nn::VisibilityRule& rule) {
    return [rule] { return seen_gap(Places(5, 400, 40, 331), Places(601, 400, 40, 0), rule); };
  };
  return {{"memory: who sees anyone", gap_of(all)}, {"memory: 50 tokens back", gap_of(near)},
      {"memory: own segment", gap_of(local)}, {"memory: other runs and segments", gap_of(others)},
      {"memory: one of each",
          [local] { return seen_gap(Places(1, 10, 10, 1), Places(1, 10, 10, 0), local); }},
      {"memory: nothing is seen",
          [near] { return seen_gap(Places(2, 10, 10, 0), Places(70, 100, 10, 300), near); }}};
}

}  // namespace cuda_test
