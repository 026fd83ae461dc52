#pragma once
// Small models and texts for the tests of scoring.

#include <stdlib.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "core/io.h"
#include "core/rng.h"
#include "infer/score/scorer.h"
#include "nn/arch/model.h"
#include "nn/base/torch.h"
#include "nn/layers/layers.h"
#include "shard/dataset.h"
#include "shard/writer.h"
#include "unit/infer/memories.h"

namespace tiny {

/// The vocabulary of most models and texts here.
inline constexpr std::int64_t kTypes = 23;

/// Documents as token ids, with source bytes and words.
struct Text {
  std::uint64_t vocabulary = kTypes;
  std::vector<std::vector<std::uint32_t>> documents;
  std::uint64_t bytes_per_token = 4, words_per_token = 1;
  bool marked = false;  ///< those tokens are to be learned whose number in the document says so

  static bool is_marked(std::uint64_t i) { return i % 5 < 2; }
  static std::vector<shard::Span> marks(std::uint64_t length) {
    std::vector<shard::Span> marks;
    for (std::uint64_t i = 0; i < length; ++i)
      if (is_marked(i)) marks.push_back({i, i + 1});
    return marks;
  }

  std::vector<std::uint32_t> tokens() const {
    std::vector<std::uint32_t> all;
    for (const auto& document : documents) all.insert(all.end(), document.begin(), document.end());
    return all;
  }

  /// Returns the token at which the text that a token belongs to begins: the document, or all.
  std::uint64_t begin_of(std::uint64_t at, bool by_document) const {
    std::uint64_t begin = 0;
    for (const auto& document : documents) {
      if (!by_document || at < begin + document.size()) break;
      begin += document.size();
    }
    return begin;
  }
};

/// Tokens that repeat, so that memories have an effect.
inline Text text_of(
    std::vector<std::size_t> lengths, std::uint64_t vocabulary = 23, std::uint64_t seed = 3) {
  core::Rng rng(seed);
  Text text;
  text.vocabulary = vocabulary;
  for (const std::size_t length : lengths) {
    auto& document = text.documents.emplace_back();
    for (std::size_t i = 0; i < length; ++i) {
      const bool repeat = i > 6 && rng.uniform() < 0.5;
      document.push_back(
          repeat ? document[i - 5] : static_cast<std::uint32_t>(rng.below(vocabulary)));
    }
  }
  return text;
}

/// A text as a shard in a temporary file.
class Shard {
 public:
  explicit Shard(const Text& text, const std::string& tokenizer = {}) {
    const int fd = ::mkstemp(path_.data());
    ::close(fd);
    core::Output out(path_);
    shard::Header header;
    header.dtype = shard::dtype_for(text.vocabulary);
    header.vocabulary = text.vocabulary;
    header.tokenizer = tokenizer;
    header.marked = text.marked;
    shard::Writer writer(out, header);
    for (const auto& document : text.documents) {
      writer.write(std::span(document));
      writer.end_document(document.size() * text.bytes_per_token,
          document.size() * text.words_per_token, {},
          text.marked ? Text::marks(document.size()) : std::vector<shard::Span>());
    }
    writer.finish();
    out.commit();
    data_ = std::make_unique<shard::Dataset>(std::vector<std::string>{path_});
  }
  ~Shard() { ::unlink(path_.c_str()); }
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;
  const shard::Dataset& data() const { return *data_; }

 private:
  std::string path_ = "/tmp/tessera-infer.XXXXXX";
  std::unique_ptr<shard::Dataset> data_;
};

/// Weights larger than at the start of a training, so that predictions differ.
inline nn::Model model_of(const std::string& arch, const std::string& positions = "learned",
    std::int64_t vocabulary = 23, torch::Dtype dtype = torch::kFloat32) {
  at::set_num_threads(1);  // these tensors are too small for threads
  torch::manual_seed(7);
  nn::ModelOptions options;
  options.arch = arch;
  options.shape.layers = 2, options.shape.d_model = 16, options.shape.heads = 2;
  options.shape.init = "gpt2", options.vocabulary.scale_embedding = false;
  options.transformer.positions = positions;
  options.transformer.context = 96;
  nn::Model model(options, vocabulary);
  model.to(dtype);
  const torch::NoGradGuard no_gradient;
  for (auto& [name, weight] : model.named_weights()) weight.mul_(3);
  model.eval();
  return model;
}

/// The same with the architecture's own first values, near which differences give slopes. What
/// begins at 0 has an effect too.
inline nn::Model smooth_model_of(const std::string& arch, const std::string& positions,
    std::int64_t vocabulary, torch::Dtype dtype) {
  auto model = model_of(arch, positions, vocabulary, dtype);
  const torch::NoGradGuard no_gradient;
  for (const auto& part : model.modules(/*include_self=*/false))
    if (auto* const own = dynamic_cast<nn::OwnFirstValues*>(part.get())) own->first_values();
  for (auto& [name, weight] : model.named_weights()) weight.add_(torch::randn_like(weight), 0.03);
  return model;
}

/// Returns log p of every scored token in order, float64.
inline torch::Tensor log_probs(nn::Model& model, const shard::Dataset& data,
    const infer::WindowPlan& windows, const infer::MemoryPlan& memory) {
  std::vector<torch::Tensor> blocks;
  infer::Callbacks watch;
  watch.scored = [&](const infer::Scored& scored) { blocks.push_back(scored.log_prob); };
  infer::score(model, data, windows, memory, torch::kCPU, watch);
  return torch::cat(blocks);
}

inline torch::Tensor log_probs(nn::Model& model, const shard::Dataset& data,
    const infer::WindowPlan& windows, const infer::MemoryOptions& memory) {
  return log_probs(model, data, windows, infer::plan_memory(memory, windows, model));
}

inline infer::WindowPlan windows_of(
    std::int64_t window, std::int64_t stride, bool carried = false) {
  infer::WindowPlan windows;
  windows.window = window, windows.stride = stride, windows.carried = carried;
  return windows;
}

inline infer::MemoryOptions memory_of(const std::string& names, std::int64_t reach = 0) {
  infer::MemoryOptions memory;
  tiny::context(memory).memory = names;
  memory.weights = "constant";
  if (reach > 0) tiny::context(memory).long_reach = std::to_string(reach);
  return memory;
}

inline double largest_difference(const torch::Tensor& a, const torch::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

/// The tokens of a text whose tokens are its bytes.
inline std::vector<std::int64_t> bytes_of(const std::string& text) {
  std::vector<std::int64_t> tokens;
  for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
  return tokens;
}

inline double value(const torch::Tensor& of, std::int64_t i) { return of[i].item<double>(); }

}  // namespace tiny
