// The sources of TransformerEngine. The model's own modules encode each source once, and every
// token of its rows reads the result. Rows with one source share the result.

#include <algorithm>
#include <cmath>

#include "infer/loops/transformer_engine.h"
#include "nn/arch/encoder_decoder.h"

namespace infer {

void TransformerEngine::encode_sources(const std::vector<Feed>& feeds) {
  std::vector<std::size_t> rows;
  std::size_t longest = 0;
  for (std::size_t row = 0; row < feeds.size(); ++row) {
    if (feeds[row].source.empty()) continue;
    rows.push_back(row);
    longest = std::max(longest, feeds[row].source.size());
  }
  if (rows.empty()) return;
  const torch::NoGradGuard no_gradient;
  const auto ids =
      torch::full({std::ssize(rows), static_cast<std::int64_t>(longest)}, -1, torch::kInt64);
  for (std::size_t i = 0; i < rows.size(); ++i)
    std::copy(feeds[rows[i]].source.begin(), feeds[rows[i]].source.end(),
              ids.data_ptr<std::int64_t>() + i * longest);
  auto& model = dynamic_cast<nn::EncoderDecoder&>(*model_.architecture);
  std::vector<torch::Tensor> parts;  // keys and values of each layer: (B, S, d)
  for (const auto& entries : model.source_entries(ids))
    for (const auto& part : {entries.keys, entries.values})
      parts.push_back(part.transpose(1, 2).flatten(2).contiguous());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto length = std::ssize(feeds[rows[i]].source);
    auto source = std::make_shared<Source>();
    source->length = length;
    for (const auto& part : parts) {
      const float* const from = part.const_data_ptr<float>() + i * longest * d_;
      source->entries.insert(source->entries.end(), from, from + length * d_);
    }
    sources_[rows[i]] = std::move(source);
  }
}

// Computes a thread's share of the attention over the sources. A row without a source is unchanged.
void TransformerEngine::read_sources(std::size_t index, const std::vector<Token>& tokens,
                                     TeamShare share) {
  const Cross& cross = *layers_[index].cross;
  const auto n = n_, heads = heads_.heads, width = heads_.width;
  const Rows asking = norms_inputs() ? normed(cross.norm, share) : x_.rows();
  multiply(cross.query, asking, share, qkv_);
#pragma omp barrier
  const auto source_of = [&](std::int64_t i) {
    return sources_[tokens[static_cast<std::size_t>(i)].row].get();
  };
  for (auto task = share.begin(n * heads); task < share.end(n * heads); ++task) {
    const auto i = task / heads, head = task % heads;
    if (const Source* const source = source_of(i))
      attend_source(*source, index, head, qkv_.row(i) + head * width,
                    attended_.row(i) + head * width, scores_.of(share.thread));
  }
#pragma omp barrier
  multiply(cross.project, attended_.rows(), share, sums_);
  const auto [first, last] = cross.project.range(share);
  for (std::int64_t i = 0; i < n; ++i)
    if (source_of(i) != nullptr) add(sums_.row(i) + first, last - first, x_.row(i) + first);
#pragma omp barrier
  if (!norms_inputs()) normalise_stream(cross.norm, share);
}

// softmax(q k^T / sqrt(width)) v over the whole source.
void TransformerEngine::attend_source(const Source& source, std::size_t layer, std::int64_t head,
                                      const float* q, float* out, float* scores) const {
  const auto n = source.length, width = heads_.width;
  const float* const keys =
      source.entries.data() + static_cast<std::int64_t>(2 * layer) * n * d_ + head * width;
  const float* const values = keys + n * d_;
  const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(width)));
  attention_scores(q, keys, d_, n, width, scale, scores);
  softmax(scores, n);
  std::fill_n(out, width, 0.0f);
  add_weighted(scores, values, d_, n, width, out);
}

}  // namespace infer
