#pragma once
// A temporary file that no folder lists.

#include <memory>
#include <string>

#include "core/io.h"

namespace core {

/// A file in $TMPDIR (else /tmp) without a name, so that it vanishes with the program. Not thread
/// safe.
class UnnamedFile : public ByteSink {
 public:
  /// `name` stands in messages. Throws Error{cannot_create}.
  explicit UnnamedFile(std::string name);
  ~UnnamedFile() override;
  UnnamedFile(const UnnamedFile&) = delete;
  UnnamedFile& operator=(const UnnamedFile&) = delete;

  using ByteSink::write;
  void write(std::span<const std::byte> in) override;
  /// Appends all of `source`. Throws Error{io}.
  void write_all_of(ByteSource& source);

  /// Opens the file as long as this object lives: /proc/self/fd/N.
  std::string path() const;
  /// What was written so far, under the name for messages; it outlives this object.
  std::shared_ptr<const RandomSource> contents() const;

 private:
  std::string name_, gone_;  // what it was created as
  int fd_;
};

}  // namespace core
