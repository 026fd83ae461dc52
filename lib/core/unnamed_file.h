#pragma once
// A temporary file without a name in any folder.
// An array that grows in memory up to a bound and on disk beyond it.

#include "core/io.h"
#include "core/mapped_file.h"
#include "core/temporary_file.h"

namespace core {

/// An UnnamedFile is a file without a name in $TMPDIR (else /tmp), so that it disappears with the
/// process. Not thread safe.
class UnnamedFile : public ByteSink {
 public:
  /// Creates the file. `name` is its name in messages. Throws Error{cannot_create}.
  explicit UnnamedFile(std::string name);

  using ByteSink::write;
  void write(std::span<const std::byte> in) override;
  /// Appends all of `source`. Throws Error{io}.
  void write_all_of(ByteSource& source);

  /// Returns a path, /proc/self/fd/N, that opens the file as long as this object lives.
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_.fd()); }
  /// Returns the bytes written so far, with the name for messages; the result outlives this object.
  std::shared_ptr<const RandomSource> contents() const;

 private:
  std::string name_, gone_;  // the name under which it was created
  Descriptor fd_;
};

/// A SpillArray is filled by append() and read after finish(). If it exceeds `memory` bytes, it
/// moves to an UnnamedFile, whose pages the system may drop. Not thread safe while it grows.
template <class T> class SpillArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  explicit SpillArray(std::uint64_t memory) : memory_(memory) {}
  void append(std::span<const T> items) {
    size_ += items.size();
    items_.insert(items_.end(), items.begin(), items.end());
    const bool spills = size_ * sizeof(T) > memory_;
    if (spills && !file_) file_ = std::make_unique<UnnamedFile>("temporary file");
    if (file_ && items_.size() * sizeof(T) > kBuffer) flush();
  }
  /// Ends the filling; append() must not follow.
  void finish() {
    if (!file_) {
      data_ = items_.data();
      return;
    }
    flush();
    items_ = {};
    mapped_ = MappedFile(file_->path());
    data_ = reinterpret_cast<const T*>(mapped_.bytes().data());
  }
  bool spilled() const { return file_ != nullptr; }
  std::uint64_t size() const { return size_; }
  /// Returns the items [begin, end); finish() must precede.
  std::span<const T> slice(std::uint64_t begin, std::uint64_t end) const {
    return {data_ + begin, static_cast<std::size_t>(end - begin)};
  }

 private:
  static constexpr std::size_t kBuffer = std::size_t{1} << 20;
  void flush() {
    file_->write(std::as_bytes(std::span<const T>(items_)));
    items_.clear();
    items_.shrink_to_fit();
  }
  std::uint64_t memory_, size_ = 0;
  std::vector<T> items_;
  std::unique_ptr<UnnamedFile> file_;
  MappedFile mapped_;
  const T* data_ = nullptr;
};

}  // namespace core
