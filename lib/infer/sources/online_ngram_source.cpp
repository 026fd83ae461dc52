// N-grams of the text so far: the tokens that followed each suffix of the context earlier in the
// same stream. Their counts are interpolated from the longest suffix down to the whole vocabulary
// (Witten and Bell 1991): p_k(w) = (c_k(w) + t_k p_(k-1)(w)) / (c_k + t_k), where the last k tokens
// were followed by w c_k(w) times, by any token c_k times, and by t_k different tokens.

#include "infer/sources/kind_of.h"
#include "infer/sources/ngram_source.h"
#include "infer/sources/text_source.h"

namespace infer {
namespace {

constexpr const char *kTextTokens = "online-ngrams-tokens", *kTextLambda = "--online-ngrams-lambda";
constexpr std::int32_t kLongest = 32;  // tokens of a suffix that count

// Initial and default weights: of the lengths with several next tokens, then of those with one.
constexpr std::array<double, kNgramBuckets> kTextShares = {0.01, 0.03, 0.06, 0.1, 0.15, 0.2, 0.3,
    0.3, 0.3, 0.3,  // several
    0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.5, 0.5, 0.5};

struct OnlineNgramOptions {
  bool on = false;
  std::int64_t tokens = 65536;
  MemoryWeights lambda;

  bool any() const { return on; }
};

struct OnlineNgramPlan {
  bool on = false;
  std::int64_t tokens = 0, vocabulary = 0;
  std::vector<double> lambda;  // weight of each bucket

  bool any() const { return on; }
};

// The last tokens of a stream, each with its previous occurrence and with the length of the suffix
// of the text that ends at it. A length is right while its token is the last one of the text: the
// token's other occurrences get their lengths when it is read.
class TextNgrams {
 public:
  TextNgrams(std::int64_t tokens, std::int64_t vocabulary)
      : kept_(tokens), vocabulary_(vocabulary) {}

  void push(std::uint32_t token) {
    if (token >= vocabulary_) return;
    if (read_ >= kept_)
      if (const auto old = counts_.find(at(read_ - kept_).token); --old->second.count == 0)
        counts_.erase(old);
    const std::int64_t now = read_++;
    // One place more than is kept: the token before the oldest one that counts.
    if (std::ssize(places_) <= kept_) places_.emplace_back();
    Count& count = counts_[token];
    for (std::int64_t i = count.last; i >= begin(); i = at(i).before) {
      const bool longer = i > 0 && at(i - 1).token == at(now - 1).token;
      at(i).matched = longer ? std::min(at(i - 1).matched + 1, kLongest) : 1;
    }
    at(now) = {token, 0, count.last};
    count = {count.count + 1, now};
  }

  // Calls use(position of the next token, length of the suffix before it) for each earlier
  // occurrence of the last token.
  template <class Use> void each_match(const Use& use) const {
    if (read_ == 0) return;
    for (std::int64_t i = at(read_ - 1).before; i >= begin(); i = at(i).before)
      use(i + 1, at(i).matched);
  }

  // p of a token that occurred `count` times, without a context.
  double alone(std::int64_t count) const {
    const auto types = static_cast<double>(counts_.size());
    return (static_cast<double>(count) + types / static_cast<double>(vocabulary_)) /
           (static_cast<double>(read_ - begin()) + types);
  }
  struct Count {
    std::int64_t count = 0, last = -1;
  };
  const std::unordered_map<std::uint32_t, Count>& counts() const { return counts_; }

  std::int64_t size() const { return read_; }
  // The first position that counts.
  std::int64_t begin() const { return std::max<std::int64_t>(0, read_ - kept_); }
  std::uint32_t token(std::int64_t i) const { return at(i).token; }

 private:
  struct Place {
    std::uint32_t token = 0;
    std::int32_t matched = 0;
    std::int64_t before = -1;
  };
  const Place& at(std::int64_t i) const {
    return places_[static_cast<std::size_t>(i % (kept_ + 1))];
  }
  Place& at(std::int64_t i) { return places_[static_cast<std::size_t>(i % (kept_ + 1))]; }

  std::int64_t kept_, vocabulary_, read_ = 0;
  std::vector<Place> places_;  // a ring
  std::unordered_map<std::uint32_t, Count> counts_;
};

class OnlineNgramSource : public TextSource<TextNgrams> {
 public:
  OnlineNgramSource(
      const OnlineNgramPlan& own, const MemoryPlan&, const StreamShape& shape, const Grid&)
      : TextSource(TextNgrams(own.tokens, own.vocabulary), shape.streams),
        vocabulary_(own.vocabulary), orders_(kLongest + 1), followed_(at(own.vocabulary)) {}

  // log p (R), NaN before the first token, and the buckets (R).
  std::vector<Tensor> recall(const Window& window, const Tensor& targets) override {
    const std::int64_t n = targets.size(0);
    const Tensor log_prob = torch::empty({n}, torch::kFloat64);
    const Tensor bucket = torch::empty({n}, torch::kInt64);
    each_target(window, targets, [&](std::int64_t i, std::int64_t token, TextNgrams& text) {
      double p = 0;
      const auto context = mix(text, [&](double scale) { p += scale * followed_[at(token)]; });
      const auto found = text.counts().find(static_cast<std::uint32_t>(token));
      p += context.left * text.alone(found == text.counts().end() ? 0 : found->second.count);
      log_prob.data_ptr<double>()[i] = context.bucket < 0 ? NAN : std::log(p);
      bucket.data_ptr<std::int64_t>()[i] = context.bucket;
      text.push(static_cast<std::uint32_t>(token));
    });
    return {log_prob, bucket};
  }

  SourceScores score(const RecalledRows& rows) override {
    return {.separate = {rows.recalled[0]}, .bucket = rows.recalled[1].to(torch::kInt64)};
  }

  VocabularyScores score_vocabulary(const VocabularyRows& rows) override {
    log_prob_ = torch::empty({rows.head.size(0), vocabulary_}, torch::kFloat64);
    sizes_.clear();
    of_window_ = rows.window != nullptr;
    std::vector<std::int64_t> buckets;
    each_row(rows, [&](std::int64_t i, const TextNgrams& text) {
      sizes_.push_back(text.size());
      buckets.push_back(log_probs(text, log_prob_[i].data_ptr<double>()));
    });
    return {.separate = {log_prob_.to(rows.head.options())},
        .bucket = torch::tensor(buckets, torch::kInt64)};
  }

  // Cites the earlier positions of the token that followed the longest suffix.
  Evidence evidence(const RowToken& of, const RowWeights& weights, std::int64_t most,
      std::int64_t context_tokens) const override {
    const TextNgrams& text = stream(of_window_ ? 0 : of.row);
    const std::int64_t size = sizes_[at(of.row)];
    std::vector<std::int64_t> found;
    std::int64_t longest = 1;
    for (std::int64_t i = size - 1; i > text.begin(); --i) {
      if (text.token(i) != of.token) continue;
      std::int64_t length = 0;
      while (length < std::min<std::int64_t>(kLongest, i - text.begin()) &&
             text.token(i - 1 - length) == text.token(size - 1 - length))
        ++length;
      if (length > longest) found.clear();
      if (length >= longest) found.push_back(i);
      longest = std::max(longest, length);
    }
    if (found.empty()) return {};
    Evidence evidence{weights.separate[0][of.row].item<double>() *
                      std::exp(log_prob_[of.row][of.token].item<double>() - of.log_prob)};
    const double each = evidence.share / static_cast<double>(found.size());
    for (std::int64_t i : found) {
      if (std::ssize(evidence.contexts) == most) break;
      auto& cited = evidence.contexts.emplace_back();
      cited.store = "online-ngrams", cited.row = i, cited.share = each, cited.matched = longest;
      for (std::int64_t b = std::max(text.begin(), i - context_tokens); b < i; ++b)
        cited.before.push_back(static_cast<std::int32_t>(text.token(b)));
    }
    return evidence;
  }

 private:
  struct Context {
    std::int64_t bucket = -1;  // -1: no token was read
    double left = 1;           // weight of the distribution without a context
  };

  // Calls add(scale) for each order from the longest down: p of each of types_ gets scale times its
  // count in followed_.
  template <class Add> Context mix(const TextNgrams& text, const Add& add) {
    Context context;
    if (text.size() == 0) return context;
    context.bucket = ngram_bucket(0, false);
    text.each_match([&](std::int64_t next, std::int64_t length) {
      orders_[at(length)].push_back(text.token(next));
    });
    double matches = 0;
    for (std::int64_t order = kLongest; order > 0; --order) {
      auto& next = orders_[at(order)];
      for (const std::uint32_t token : next)
        if (followed_[token]++ == 0) types_.push_back(token);
      if (matches == 0 && !next.empty())
        context.bucket = ngram_bucket(static_cast<std::uint64_t>(order), types_.size() == 1);
      matches += static_cast<double>(next.size());
      next.clear();
      if (matches == 0) continue;
      const auto types = static_cast<double>(types_.size());
      const double scale = context.left / (matches + types);
      add(scale);
      context.left = scale * types;
    }
    for (const std::uint32_t token : types_) followed_[token] = 0;
    types_.clear();
    return context;
  }

  // Writes log p of all tokens, NaN before the first one, and returns the bucket.
  std::int64_t log_probs(const TextNgrams& text, double* of) {
    std::unordered_map<std::uint32_t, double> parts;
    const auto context = mix(text, [&](double scale) {
      for (const std::uint32_t token : types_) parts[token] += scale * followed_[token];
    });
    const double none = context.left * text.alone(0);
    std::fill_n(of, vocabulary_, context.bucket < 0 ? NAN : std::log(none));
    for (const auto& [token, count] : text.counts()) {
      const auto part = parts.find(token);
      of[token] = std::log(
          (part == parts.end() ? 0 : part->second) + context.left * text.alone(count.count));
    }
    return context.bucket;
  }

  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

  std::int64_t vocabulary_;
  std::vector<std::vector<std::uint32_t>> orders_;  // next tokens by the length before them
  std::vector<double> followed_;                    // counts of next tokens
  std::vector<std::uint32_t> types_;                // the tokens that have one
  // Of the last score_vocabulary(): log p (R, V), tokens before each row, whether stream 0 has all.
  Tensor log_prob_;
  std::vector<std::int64_t> sizes_;
  bool of_window_ = false;
};

class OnlineNgramKind
    : public WeightedKind<OnlineNgramOptions, OnlineNgramPlan, OnlineNgramSource> {
 public:
  OnlineNgramKind()
      : WeightedKind({.name = "online-ngrams",
            .reads = true,
            .cites = true,
            .gate = {.weights = kNgramBuckets, .run = kNgramLengthBuckets}}) {}

  void fields(MemoryOptions& o, core::FieldList& f) const override {
    const auto in_memories = f.group("Memories");
    f("online-ngrams", own(o).on, "mix in the n-grams of the text so far");
    f(kTextTokens, own(o).tokens, "number of last tokens whose n-grams are used").between(1, 16e6);
    f("online-ngrams-lambda", *own(o).lambda.target(),
        "interpolation weight of these n-grams: one value, or 20 as in --ngrams-lambda");
  }

  void plan(const MemoryOptions& o, const PlanContext& context, MemoryPlan& plan) const override {
    const auto& from = own(o);
    if (from.lambda.gated()) core::bad_usage("{} gate: not supported; give numbers", kTextLambda);
    auto shares = from.lambda.open() ? std::vector(kTextShares.begin(), kTextShares.end())
                                     : ngram_weights(from.lambda, kTextLambda);
    own(plan) = {from.on, from.tokens, context.model.vocabulary, std::move(shares)};
  }
  bool wants_more(const MemoryPlan& plan, std::span<const std::int64_t> read) const override {
    return std::ssize(read) < own(plan).tokens + kLongest;
  }
  void sign(const MemoryPlan& plan, const SayFact& say) const override {
    say(kTextTokens, fmt::format("{}", own(plan).tokens));
    sign_weight(plan, say);
  }
};

}  // namespace

const SourceKind& online_ngram_kind() { return only<OnlineNgramKind>(); }

}  // namespace infer
