#include "infer/score/text_report.h"

#include "core/build_info.h"
#include "task/token_scores.h"
#include "text/formats/tokenizer_json.h"

namespace infer {
namespace {

std::vector<std::string> columns_of_kinds() {
  std::vector<std::string> names;
  for (const auto* const kind : source_kinds())
    names.push_back(kind->facts().column.empty() ? kind->name() : kind->facts().column);
  return names;
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
        const torch::Tensor own = at.own[i] + std::log(weight);
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

std::unique_ptr<TextReport> per_token_file(const std::string& path, const shard::Dataset& data,
    const MemoryPlan& memory, const std::string& signature) {
  return std::make_unique<PerToken>(path, data, memory, signature);
}

}  // namespace infer
