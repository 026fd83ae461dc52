#include "infer/score/text_report.h"

#include "core/build_info.h"
#include "task/comparison.h"
#include "task/token_scores.h"
#include "text/formats/tokenizer_json.h"

namespace infer {
namespace {

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
      : by_token_(by_token), bucket_(std::move(of)), document_ends_(std::move(document_ends)),
        nats_(torch::zeros({buckets}, torch::kFloat64)),
        tokens_(torch::zeros({buckets}, torch::kInt64)), names_(std::move(names)) {}

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
      rows.push_back(
          {{"bucket", names_.empty() ? std::to_string(i) : names_[static_cast<std::size_t>(i)]},
              {"tokens", tokens[i]}, {"share", n / all}, {"loss", nats[i] / n},
              {"perplexity", std::exp(nats[i] / n)}});
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

/// Mixtures of subsets of the source kinds. An omitted source has no entries, so its weight is
/// added to the joint softmax. Online weights are learned separately for each mixture.
class Ablation : public TextReport {
 public:
  /// `tokens`: approximate length of the text. Throws Error{usage} without sources, and with gates,
  /// which are fitted for one mixture.
  Ablation(const MemoryPlan& memory, std::uint64_t tokens)
      : memory_(memory), mixture_(memory), block_(task::block_for(tokens)) {
    const auto kinds = memory.kinds();
    if (kinds.empty())
      core::bad_usage("--ablate: there is no memory to leave out; add one (see --help=memories)");
    if (memory.gates.any())
      core::bad_usage("--ablate: gates are fitted for all sources together; give constant weights");
    const OnlineWeights first(mixture_);
    cases_.push_back({"none", std::vector<bool>(kinds.size(), false), first});
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      cases_.push_back({kinds[i]->name(), std::vector<bool>(kinds.size(), false), first});
      cases_.back().kept[i] = true;
    }
    if (kinds.size() > 1) cases_.push_back({"all", std::vector<bool>(kinds.size(), true), first});
  }

  void add(const Scored& scored) override {
    const std::int64_t n = scored.targets.size(0);
    const torch::Tensor weight = scored.parts.weight;
    for (Case& one : cases_) {
      if (scored.fresh) one.online = OnlineWeights(mixture_);
      const Components components = scored.parts.at(memory_, {}, &one.kept);
      const MixtureWeights weights =
          memory_.online ? one.online.learn(components) : mixture_.weights(components.gates);
      torch::Tensor nats = -mixture_.mix(components, weights);
      if (weight.defined()) nats = nats * weight;
      nats = nats.contiguous();
      const auto* const values = nats.const_data_ptr<double>();
      for (std::int64_t i = 0; i < n; ++i) {
        const std::uint64_t block = (tokens_ + static_cast<std::uint64_t>(i)) / block_;
        one.blocks.resize(std::max<std::size_t>(one.blocks.size(), block + 1), 0);
        one.blocks[block] += values[i], one.nats += values[i];
      }
    }
    tokens_ += static_cast<std::uint64_t>(n);
  }
  /// Returns a row {"sources", "perplexity", "loss", "difference", "low", "high", "p"} for none,
  /// each and all sources. The difference is in nats a token relative to none, with its 95 %
  /// confidence interval over blocks of tokens, as in compare-ppl.
  std::vector<core::OrderedJson> rows() const override {
    std::vector<core::OrderedJson> rows;
    const auto tokens = static_cast<double>(tokens_);
    for (const Case& one : cases_) {
      core::OrderedJson row{{"sources", one.name}, {"perplexity", std::exp(one.nats / tokens)},
          {"loss", one.nats / tokens}};
      const bool compared = &one != cases_.data() && tokens_ >= task::kLeastTokens &&
                            one.blocks.size() >= task::kLeastBlocks;
      if (&one != cases_.data()) row["difference"] = (one.nats - cases_[0].nats) / tokens;
      if (&one == cases_.data()) row["difference"] = nullptr;
      for (const char* const name : {"low", "high", "p"}) row[name] = nullptr;
      if (compared) {
        std::vector<task::ScoreBlock> blocks;
        for (std::size_t i = 0; i < one.blocks.size(); ++i)
          blocks.push_back({cases_[0].blocks[i], one.blocks[i],
              std::min<std::uint64_t>(block_, tokens_ - i * block_)});
        const auto found = task::compare_consecutive(blocks, 0.95);
        row["low"] = found.low, row["high"] = found.high, row["p"] = found.p;
      }
      rows.push_back(std::move(row));
    }
    return rows;
  }

 private:
  struct Case {
    std::string name;
    std::vector<bool> kept;  // for each kind of the plan
    OnlineWeights online;
    double nats = 0;
    std::vector<double> blocks = {};  // nats of each block
  };
  MemoryPlan memory_;
  Mixture mixture_;
  std::uint64_t block_, tokens_ = 0;
  std::vector<Case> cases_;
};

/// A Retrieval counts how many labels were among the nearest entries of the scores passed to add().
class Retrieval : public TextReport {
 public:
  /// `at`: numbers of neighbours, each from 1 to `k` of the search (0: no search). Throws
  /// Error{usage}.
  Retrieval(std::vector<std::int64_t> at, std::int64_t most)
      : at_(std::move(at)), found_(at_.size(), 0) {
    if (most == 0) core::bad_usage("--retrieval-at: requires --datastore");
    for (const std::int64_t k : at_)
      if (k < 1 || k > most) core::bad_usage("--retrieval-at {}: takes 1 to --k, {}", k, most);
  }
  void add(const Scored& scored) override {
    const torch::Tensor rank = scored.parts.found()->rank_of(scored.targets);
    for (std::size_t i = 0; i < at_.size(); ++i)
      found_[i] += (rank < at_[i]).sum().item<std::int64_t>();
    tokens_ += rank.numel();
  }
  void add_to(core::OrderedJson& figures) const override {
    auto all = core::OrderedJson::array();
    for (std::size_t i = 0; i < at_.size(); ++i)
      all.push_back({{"k", at_[i]},
          {"share", static_cast<double>(found_[i]) / static_cast<double>(tokens_)}});
    figures["retrieval"] = std::move(all);
  }

 private:
  std::vector<std::int64_t> at_, found_;
  std::int64_t tokens_ = 0;
};

std::vector<std::string> columns_of_kinds() {
  return core::mapped(source_kinds(), [](const auto* kind) {
    return kind->facts().column.empty() ? kind->name() : kind->facts().column;
  });
}

/// Writes a line (task/token_scores.h) for each token of each block, in the given order. The file
/// appears complete at commit() or not at all. `data` must outlive the object.
class PerToken : public TextReport {
 public:
  PerToken(const std::string& path, const shard::Dataset& data, const MemoryPlan& memory,
      const std::string& signature)
      : out_(path), writer_(out_, columns_of_kinds(),
                        fmt::format("eval-ppl {} (git {}) {}", core::build::kVersion,
                            core::build::kGit, signature)),
        documents_(data.documents()), memory_(memory), mixture_(memory) {
    if (!data.header().tokenizer.empty())
      tokenizer_ = text::parse_tokenizer(data.header().tokenizer, data.name());
  }
  void add(const Scored& scored) override {
    const auto targets = scored.targets.accessor<std::int64_t, 1>();
    const Components at = scored.parts.at(memory_);
    std::vector<torch::Tensor> sources;  // a kind with several weights has their sum
    for (const auto* const kind : source_kinds()) {
      torch::Tensor& together = sources.emplace_back();
      double sum = 0;
      for (std::size_t i = 0; i < mixture_.size(); ++i) {
        if (mixture_.kind(i) != kind->name()) continue;
        const double weight = std::max(mixture_.constants(i)[0], kLeastShare);
        const torch::Tensor own = at.separate[i] + std::log(weight);
        together = together.defined() ? torch::logaddexp(together, own) : own;
        sum += weight;
      }
      if (together.defined()) together = (together - std::log(sum)).contiguous();
    }
    const auto value = [](const torch::Tensor& part, std::int64_t i) {
      return part.defined() ? -part.const_data_ptr<double>()[i]
                            : std::numeric_limits<double>::quiet_NaN();
    };
    const torch::Tensor joint = at.joint.contiguous();
    task::TokenScore row;
    for (std::int64_t i = 0; i < targets.size(0); ++i) {
      row.position = scored.first + static_cast<std::uint64_t>(i);
      while (documents_.end[document_] <= row.position) ++document_;
      row.document = document_;
      row.token = static_cast<std::uint32_t>(targets[i]);
      if (tokenizer_) row.text = task::escape_text(tokenizer_->token(row.token));
      row.head = value(scored.parts.head, i), row.joint = value(joint, i);
      row.sources.clear();
      for (const auto& source : sources) row.sources.push_back(value(source, i));
      row.nats = value(scored.log_prob, i);
      writer_.write(row);
    }
  }
  void commit() override { out_.commit(); }

 private:
  core::Output out_;
  task::TokenScoreWriter writer_;
  const shard::Documents& documents_;
  MemoryPlan memory_;
  Mixture mixture_;
  std::size_t document_ = 0;
  text::TokenizerPtr tokenizer_;
};

}  // namespace

std::unique_ptr<TextReport> loss_by_frequency(
    const shard::Dataset& data, const shard::Dataset& counts) {
  shard::expect_kind(counts.header(), {shard::Kind::tokens}, counts.name());
  shard::expect_same_header(data.files().front(), counts.files().front());
  const auto occurrences = count_tokens(counts, data.header().vocabulary);
  const auto bucket = core::mapped(occurrences, [](std::uint64_t count) {
    std::int64_t digits = 0;
    for (; count > 0; count /= 10) ++digits;
    return digits;
  });
  const auto highest = core::max_of(bucket, std::identity());
  std::vector<std::string> names = {"0"};
  std::uint64_t low = 1;
  for (std::int64_t i = 1; i <= highest; ++i, low *= 10)
    names.push_back(range_name(low, low * 10 - 1));
  return std::make_unique<Breakdown>(
      highest + 1, true, torch::tensor(bucket, torch::kInt64), Tensor(), std::move(names));
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
  return std::make_unique<Breakdown>(
      documents, false, Tensor(), ends_of(data.documents()), std::vector<std::string>());
}

std::unique_ptr<TextReport> ablation(const MemoryPlan& memory, std::uint64_t tokens) {
  return std::make_unique<Ablation>(memory, tokens);
}

std::unique_ptr<TextReport> retrieval_accuracy(std::vector<std::int64_t> at, std::int64_t k) {
  return std::make_unique<Retrieval>(std::move(at), k);
}

std::unique_ptr<TextReport> per_token_file(const std::string& path, const shard::Dataset& data,
    const MemoryPlan& memory, const std::string& signature) {
  return std::make_unique<PerToken>(path, data, memory, signature);
}

}  // namespace infer
