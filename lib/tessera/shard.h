#pragma once
// Reads and writes shards: files of token ids (man 5 shard).

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tessera/tokenizer.h"

namespace shard {
class Dataset;
}

namespace tessera {

/// A Shard is one or several shards of tokens, read as one text. Copies share the open files.
/// Thread safe.
class Shard {
 public:
  /// Opens shards with equal tokenizers. Throws Error{66} for a file that is absent, Error{65} for
  /// one that is no shard of tokens, is damaged, or does not belong to the others.
  explicit Shard(const std::vector<std::string>& paths);

  /// Returns the number of tokens.
  std::uint64_t size() const;
  /// Returns the exclusive upper bound of the ids.
  std::uint64_t vocabulary() const;
  /// Returns the offset at which each document ends, ascending.
  std::vector<std::uint64_t> document_ends() const;
  /// Reads tokens.size() tokens from offset `first` on. Throws Error{65} for damaged data.
  void read(std::uint64_t first, std::span<std::uint32_t> tokens) const;
  /// Returns the tokenizer of the shard. Throws Error{65} if it has none.
  Tokenizer tokenizer() const;
  /// Returns the digest of header, tokens and documents, in hexadecimal: equal shards have equal
  /// ones, and what was made from a shard records it.
  std::string fingerprint() const;

 private:
  std::shared_ptr<const shard::Dataset> data_;
};

/// Writes a shard of texts, a document each, which ends with the tokenizer's end_of_document() if
/// there is one. The file appears under its name when it is complete. Throws Error{73} or Error{74}
/// if it cannot be written.
void write_shard(
    const std::string& path, const Tokenizer& tokenizer, const std::vector<std::string>& texts);

}  // namespace tessera
