#include "infer/score/retrieval.h"

#include "core/error.h"

namespace infer {

Retrieval::Retrieval(std::vector<std::int64_t> at, std::int64_t most)
    : at_(std::move(at)), found_(at_.size(), 0) {
  if (most == 0) core::fail(core::Code::usage, "--retrieval-at: requires --datastore");
  for (const std::int64_t k : at_)
    if (k < 1 || k > most)
      core::fail(core::Code::usage, "--retrieval-at {}: takes 1 to --k, {}", k, most);
}

void Retrieval::add(const Scored& scored) {
  const torch::Tensor rank = scored.parts.found()->rank_of(scored.targets);
  for (std::size_t i = 0; i < at_.size(); ++i)
    found_[i] += (rank < at_[i]).sum().item<std::int64_t>();
  tokens_ += rank.numel();
}

core::OrderedJson Retrieval::figures() const {
  core::OrderedJson all = core::OrderedJson::array();
  for (std::size_t i = 0; i < at_.size(); ++i)
    all.push_back(
        {{"k", at_[i]}, {"share", static_cast<double>(found_[i]) / static_cast<double>(tokens_)}});
  return all;
}

}  // namespace infer
