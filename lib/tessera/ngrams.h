#pragma once
// Builds and queries indices of n-grams of every length (man 5 ngrams).

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tessera/options.h"

namespace ngrams {
class Index;
}

namespace tessera {

/// Builds an index of texts or shards in `folder`. `tokenizer` (a path as of Tokenizer) encodes
/// texts; shards need none. An interrupted build resumes when it is called again. `options`: those
/// of build-ngrams(1). Throws Error{64} if the folder has an index of another text, and Error{65}
/// for shards of another kind.
void build_ngrams(const std::vector<std::string>& files, const std::string& folder,
    const std::string& tokenizer = {}, const Options& options = {});

/// An Ngrams is one or several open indices, which count as one text. Copies share them. Thread
/// safe.
class Ngrams {
 public:
  /// Opens folders with equal tokenizers. Throws Error{66} for one that is no index or is
  /// incomplete, Error{65} for damage, and Error{64} for two of one text.
  explicit Ngrams(const std::vector<std::string>& folders);

  std::uint64_t tokens() const;      ///< size of the text
  std::uint64_t vocabulary() const;  ///< exclusive upper bound of the ids

  /// Returns how often the text has these tokens in a row, within documents.
  std::uint64_t count(std::span<const std::uint32_t> tokens) const;
  /// A token that follows, and how often.
  struct Next {
    std::uint32_t token = 0;
    std::uint64_t count = 0;
  };
  /// Returns the tokens that follow `context` in the text, ascending by id.
  std::vector<Next> next(std::span<const std::uint32_t> context) const;

 private:
  std::shared_ptr<const ngrams::Index> index_;
};

}  // namespace tessera
