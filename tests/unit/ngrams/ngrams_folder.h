#pragma once
// Makes texts of few token types, as shards and indices in a temporary folder.

#include <memory>
#include <string>
#include <vector>

#include "core/io.h"
#include "core/rng.h"
#include "ngrams/ngrams_builder.h"
#include "shard/dataset.h"
#include "shard/writer.h"
#include "unit/temporary_folder.h"

namespace ngrams_test {

using Documents = std::vector<std::vector<std::uint32_t>>;

/// Returns documents that repeat themselves and each other, so that long n-grams occur.
inline Documents documents_of(
    const std::vector<std::size_t>& lengths, std::uint64_t vocabulary, std::uint64_t seed = 1) {
  core::Rng rng(seed);
  Documents documents;
  std::vector<std::uint32_t> all;
  for (const std::size_t length : lengths) {
    auto& document = documents.emplace_back();
    while (document.size() < length) {
      if (all.size() > 8 && rng.uniform() < 0.2) {  // a piece of the text so far
        const std::uint64_t from = rng.below(all.size()), n = 1 + rng.below(40);
        for (std::uint64_t i = from; i < std::min<std::uint64_t>(from + n, all.size()); ++i)
          document.push_back(all[i]);
      } else {
        document.push_back(static_cast<std::uint32_t>(rng.below(vocabulary)));
      }
    }
    document.resize(length);
    all.insert(all.end(), document.begin(), document.end());
  }
  return documents;
}

struct Folder : TemporaryFolder {
  /// Writes the documents as a shard in the folder.
  shard::Dataset shard(const std::string& name, const Documents& documents,
      std::uint64_t vocabulary, const std::string& tokenizer = {}) const {
    const std::string file = path / (name + ".shard.zst");
    core::Output out(file);
    shard::Header header;
    header.dtype = shard::dtype_for(vocabulary);
    header.vocabulary = vocabulary;
    header.tokenizer = tokenizer;
    shard::Writer writer(out, header);
    for (const auto& document : documents) {
      writer.write(std::span(document));
      writer.end_document(document.size(), 1);
    }
    writer.finish();
    out.commit();
    return shard::Dataset({file});
  }
  /// Builds an index of the documents and returns its folder.
  std::string index(const std::string& name, const Documents& documents, std::uint64_t vocabulary,
      const ngrams::Cut& cut = {1 << 20, 64}, std::int64_t jobs = 1) const {
    const std::string folder = path / name;
    ngrams::build(shard(name, documents, vocabulary), folder, cut, jobs);
    return folder;
  }
};

}  // namespace ngrams_test
