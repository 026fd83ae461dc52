#include "infer/score/text_report.h"

#include <algorithm>
#include <cmath>

#include "shard/file.h"

namespace infer {
namespace {

using torch::Tensor;

constexpr std::size_t kPieceTokens = 1 << 20;

Tensor ends_of(const shard::Documents& documents) {
  Tensor ends = torch::empty({static_cast<std::int64_t>(documents.size())}, torch::kInt64);
  std::copy(documents.end.begin(), documents.end.end(), ends.data_ptr<std::int64_t>());
  return ends;
}

std::string range_name(std::uint64_t low, std::uint64_t high) {
  return low == high ? std::to_string(low) : fmt::format("{}-{}", low, high);
}

std::vector<std::uint64_t> count_tokens(const shard::Dataset& data, std::uint64_t vocabulary) {
  std::vector<std::uint64_t> counts(vocabulary, 0);
  std::vector<std::uint32_t> piece;
  for (std::uint64_t at = 0; at < data.size(); at += piece.size()) {
    piece.resize(std::min<std::uint64_t>(kPieceTokens, data.size() - at));
    data.read(at, std::span(piece));
    for (const auto token : piece)
      if (token < vocabulary) ++counts[token];
  }
  return counts;
}

/// Sums of the scores passed to add(), by bucket.
class Breakdown : public TextReport {
 public:
  Breakdown(std::int64_t buckets, bool by_token, Tensor of, Tensor document_ends,
            std::vector<std::string> names)
      : by_token_(by_token),
        bucket_(std::move(of)),
        document_ends_(std::move(document_ends)),
        nats_(torch::zeros({buckets}, torch::kFloat64)),
        tokens_(torch::zeros({buckets}, torch::kInt64)),
        names_(std::move(names)) {}

  void add(const Scored& scored) override {
    const Tensor buckets = buckets_of(scored);
    nats_.index_add_(0, buckets, scored.log_prob, -1);
    tokens_.index_add_(0, buckets, torch::ones_like(buckets));
  }
  /// Returns a row {bucket, tokens, share (fraction of all tokens), loss, perplexity} for each
  /// non-empty bucket, in order.
  std::vector<core::OrderedJson> rows() const override {
    std::vector<core::OrderedJson> rows;
    const auto nats = nats_.accessor<double, 1>();
    const auto tokens = tokens_.accessor<std::int64_t, 1>();
    const auto all = static_cast<double>(tokens_.sum().item<std::int64_t>());
    for (std::int64_t i = 0; i < tokens.size(0); ++i) {
      if (tokens[i] == 0) continue;
      const auto n = static_cast<double>(tokens[i]);
      core::OrderedJson row;
      row["bucket"] = names_.empty() ? std::to_string(i) : names_[static_cast<std::size_t>(i)];
      row["tokens"] = tokens[i];
      row["share"] = n / all;
      row["loss"] = nats[i] / n;
      row["perplexity"] = std::exp(nats[i] / n);
      rows.push_back(std::move(row));
    }
    return rows;
  }

 private:
  Tensor buckets_of(const Scored& scored) const {
    if (by_token_) return bucket_.index_select(0, scored.targets);
    const auto first = static_cast<std::int64_t>(scored.first);
    const Tensor at = torch::arange(first, first + scored.targets.numel());
    const Tensor document =
        torch::searchsorted(document_ends_, at, /*out_int32=*/false, /*right=*/true);
    if (!bucket_.defined()) return document;
    const Tensor starts = torch::cat({torch::zeros({1}, torch::kInt64), document_ends_});
    return torch::searchsorted(bucket_, at - starts.index_select(0, document),
                               /*out_int32=*/false, /*right=*/true);
  }

  bool by_token_;
  Tensor bucket_;                   // by token id (by_token), else powers of two or empty
  Tensor document_ends_;            // (documents) int64
  Tensor nats_, tokens_;            // for each bucket
  std::vector<std::string> names_;  // empty: the number is the name
};

}  // namespace

std::unique_ptr<TextReport> loss_by_frequency(const shard::Dataset& data,
                                              const shard::Dataset& counts) {
  shard::expect_kind(counts.header(), {shard::Kind::tokens}, counts.name());
  shard::expect_same_header(data.files().front(), counts.files().front());
  std::vector<std::int64_t> bucket;
  std::int64_t highest = 0;
  for (std::uint64_t count : count_tokens(counts, data.header().vocabulary)) {
    std::int64_t digits = 0;
    for (; count > 0; count /= 10) ++digits;
    bucket.push_back(digits);
    highest = std::max(highest, digits);
  }
  std::vector<std::string> names = {"0"};
  std::uint64_t low = 1;
  for (std::int64_t i = 1; i <= highest; ++i, low *= 10)
    names.push_back(range_name(low, low * 10 - 1));
  return std::make_unique<Breakdown>(highest + 1, true, torch::tensor(bucket, torch::kInt64),
                                     Tensor(), std::move(names));
}

std::unique_ptr<TextReport> loss_by_position(const shard::Dataset& data) {
  std::vector<std::int64_t> starts;  // of the buckets after the first: 1, 2, 4, ...
  std::vector<std::string> names = {"0"};
  for (std::uint64_t low = 1; low < std::max<std::uint64_t>(2, data.size()); low *= 2) {
    starts.push_back(static_cast<std::int64_t>(low));
    names.push_back(range_name(low, 2 * low - 1));
  }
  const auto buckets = std::ssize(names);
  return std::make_unique<Breakdown>(buckets, false, torch::tensor(starts, torch::kInt64),
                                     ends_of(data.documents()), std::move(names));
}

std::unique_ptr<TextReport> loss_by_document(const shard::Dataset& data) {
  const auto documents = static_cast<std::int64_t>(data.documents().size());
  return std::make_unique<Breakdown>(documents, false, Tensor(), ends_of(data.documents()),
                                     std::vector<std::string>());
}

}  // namespace infer
