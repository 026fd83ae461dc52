#pragma once
// Reads several shards as one data set.

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "shard/file.h"
#include "shard/header.h"

namespace shard {

/// Fingerprints is a set of fingerprints in hexadecimal.
using Fingerprints = std::set<std::string>;

/// A Dataset is the concatenation of its shards in the given order, as `shard merge` would write
/// it. If the shards are all parts of one command (parts.h), the order is that of the parts. Thread
/// safe.
class Dataset {
 public:
  /// Opens shards with equal headers; "-" or no path is stdin. An input that is not a regular file
  /// (stdin, a pipe) is spooled to an unnamed temporary file in $TMPDIR. Throws Error{bad_data},
  /// naming both shards, if two do not belong together, and Error{usage} for a second "-".
  explicit Dataset(const std::vector<std::string>& paths);

  const Header& header() const { return files_.front().header(); }
  /// Returns the total number of elements.
  std::uint64_t size() const { return start_.back(); }
  const Documents& documents() const { return documents_; }
  /// Returns the fingerprint of the shard that `shard merge` would write.
  core::Digest fingerprint() const { return fingerprint_; }
  /// Returns the fingerprint of the data set and those of its shards. An artefact made from any of
  /// these records one of them.
  Fingerprints fingerprints() const;
  /// Returns the provenance entries of all shards without duplicates.
  const std::vector<core::OrderedJson>& provenance() const { return provenance_; }
  /// Returns, for messages, the first shard's path and the number of further shards.
  std::string name() const;

  /// Reads elements as File::read() does.
  void read(std::uint64_t offset, std::span<std::uint32_t> out) const;
  void read(std::uint64_t offset, std::span<std::uint64_t> out) const;
  void read(std::uint64_t offset, std::span<float> out) const;
  void read(std::uint64_t offset, std::span<std::byte> out) const;

  /// Returns true if the shards are all parts of one command; provenance() then describes the
  /// command without parts.
  bool is_of_parts() const { return of_parts_; }
  /// Returns the shards. Their trailers have no documents, because documents() holds all of them.
  const std::vector<File>& files() const { return files_; }

 private:
  template <class T>
  void read_across(std::uint64_t offset, std::span<T> out) const;

  std::vector<File> files_;
  bool of_parts_ = false;
  std::vector<std::uint64_t> start_;  // offset of each file's first element; size() last
  Documents documents_;
  core::Digest fingerprint_;
  std::vector<core::OrderedJson> provenance_;
};

/// Throws Error{bad_data} unless the two shards can form one data set; the message names both
/// shards, the difference and both fingerprints.
void expect_same_header(const File& a, const File& b);

}  // namespace shard
