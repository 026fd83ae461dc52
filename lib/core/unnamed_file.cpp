#include "core/unnamed_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace core {

UnnamedFile::UnnamedFile(std::string name) : name_(std::move(name)) {
  const char* folder = std::getenv("TMPDIR");
  if (folder == nullptr || *folder == '\0') folder = "/tmp";
  gone_ = std::string(folder) + "/tessera.XXXXXX";
  fd_ = Descriptor(::mkostemp(gone_.data(), O_CLOEXEC));
  if (!fd_)
    fail_errno(Code::cannot_create, gone_ + ": cannot create; set TMPDIR to another folder", errno);
  ::unlink(gone_.c_str());
}

void UnnamedFile::write(std::span<const std::byte> in) {
  try {
    write_all(fd_.fd(), gone_, in);
  } catch (const Error& error) {
    fail(error.code(), "{}; set TMPDIR to a folder with more space", error.what());
  }
}

void UnnamedFile::write_all_of(ByteSource& source) {
  Bytes buffer(std::size_t{1} << 18);
  while (const std::size_t n = source.read(buffer))
    write(std::span<const std::byte>(buffer).first(n));
}

std::shared_ptr<const RandomSource> UnnamedFile::contents() const {
  return std::make_shared<RandomFile>(path(), name_);
}

}  // namespace core
