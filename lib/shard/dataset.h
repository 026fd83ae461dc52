#pragma once
// Several shards as one.

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "shard/file.h"
#include "shard/header.h"

namespace shard {

/// Fingerprints, hex.
using Fingerprints = std::set<std::string>;

/// The shards in the order given, or, where they are all parts of one command (parts.h), in that of
/// the parts; as if merged (`shard merge`). Thread safe.
class Dataset {
 public:
  /// Paths of shards with equal headers; "-" or no path is stdin. What is no regular file (stdin, a
  /// pipe) is spooled to a temporary file in $TMPDIR that has no name. Throws Error{bad_data}
  /// naming both where two do not belong together, Error{usage} for a second "-".
  explicit Dataset(const std::vector<std::string>& paths);

  const Header& header() const { return files_.front().header(); }
  /// Elements in all.
  std::uint64_t size() const { return start_.back(); }
  const Documents& documents() const { return documents_; }
  /// That of the shard that `shard merge` would make of them.
  core::Digest fingerprint() const { return fingerprint_; }
  /// That, and those of the shards: by each of them others may know what they have of it.
  Fingerprints fingerprints() const;
  /// The entries of all shards, each once.
  const std::vector<core::OrderedJson>& provenance() const { return provenance_; }
  /// The first shard's path, and how many more there are: for messages.
  std::string name() const;

  /// As File's.
  void read(std::uint64_t offset, std::span<std::uint32_t> out) const;
  void read(std::uint64_t offset, std::span<std::uint64_t> out) const;
  void read(std::uint64_t offset, std::span<float> out) const;
  void read(std::uint64_t offset, std::span<std::byte> out) const;

  /// They are all parts of one command, of which provenance() says what it did without parts.
  bool is_of_parts() const { return of_parts_; }
  /// Their trailers are without documents, which are all in documents().
  const std::vector<File>& files() const { return files_; }

 private:
  template <class T>
  void read_across(std::uint64_t offset, std::span<T> out) const;

  std::vector<File> files_;
  bool of_parts_ = false;
  std::vector<std::uint64_t> start_;  // of each file; size() last
  Documents documents_;
  core::Digest fingerprint_;
  std::vector<core::OrderedJson> provenance_;
};

/// Throws Error{bad_data} naming both shards, what differs, and both fingerprints, unless they can
/// be one data set.
void expect_same_header(const File& a, const File& b);

}  // namespace shard
