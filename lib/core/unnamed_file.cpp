#include "core/unnamed_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "core/error.h"
#include "core/os_error.h"
#include "core/write_all.h"

namespace core {
namespace {

class Renamed : public RandomSource {
 public:
  Renamed(const std::string& path, std::string name) : file_(path), name_(std::move(name)) {}
  std::uint64_t size() const override { return file_.size(); }
  void read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    file_.read_at(offset, out);
  }
  const std::string& name() const override { return name_; }

 private:
  RandomFile file_;
  std::string name_;
};

}  // namespace

UnnamedFile::UnnamedFile(std::string name) : name_(std::move(name)) {
  const char* folder = std::getenv("TMPDIR");
  if (folder == nullptr || *folder == '\0') folder = "/tmp";
  std::string path = std::string(folder) + "/tessera.XXXXXX";
  fd_ = ::mkostemp(path.data(), O_CLOEXEC);
  if (fd_ < 0) fail_errno(Code::cannot_create, path + ": cannot create", errno);
  ::unlink(path.c_str());
}

UnnamedFile::~UnnamedFile() { ::close(fd_); }

void UnnamedFile::write(std::span<const std::byte> in) {
  write_all(fd_, "a temporary file of " + name_, in);
}

void UnnamedFile::write_all_of(ByteSource& source) {
  Bytes buffer(std::size_t{1} << 18);
  while (const std::size_t n = source.read(buffer))
    write(std::span<const std::byte>(buffer).first(n));
}

std::string UnnamedFile::path() const { return "/proc/self/fd/" + std::to_string(fd_); }

std::shared_ptr<const RandomSource> UnnamedFile::contents() const {
  return std::make_shared<Renamed>(path(), name_);
}

}  // namespace core
