#pragma once
// Maps a file into memory. Pages are read on demand, so the file may be larger than RAM.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace core {

/// A MappedFile is a read-only mapping. It does not see bytes that another process appends later.
/// Thread safe.
class MappedFile {
 public:
  MappedFile() = default;
  /// Maps the file. Throws Error{no_input} if it cannot be opened, Error{io} if it cannot be
  /// mapped.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& name() const { return name_; }
  /// Tells the system that it may drop these pages and those around them, because they are not
  /// needed soon.
  void release(std::size_t offset, std::size_t size) const;

 private:
  std::string name_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace core
