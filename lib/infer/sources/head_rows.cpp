#include "infer/sources/head_rows.h"

#include <algorithm>
#include <vector>

#include "infer/sources/gate_features.h"

namespace infer {

using torch::Tensor;

HeadRows head_rows(nn::Head& head, const Tensor& f, const nn::Targets& targets, bool confident,
                   std::int64_t block_bytes) {
  const std::int64_t rows = f.size(0);
  const std::int64_t block =
      std::max<std::int64_t>(16, block_bytes / std::max<std::int64_t>(1, head.bytes_per_row()));
  std::vector<Tensor> log_prob, log_z, confidence;
  for (std::int64_t begin = 0; begin < rows; begin += block) {
    const std::int64_t end = std::min(begin + block, rows);
    if (!confident) {
      const auto made = head.block(f.slice(0, begin, end), targets.slice(begin, end), false);
      log_prob.push_back(made->log_prob), log_z.push_back(made->log_z);
      continue;
    }
    Tensor z;
    const Tensor words = head.log_probs(f.slice(0, begin, end), &z);
    log_prob.push_back(words.gather(1, targets.there.slice(0, begin, end).unsqueeze(1)).squeeze(1));
    log_z.push_back(z);
    confidence.push_back(confidence_of(words));
  }
  const auto whole = [](const std::vector<Tensor>& pieces) {
    return pieces.empty() ? Tensor() : pieces.size() == 1 ? pieces[0] : torch::cat(pieces);
  };
  return {whole(log_prob), whole(log_z), whole(confidence)};
}

}  // namespace infer
