#pragma once
// Reads several shards as one data set.
// Reads and writes names.txt, which lists the names of the documents of a datastore or an n-gram
// index, one per line.
// Handles shards that are parts of one command's work. The last provenance entry of a part has the
// option "part": "2/8"; without this option, the entries of all parts are equal.

#include "core/launcher.h"
#include "shard/file.h"

namespace shard {

/// Fingerprints is a set of fingerprints in hexadecimal.
using Fingerprints = std::set<std::string>;

/// A Dataset is the concatenation of its shards in the given order, as `shard merge` would write
/// it. If the shards are all parts of one command (put_part()), the order is that of the
/// parts. Thread safe.
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
  template <class T> void read_across(std::uint64_t offset, std::span<T> out) const;

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

/// Writes the names through core::Output and returns the XXH3-128 of the file's bytes in
/// hexadecimal. Throws Error{bad_data} for a name that contains a newline.
std::string write_names(const std::string& path, const std::vector<std::string>& names);

/// Reads `count` names. Throws Error{bad_data} unless the file has this hash and `count` lines of
/// UTF-8.
std::vector<std::string> read_names(
    const std::string& path, std::uint64_t count, const std::string& hash);

/// Adds the part to an entry's options.
void put_part(core::OrderedJson& options, const core::Part& part);
/// Removes the part from the last entry, which then describes the whole, and returns it. Returns
/// nothing if the entry has no part.
std::optional<core::Part> take_part(std::vector<core::OrderedJson>& provenance);

/// Throws Error{usage} if some of `files` are parts but `files` is not exactly all parts of one
/// command; the message names a part that is missing, duplicate or of another command.
void refuse_incomplete(const std::vector<File>& files);

}  // namespace shard
