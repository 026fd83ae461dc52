#include "infer/generate/generator_draw.h"

#include "core/plain_text.h"
#include "infer/decode/decode_kernels.h"
#include "nn/base/upload.h"
#include "task/token_scores.h"

namespace infer {
namespace {

constexpr std::int64_t kHeapLimit = 1024;   // for more tokens, selection replaces the heap
constexpr std::int64_t kFirstNucleus = 64;  // number of best tokens first searched for top_p

// Returns the factor on log-probability differences to the maximum. It is finite for every
// temperature above 0, so that near 0 the best token is drawn.
float scale_of_draw(double temperature) {
  constexpr double kSharpest = 1e30;  // keeps only the best tokens, and avoids 0 times infinity
  return static_cast<float>(std::min(1 / temperature, kSharpest));
}

// Returns (B, 2) float64: scale_of_draw(), or 0 for temperature 0, and the random number.
Tensor draw_settings(const std::vector<RowDraw>& rows) {
  auto all = torch::empty({std::ssize(rows), 2}, torch::kFloat64);
  auto* to = all.data_ptr<double>();
  for (const auto& row : rows) {
    *to++ = row.temperature == 0 ? 0 : static_cast<double>(scale_of_draw(row.temperature));
    *to++ = row.number;
  }
  return all;
}

// Returns (B, 1): the first token at which the cumulated mass exceeds number * all. `best` (B, 1)
// is the highest log-probability of each row.
Tensor drawn(const DrawOptions& options, const Tensor& log_p, const Tensor& best,
    const Tensor& scale, const Tensor& number) {
  const auto vocabulary = log_p.size(1);
  const bool counted = options.top_k > 0 && options.top_k < vocabulary;
  const auto most = counted ? options.top_k : vocabulary;
  Tensor chosen = log_p, ids;  // undefined: all tokens, by id
  if (counted || options.top_p < 1) {
    const auto [sorted, order] = log_p.sort(/*stable=*/true, /*dim=*/1, /*descending=*/true);
    chosen = sorted.narrow(1, 0, most), ids = order;
  }
  const Tensor mass =
      ((chosen - best) * scale.to(torch::kFloat32)).exp().to(torch::kFloat64).cumsum(1);
  Tensor all = mass.narrow(1, most - 1, 1);
  if (options.top_p < 1)
    all = mass.gather(1, torch::searchsorted(mass, options.top_p * all).clamp_max(most - 1));
  const Tensor at = torch::searchsorted(mass, number * all, /*out_int32=*/false, /*right=*/true)
                        .clamp_max(most - 1);
  return ids.defined() ? ids.gather(1, at) : at;
}

// Throws Error{bad_data} if `best`, the highest log-probability, is not finite.
void expect_numbers(double best) {
  if (!std::isfinite(best))
    core::bad_data("the model's log-probabilities are not finite; its weights may be damaged");
}

}  // namespace

std::int64_t best_token(std::span<const float> log_p) {
  const float best =
      log_p.empty() ? std::nanf("") : max_of(log_p.data(), static_cast<std::int64_t>(log_p.size()));
  expect_numbers(static_cast<double>(best));
  return std::find(log_p.begin(), log_p.end(), best) - log_p.begin();
}

std::vector<std::int64_t> best_tokens(std::span<const float> log_p, std::int64_t n) {
  const auto size = static_cast<std::int64_t>(log_p.size());
  n = std::min(n, size);
  const auto at = [&](std::int64_t i) { return log_p[static_cast<std::size_t>(i)]; };
  const auto better = [&](std::int64_t a, std::int64_t b) {
    return at(a) > at(b) || (at(a) == at(b) && a < b);
  };
  std::vector<std::int64_t> tokens(static_cast<std::size_t>(n > kHeapLimit ? size : n));
  std::iota(tokens.begin(), tokens.end(), 0);
  if (n > kHeapLimit) {
    if (n < size) std::nth_element(tokens.begin(), tokens.begin() + n - 1, tokens.end(), better);
    tokens.resize(static_cast<std::size_t>(n));
  } else if (n > 0) {  // the worst token kept is on top
    std::make_heap(tokens.begin(), tokens.end(), better);
    for (std::int64_t i = n; i < size; ++i) {
      if (at(i) <= at(tokens.front())) continue;
      std::pop_heap(tokens.begin(), tokens.end(), better);
      tokens.back() = i;
      std::push_heap(tokens.begin(), tokens.end(), better);
    }
  }
  std::sort(tokens.begin(), tokens.end(), better);
  return tokens;
}

Draw& Draw::by(const DrawOptions& options) {
  options_ = options;
  return *this;
}

void Draw::prepare(std::span<const float> log_p) {
  const float best = log_p[static_cast<std::size_t>(best_token(log_p))];
  const auto size = static_cast<std::int64_t>(log_p.size());
  tokens_.clear();
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
    tokens_ = best_tokens(log_p, n);
    std::vector<float> chosen;
    for (const auto token : tokens_) chosen.push_back(log_p[static_cast<std::size_t>(token)]);
    weights_.resize(chosen.size());
    total_ = exp_weights(chosen.data(), n, best, scale, weights_.data());
    if (!nucleus) return;
    const double wanted = options_.top_p * (counted ? total_ : all);
    double mass = 0;
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      mass += weights_[i];
      if (mass < wanted) continue;
      tokens_.resize(i + 1);
      weights_.resize(i + 1);
      total_ = mass;
      return;
    }
    if (n == most) return;
  }
}

std::int64_t Draw::operator()(std::span<const float> log_p, core::Rng& rng) {
  if (options_.temperature == 0) return best_token(log_p);
  prepare(log_p);
  double left = rng.uniform() * total_;
  std::size_t last = 0;  // rounding may leave mass beyond the last token
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    if (weights_[i] <= 0) continue;
    last = i;
    left -= weights_[i];
    if (left < 0) break;
  }
  return tokens_.empty() ? static_cast<std::int64_t>(last) : tokens_[last];
}

std::vector<std::pair<std::int64_t, double>> Draw::distribution(std::span<const float> log_p) {
  if (options_.temperature == 0) return {{best_token(log_p), 1.0}};
  prepare(log_p);
  return core::generated(weights_.size(), [&](std::size_t i) {
    const auto token = tokens_.empty() ? static_cast<std::int64_t>(i) : tokens_[i];
    return std::pair<std::int64_t, double>(token, weights_[i] / total_);
  });
}

std::vector<DrawnToken> draw_there(
    const DrawOptions& options, const Tensor& log_p, const std::vector<RowDraw>& rows) {
  const torch::NoGradGuard no_gradient;
  const auto by = nn::upload(draw_settings(rows), log_p.device()).split(1, 1);
  const Tensor best = log_p.amax(1, /*keepdim=*/true);
  Tensor tokens = log_p.argmax(1, /*keepdim=*/true);
  if (std::ranges::any_of(rows, [](const auto& row) { return row.temperature > 0; }))
    tokens = torch::where(by[0] > 0, drawn(options, log_p, best, by[0], by[1]), tokens);
  const auto got = nn::Download({tokens, log_p.gather(1, tokens), best}, torch::kFloat64).get();
  const auto number = [&](std::size_t of, std::size_t row) {
    return got[of].const_data_ptr<double>()[row];
  };
  std::vector<DrawnToken> all;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    expect_numbers(number(2, row));
    all.push_back({static_cast<std::int64_t>(number(0, row)), number(1, row)});
  }
  return all;
}

bool StopText::push(std::string_view piece) {
  if (stopped_) return true;
  const std::size_t before = text_.size();
  text_ += piece;
  std::size_t first_end = text_.npos, start = 0;  // of the match that is complete first
  for (const auto& stop : *stops_) {
    const std::size_t reach = stop.size() - 1;
    const std::size_t at = text_.find(stop, before > reach ? before - reach : 0);
    if (at == text_.npos) continue;
    const std::size_t end = at + stop.size();
    if (end > first_end || (end == first_end && at > start)) continue;
    first_end = end;
    start = at;
  }
  if (first_end == text_.npos) return false;
  text_.resize(start);
  stopped_ = true;
  return true;
}

std::size_t StopText::settled() const {
  if (stopped_) return text_.size();
  const std::string_view text = text_;
  std::size_t held = 0;  // longest suffix of the text that begins a stop string
  for (const auto& stop : *stops_) {
    for (std::size_t n = std::min(stop.size() - 1, text.size()); n > held; --n) {
      if (text.substr(text.size() - n) != std::string_view(stop).substr(0, n)) continue;
      held = n;
      break;
    }
  }
  return text.size() - held;
}

std::optional<StoreSpan> propose_span(const SpanOptions& options, const Stores& stores,
    std::span<const StoreShare> shares, std::int64_t room) {
  room = std::min(room, options.longest);
  double sum = 0;
  const StoreShare* best = nullptr;
  for (const StoreShare& one : shares) {
    sum += one.share;
    if (best == nullptr || one.share > best->share) best = &one;
  }
  if (room <= 0 || best == nullptr || sum < options.share) return std::nullopt;
  const store::Store& store = stores[static_cast<std::size_t>(best->store)];
  std::vector<std::int64_t> rows;
  for (auto row = store.after(best->row); row >= 0 && std::ssize(rows) < room;
       row = store.after(row))
    rows.push_back(row);
  if (rows.empty()) return std::nullopt;
  const std::vector<float> any(
      static_cast<std::size_t>(store.query_width()));  // search() must return labels
  std::vector<float> scores(rows.size());
  std::vector<std::int32_t> labels(rows.size());
  store.score(any, rows, scores, labels);
  return StoreSpan{*best, {labels.begin(), labels.end()}};
}

core::OrderedJson to_json(const std::vector<TakenSpan>& spans) {
  core::OrderedJson all = core::OrderedJson::array();
  for (const TakenSpan& span : spans)
    if (span.taken > 0)
      all.push_back({{"token", span.token}, {"tokens", 1 + span.taken}, {"text", span.text},
          {"store", span.store}, {"document", span.document}, {"row", span.row},
          {"share", span.share}});
  return all;
}

std::string span_lines(
    std::uint64_t prompt, std::int64_t sample, const std::vector<TakenSpan>& spans) {
  std::string lines;
  for (const TakenSpan& span : spans)
    if (span.taken > 0)
      fmt::format_to(std::back_inserter(lines), "{}\t{}\t{}\t{}\t{:.4f}\t{}\t{}\t{}\t\n", prompt,
          sample, span.token, task::escape_text(span.text), span.share, core::printable(span.store),
          span.document, span.row);
  return lines;
}

bool agrees(const SpanOptions& options, std::span<const float> log_p, std::int64_t token) {
  if (token < 0 || token >= std::ssize(log_p)) return false;
  const double best = log_p[static_cast<std::size_t>(best_token(log_p))];
  return log_p[static_cast<std::size_t>(token)] >= best + std::log(options.gamma);
}

}  // namespace infer
