#pragma once
// Texts of words as bytes, an index of passages of one of them, and the prepended passages by a
// plain loop.

#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "core/io.h"
#include "infer/windows/retriever.h"
#include "passages/passage_index.h"
#include "text/formats/tokenizer_json.h"
#include "tiny.h"

namespace retrieved {

inline tiny::Text words_of(const std::vector<int>& lengths, std::uint64_t seed) {
  core::Rng rng(seed);
  tiny::Text text;
  text.vocabulary = 256;
  for (const int n : lengths) {
    auto& document = text.documents.emplace_back();
    for (int i = 0; i < n; ++i) {
      const double share = rng.uniform();
      const std::string word = "w" + std::to_string(static_cast<int>(40 * share * share)) + " ";
      document.insert(document.end(), word.begin(), word.end());
    }
  }
  return text;
}

/// A temporary file with the index of a text.
struct Index {
  explicit Index(const tiny::Text& text, std::int64_t passage) {
    const int fd = ::mkstemp(path.data());
    ::close(fd);
    const std::string shard = path + ".shard.zst";
    {
      core::Output out(shard);
      ::shard::Header header;
      header.dtype = ::shard::dtype_for(text.vocabulary);
      header.vocabulary = text.vocabulary;
      header.tokenizer = text::load_tokenizer("bytes")->json();
      ::shard::Writer writer(out, header);
      for (const auto& document : text.documents) {
        writer.write(std::span(document));
        writer.end_document(document.size(), 1);
      }
      writer.finish();
      out.commit();
    }
    passages::PassageOptions options;
    options.passage = passage;
    core::Output out(path);
    passages::write_passages(
        {shard}, options, 1, [](std::uint64_t) {}, out);
    out.commit();
    ::unlink(shard.c_str());
    opened = std::make_shared<const passages::PassageIndex>(path);
  }
  ~Index() { ::unlink(path.c_str()); }
  Index(const Index&) = delete;
  Index& operator=(const Index&) = delete;
  std::string path = "/tmp/tessera-passages.XXXXXX";
  std::shared_ptr<const passages::PassageIndex> opened;
};

/// Returns the best passages for the end of `so_far`, by themselves.
inline infer::Prefixes plain_prefixes(
    const infer::RetrievePlan& plan, const std::vector<std::uint32_t>& so_far) {
  const auto most = static_cast<std::size_t>(plan.query);
  const std::vector<std::uint32_t> end(
      so_far.end() - static_cast<std::ptrdiff_t>(std::min(most, so_far.size())), so_far.end());
  passages::PassageQueries queries(*plan.index);
  const auto terms = queries.terms_of(std::string(end.begin(), end.end()));
  const passages::Bm25Query asked[] = {{terms}};
  const auto hits = plan.index->search(asked, static_cast<std::uint32_t>(plan.mix));
  infer::Prefixes prefixes;
  double sum = 0;
  for (const auto& hit : hits.of(0)) sum += std::exp(hit.score / plan.temperature);
  for (const auto& hit : hits.of(0)) {
    auto tokens = plan.index->passage(hit.unit);
    tokens.resize(std::min(tokens.size(), static_cast<std::size_t>(plan.tokens)));
    prefixes.push_back({{tokens.begin(), tokens.end()}, hit.unit, hit.score,
        std::exp(hit.score / plan.temperature) / sum});
  }
  return prefixes;
}

/// Runs a row through the model by itself: f (T, d).
inline torch::Tensor encode(nn::Model& model, const std::vector<std::int64_t>& row) {
  nn::Batch batch;
  batch.inputs = torch::tensor(row).unsqueeze(0);
  batch.targets = torch::zeros_like(batch.inputs);
  batch.weight = torch::ones({1, batch.inputs.size(1)});
  batch.place = {torch::zeros_like(batch.inputs), torch::zeros_like(batch.inputs),
      torch::arange(batch.inputs.size(1)).unsqueeze(0)};
  batch.fresh = torch::ones({1}, torch::kBool);
  return model.architecture->forward(batch, nullptr).output[0];
}

}  // namespace retrieved
