#include "infer/score/text_report.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "task/score_pairs.h"

namespace infer {
namespace {

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
      core::fail(core::Code::usage,
                 "--ablate: there is no memory to leave out; add one (see --help=memories)");
    if (memory.gates.any())
      core::fail(core::Code::usage,
                 "--ablate: gates are fitted for all sources together; give constant weights");
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
      core::OrderedJson row{{"sources", one.name},
                            {"perplexity", std::exp(one.nats / tokens)},
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

}  // namespace

std::unique_ptr<TextReport> ablation(const MemoryPlan& memory, std::uint64_t tokens) {
  return std::make_unique<Ablation>(memory, tokens);
}

}  // namespace infer
