#pragma once
// A temporary file without a name in any folder.

#include <memory>
#include <string>

#include "core/io.h"

namespace core {

/// An UnnamedFile is a file without a name in $TMPDIR (else /tmp), so that it disappears with the
/// process. Not thread safe.
class UnnamedFile : public ByteSink {
 public:
  /// Creates the file. `name` is its name in messages. Throws Error{cannot_create}.
  explicit UnnamedFile(std::string name);
  ~UnnamedFile() override;
  UnnamedFile(const UnnamedFile&) = delete;
  UnnamedFile& operator=(const UnnamedFile&) = delete;

  using ByteSink::write;
  void write(std::span<const std::byte> in) override;
  /// Appends all of `source`. Throws Error{io}.
  void write_all_of(ByteSource& source);

  /// Returns a path, /proc/self/fd/N, that opens the file as long as this object lives.
  std::string path() const;
  /// Returns the bytes written so far, with the name for messages; the result outlives this object.
  std::shared_ptr<const RandomSource> contents() const;

 private:
  std::string name_, gone_;  // the name under which it was created
  int fd_;
};

}  // namespace core
