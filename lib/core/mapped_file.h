#pragma once
// Maps a file into memory. Pages are read on demand, so the file may be larger than RAM.
// An array for large tables that are read at random. It asks the system for huge pages, because
// address translation is half of the cost of such a read.

#include <sys/mman.h>

#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <type_traits>

namespace core {

/// Mapped is mapped memory, which is unmapped with it.
struct Unmap {
  std::size_t bytes;
  void operator()(void* memory) const { ::munmap(memory, bytes); }
};
using Mapped = std::unique_ptr<void, Unmap>;

/// A MappedFile is a read-only mapping. It does not see bytes that another process appends later.
/// Thread safe.
class MappedFile {
 public:
  MappedFile() = default;
  /// Maps the file. Throws Error{no_input} if it cannot be opened, Error{io} if it cannot be
  /// mapped.
  explicit MappedFile(const std::string& path);

  std::span<const std::byte> bytes() const {
    return {static_cast<const std::byte*>(mapped_.get()), size_};
  }
  const std::string& name() const { return name_; }
  /// Tells the system that it may drop these pages and those around them, because they are not
  /// needed soon.
  void release(std::size_t offset, std::size_t size) const;

 private:
  std::string name_;
  Mapped mapped_{nullptr, Unmap{0}};
  std::size_t size_ = 0;
};

/// A HugeArray holds `n` objects of type T, whose bytes are initially zero. Throws std::bad_alloc
/// if the memory cannot be mapped.
template <class T> class HugeArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  HugeArray() = default;
  explicit HugeArray(std::size_t n) : size_(n) {
    constexpr std::size_t kPage = std::size_t{2} << 20;
    const std::size_t bytes = (n * sizeof(T) + kPage - 1) / kPage * kPage;
    void* memory =
        ::mmap(nullptr, bytes + kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    mapped_ = Mapped(memory, Unmap{bytes + kPage});
    const auto address = reinterpret_cast<std::uintptr_t>(memory);
    data_ = reinterpret_cast<T*>((address + kPage - 1) / kPage * kPage);
#ifdef MADV_HUGEPAGE
    ::madvise(data_, bytes, MADV_HUGEPAGE);
#endif
  }
  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }

 private:
  Mapped mapped_{nullptr, Unmap{0}};
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace core
