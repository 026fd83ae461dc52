#include "infer/score/text_report.h"

#include "core/error.h"

namespace infer {
namespace {

/// A Retrieval counts how many labels were among the nearest entries of the scores passed to add().
class Retrieval : public TextReport {
 public:
  /// `at`: numbers of neighbours, each from 1 to `k` of the search (0: no search). Throws
  /// Error{usage}.
  Retrieval(std::vector<std::int64_t> at, std::int64_t most)
      : at_(std::move(at)), found_(at_.size(), 0) {
    if (most == 0) core::fail(core::Code::usage, "--retrieval-at: requires --datastore");
    for (const std::int64_t k : at_)
      if (k < 1 || k > most)
        core::fail(core::Code::usage, "--retrieval-at {}: takes 1 to --k, {}", k, most);
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

}  // namespace

std::unique_ptr<TextReport> retrieval_accuracy(std::vector<std::int64_t> at, std::int64_t k) {
  return std::make_unique<Retrieval>(std::move(at), k);
}

}  // namespace infer
