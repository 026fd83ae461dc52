#pragma once
// A temporary folder of a test, and bytes as a source to read.

#include <doctest/doctest.h>
#include <stdlib.h>

#include <fstream>
#include <memory>
#include <string>

#include "core/error.h"
#include "core/io.h"
#include "unit/temporary_folder.h"

/// Writes without the fsync of core::write_file.
inline void overwrite(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

/// Bytes that the source owns.
class OwnedMemory : public core::RandomSource {
 public:
  explicit OwnedMemory(core::Bytes bytes) : bytes_(std::move(bytes)), memory_(bytes_, "memory") {}
  std::uint64_t size() const override { return memory_.size(); }
  void read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    memory_.read_at(offset, out);
  }
  const std::string& name() const override { return memory_.name(); }

 private:
  core::Bytes bytes_;
  core::RandomMemory memory_;
};

/// Checks the code of the Error that `body` throws, and that its text contains `part`.
template <class Body>
void expect_error(core::Code code, const std::string& part, const Body& body) {
  try {
    body();
    DOCTEST_FAIL_CHECK("no error; expected one with: " << part);
  } catch (const core::Error& error) {
    const std::string text = error.what();
    DOCTEST_CHECK_MESSAGE(static_cast<int>(error.code()) == static_cast<int>(code), text);
    DOCTEST_CHECK_MESSAGE(text.find(part) != std::string::npos, text);
    DOCTEST_CHECK_MESSAGE(text.find('\n') == std::string::npos, text);
  }
}
