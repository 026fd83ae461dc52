#include "infer/windows/head_rows.h"

#include "infer/windows/confidence_kernels.h"
#include "nn/base/cuda.h"

namespace infer {
namespace {

using torch::Tensor;

Tensor confidence_here(const Tensor& log_probs) {
  const Tensor rows = log_probs.contiguous();
  const std::int64_t n = rows.size(0), vocabulary = rows.size(1);
  const Tensor confidence = torch::empty({n, 3}, torch::kFloat64);
  const float* const from = rows.const_data_ptr<float>();
  double* const to = confidence.data_ptr<double>();
  at::parallel_for(0, n, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const RowConfidence row = row_confidence(from + i * vocabulary, vocabulary);
      to[3 * i] = row.entropy;
      to[3 * i + 1] = std::exp(row.top);
      to[3 * i + 2] = row.top;
    }
  });
  return confidence;
}

}  // namespace

Tensor confidence_of(const Tensor& log_probs) {
  if (nn::in_host_memory(log_probs) && log_probs.scalar_type() == torch::kFloat32)
    return confidence_here(log_probs);
  constexpr double kFinite = -1e30;  // replaces -inf: an impossible token adds nothing
  const Tensor p = log_probs.exp();
  const Tensor entropy = -(p * log_probs.clamp_min(kFinite)).sum(1);
  const Tensor top = log_probs.amax(1);
  return torch::stack({entropy, top.exp(), top}, 1).to(torch::kFloat64);
}

Tensor at_temperature(const Tensor& log_probs, double temperature) {
  return temperature == 1 ? log_probs : (log_probs / temperature).log_softmax(1);
}

HeadRows head_rows(nn::Head& head, const Tensor& f, const nn::Targets& targets, bool confident,
    const std::vector<double>& temperatures) {
  constexpr std::int64_t kBlockBytes = 64 << 20;
  const std::int64_t rows = f.size(0);
  const std::int64_t block =
      std::max<std::int64_t>(16, kBlockBytes / std::max<std::int64_t>(1, head.bytes_per_row()));
  std::vector<Tensor> log_prob, log_z, confidence, tempered;
  for (std::int64_t begin = 0; begin < rows; begin += block) {
    const std::int64_t end = std::min(begin + block, rows);
    if (!confident && temperatures.empty()) {
      const auto made = head.block(f.slice(0, begin, end), targets.slice(begin, end), false);
      log_prob.push_back(made->log_prob), log_z.push_back(made->log_z);
      continue;
    }
    Tensor z;
    const Tensor log_probs = head.log_probs(f.slice(0, begin, end), &z);
    const Tensor own =
        log_probs.gather(1, targets.there.slice(0, begin, end).unsqueeze(1)).squeeze(1);
    log_prob.push_back(own);
    log_z.push_back(z);
    if (confident) confidence.push_back(confidence_of(log_probs));
    std::vector<Tensor> each;
    for (const double t : temperatures)
      each.push_back(t == 1 ? own : own / t - (log_probs / t).logsumexp(1));
    if (!each.empty()) tempered.push_back(torch::stack(each, 1));
  }
  const auto whole = [](const std::vector<Tensor>& pieces) {
    return pieces.empty() ? Tensor() : pieces.size() == 1 ? pieces[0] : torch::cat(pieces);
  };
  return {whole(log_prob), whole(log_z), whole(confidence), whole(tempered)};
}

}  // namespace infer
