#pragma once
// Bytes to an open descriptor, all of them.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace core {

/// However the system cuts them, and whatever signal comes between. Throws Error{io} naming `name`.
void write_all(int fd, const std::string& name, std::span<const std::byte> bytes);
inline void write_all(int fd, const std::string& name, std::string_view text) {
  write_all(fd, name, std::as_bytes(std::span(text.data(), text.size())));
}

}  // namespace core
