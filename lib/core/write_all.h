#pragma once
// Writes all bytes to an open descriptor.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace core {

/// Writes all bytes despite partial writes and interrupting signals. Throws Error{io}, naming
/// `name`.
void write_all(int fd, const std::string& name, std::span<const std::byte> bytes);
inline void write_all(int fd, const std::string& name, std::string_view text) {
  write_all(fd, name, std::as_bytes(std::span(text.data(), text.size())));
}

}  // namespace core
