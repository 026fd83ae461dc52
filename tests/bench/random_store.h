#pragma once
// A model, a text of random tokens and a store of random keys, for benchmarks of evaluation: 8
// layers, d 512, 32,768 tokens.

#include <string>
#include <vector>

#include "core/io.h"
#include "core/rng.h"
#include "nn/arch/model.h"
#include "shard/writer.h"
#include "store/builder.h"

namespace random_store {

inline constexpr std::int64_t kWords = 32'768, kWidth = 512, kTokens = 8'193;

inline nn::Model make_model() {
  nn::ModelOptions options;
  options.arch = "transformer";
  options.shape.layers = 8, options.shape.d_model = kWidth, options.shape.heads = 8;
  options.transformer.positions = "sinusoidal";
  nn::Model model(options, kWords);
  model.eval();
  return model;
}

inline void write_text(const std::string& path, std::uint64_t seed = 1) {
  core::Rng rng(seed);
  core::Output out(path);
  shard::Header header;
  header.dtype = shard::dtype_for(kWords), header.vocabulary = kWords;
  shard::Writer writer(out, header);
  std::vector<std::uint32_t> tokens(kTokens);
  for (auto& token : tokens) token = static_cast<std::uint32_t>(rng.below(kWords));
  writer.write(std::span<const std::uint32_t>(tokens));
  writer.end_document(kTokens, kTokens);
  writer.finish();
  out.commit();
}

/// Resumes an interrupted write. The index is named, since random keys have no lists of near keys:
/// by default their store would be exact.
inline void write_store(const std::string& folder, std::uint64_t rows) {
  store::Plan plan;
  plan.width = kWidth, plan.vocabulary = kWords, plan.data = "random";
  plan.windows["window"] = 512;
  std::uint64_t lists = 512;
  while (lists * lists <= rows) lists *= 2;
  plan.index = "IVF" + std::to_string(lists) + ",PQ128x4fs";
  store::Builder builder(folder, plan, false);
  if (builder.complete()) return;
  constexpr std::int64_t kBlock = 1 << 14;
  for (std::uint64_t row = builder.rows(); row < rows;) {
    const auto n = std::min<std::int64_t>(kBlock, static_cast<std::int64_t>(rows - row));
    const torch::Tensor keys = torch::randn({n, kWidth});
    const torch::Tensor labels = torch::randint(kWords, {n}, torch::kInt32);
    builder.add({keys.const_data_ptr<float>(), static_cast<std::size_t>(keys.numel())},
        {labels.const_data_ptr<std::int32_t>(), static_cast<std::size_t>(n)});
    row += static_cast<std::uint64_t>(n);
  }
  builder.commit(rows);
  const std::vector<std::int64_t> documents = {0};
  builder.finish(documents);
}

}  // namespace random_store
