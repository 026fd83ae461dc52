#include "infer/score/per_token.h"
#include "text/formats/tokenizer_json.h"

#include <limits>

namespace infer {

PerToken::PerToken(const std::string& path, const shard::Dataset& data, WithPlan with)
    : out_(path), writer_(out_), documents_(data.documents()), with_(std::move(with)) {
  if (!data.header().tokenizer.empty())
    tokenizer_ = text::parse_tokenizer(data.header().tokenizer, data.name());
}

void PerToken::add(const Scored& scored) {
  const auto targets = scored.targets.accessor<std::int64_t, 1>();
  const auto first_point = [](const torch::Tensor& part) {  // of the grid: (R)
    return part.defined() ? part.flatten(0, -2)[0].contiguous() : torch::Tensor();
  };
  const auto& parts = scored.parts;
  const torch::Tensor joint = first_point(parts.joint), memory = first_point(parts.memory);
  const torch::Tensor cache = first_point(parts.cache), stores = first_point(parts.stores);
  const torch::Tensor& ngrams = parts.ngrams.log_prob;
  const torch::Tensor with =
      parts.with.defined() ? with_.mix(parts.with).contiguous() : torch::Tensor();
  const auto value = [](const torch::Tensor& part, std::int64_t i) {
    return part.defined() ? -part.const_data_ptr<double>()[i]
                          : std::numeric_limits<double>::quiet_NaN();
  };
  for (std::int64_t i = 0; i < targets.size(0); ++i) {
    task::TokenScore row;
    row.position = scored.first + static_cast<std::uint64_t>(i);
    while (documents_.end[document_] <= row.position) ++document_;
    row.document = document_;
    row.token = static_cast<std::uint32_t>(targets[i]);
    if (tokenizer_) row.text = task::escape_text(tokenizer_->token(row.token));
    row.head = value(parts.head, i), row.joint = value(joint, i);
    row.memory = value(memory, i), row.cache = value(cache, i), row.stores = value(stores, i);
    row.ngrams = value(ngrams, i);
    row.with = value(with, i);
    row.nats = value(scored.log_prob, i);
    writer_.write(row);
  }
}

}  // namespace infer
