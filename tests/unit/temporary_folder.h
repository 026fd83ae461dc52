#pragma once
// A folder for what a test writes.

#include <stdlib.h>

#include <filesystem>
#include <stdexcept>
#include <string>

/// Empty, and no other's; goes with the object, with all that is in it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = std::filesystem::temp_directory_path() / "tessera-test.XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error(name + ": cannot be made");
    path = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string operator/(const std::string& name) const { return path / name; }

  std::filesystem::path path;
};
