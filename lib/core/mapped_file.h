#pragma once
// A file in memory, page by page as it is read: larger than RAM is fine.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace core {

/// Read only. What another process appends later is not seen. Thread safe.
class MappedFile {
 public:
  MappedFile() = default;
  /// Throws Error{no_input} if it cannot be opened, Error{io} if it cannot be mapped.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& name() const { return name_; }
  /// The system need not keep these pages: they were read and are not needed soon.
  void release(std::size_t offset, std::size_t size) const;

 private:
  std::string name_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace core
