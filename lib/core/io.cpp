#include "core/io.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "core/error.h"

namespace core {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 18;

class FileSource : public ByteSource {
 public:
  FileSource(int fd, std::string name, bool owned)
      : fd_(fd), name_(std::move(name)), owned_(owned) {}
  ~FileSource() override {
    if (owned_) ::close(fd_);
  }
  std::size_t read(std::span<std::byte> out) override {
    for (;;) {
      const ssize_t n = ::read(fd_, out.data(), out.size());
      if (n >= 0) return static_cast<std::size_t>(n);
      if (errno != EINTR) fail(Code::io, "{}: cannot read: {}", name_, error_text(errno));
    }
  }
  const std::string& name() const override { return name_; }

 private:
  int fd_;
  std::string name_;
  bool owned_;
};

int open_to_read(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail(Code::no_input, "{}: cannot open: {}", path, error_text(errno));
  struct stat info;
  if (::fstat(fd, &info) == 0 && S_ISDIR(info.st_mode)) {
    ::close(fd);
    fail(Code::no_input, "{}: is a folder; give a file", path);
  }
  return fd;
}

void write_all(int fd, const std::string& name, std::span<const std::byte> in) {
  while (!in.empty()) {
    const ssize_t n = ::write(fd, in.data(), in.size());
    if (n < 0) {
      if (errno == EINTR) continue;
      fail(Code::io, "{}: cannot write: {}", name, error_text(errno));
    }
    in = in.subspan(static_cast<std::size_t>(n));
  }
}

std::string parent_of(const std::string& path) {
  const auto parent = std::filesystem::path(path).parent_path();
  return parent.empty() ? "." : parent.string();
}

void rename_file(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0)
    fail(Code::cannot_create, "{}: cannot create: {}", to, error_text(errno));
}

// The file at `path`, empty and locked, so that no two processes write it; where a killed one left
// it, that is taken over. On a file system without locks, a file of this process alone, whose name
// goes to `path`. Throws Error{cannot_create} naming `name`.
int open_alone(std::string& path, const std::string& name) {
  for (;;) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) fail(Code::cannot_create, "{}: cannot create: {}", name, error_text(errno));
    if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
      const int error = errno;
      ::close(fd);
      if (error == EWOULDBLOCK)
        fail(Code::cannot_create, "{}: another process is writing it; wait for it", name);
      if (error == EINTR) continue;
      path += "." + std::to_string(::getpid());
      const int own = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
      if (own < 0) fail(Code::cannot_create, "{}: cannot create: {}", name, error_text(errno));
      return own;
    }
    // Who had the lock before may have renamed or removed the file since it was opened here.
    struct stat here, there;
    const bool same = ::fstat(fd, &here) == 0 && ::stat(path.c_str(), &there) == 0 &&
                      here.st_ino == there.st_ino && here.st_dev == there.st_dev;
    if (same && ::ftruncate(fd, 0) == 0) return fd;
    const int error = errno;
    ::close(fd);
    if (same) fail(Code::cannot_create, "{}: cannot create: {}", name, error_text(error));
  }
}

// Temporary files to remove if a signal ends the process: fixed slots, so that a handler may walk
// them.
constexpr std::size_t kSlots = 64, kPathBytes = 4096;
struct Slot {
  std::atomic<bool> used{false}, ready{false};
  std::array<char, kPathBytes> path{};
};
std::array<Slot, kSlots> g_temporaries;

void remember(const std::string& path) {
  if (path.size() >= kPathBytes) return;
  for (auto& slot : g_temporaries) {
    bool expected = false;
    if (!slot.used.compare_exchange_strong(expected, true)) continue;
    std::memcpy(slot.path.data(), path.c_str(), path.size() + 1);
    slot.ready = true;
    return;
  }
}

void forget(const std::string& path) {
  for (auto& slot : g_temporaries) {
    if (slot.ready && path == slot.path.data()) {
      slot.ready = false;
      slot.used = false;
    }
  }
}

}  // namespace

void remove_temporaries() noexcept {
  for (auto& slot : g_temporaries)
    if (slot.ready) ::unlink(slot.path.data());
}

std::unique_ptr<ByteSource> open_source(const std::string& path) {
  if (path == "-") return std::make_unique<FileSource>(STDIN_FILENO, "stdin", false);
  return std::make_unique<FileSource>(open_to_read(path), path, true);
}

MemorySource::MemorySource(std::span<const std::byte> data, std::string name)
    : rest_(data), name_(std::move(name)) {}
MemorySource::MemorySource(std::string_view text, std::string name)
    : MemorySource(std::as_bytes(std::span(text.data(), text.size())), std::move(name)) {}

std::size_t MemorySource::read(std::span<std::byte> out) {
  const std::size_t n = std::min(out.size(), rest_.size());
  if (n) std::memcpy(out.data(), rest_.data(), n);
  rest_ = rest_.subspan(n);
  return n;
}

std::size_t read_fully(ByteSource& source, std::span<std::byte> out) {
  std::size_t done = 0;
  while (done < out.size()) {
    const std::size_t n = source.read(out.subspan(done));
    if (n == 0) break;
    done += n;
  }
  return done;
}

std::string read_text(ByteSource& source, std::size_t limit) {
  std::string text;
  std::size_t done = 0;
  for (;;) {
    text.resize(std::max<std::size_t>(1 << 16, done * 2));
    const std::size_t n =
        source.read(std::as_writable_bytes(std::span(text.data() + done, text.size() - done)));
    done += n;
    if (done > limit) fail(Code::bad_data, "{}: larger than {} bytes", source.name(), limit);
    if (n == 0) break;
  }
  text.resize(done);
  return text;
}

std::string read_text(const std::string& path, std::size_t limit) {
  return read_text(*open_source(path), limit);
}

Output::Output(const std::string& path) : name_(path) {
  buffer_.reserve(kBufferBytes);
  if (path.empty() || path == "-") {
    name_ = "stdout";
    fd_ = STDOUT_FILENO;
    return;
  }
  struct stat info;
  if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    // A device or a pipe (/dev/null, /dev/full, a FIFO): nothing to rename.
    fd_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd_ < 0) fail(Code::cannot_create, "{}: cannot open: {}", path, error_text(errno));
    return;
  }
  std::string temporary = path + ".tmp.tessera";
  fd_ = open_alone(temporary, path);
  temporary_ = temporary;
  remember(temporary_);
}

Output::~Output() {
  // While it is locked: afterwards it may be another's.
  if (!temporary_.empty()) {
    ::unlink(temporary_.c_str());
    forget(temporary_);
  }
  if (fd_ >= 0 && fd_ != STDOUT_FILENO) ::close(fd_);
}

void Output::write_through(std::span<const std::byte> in) { write_all(fd_, name_, in); }

void Output::write(std::span<const std::byte> in) {
  if (buffer_.size() + in.size() > kBufferBytes) flush();
  if (in.size() >= kBufferBytes) {
    write_through(in);
  } else {
    buffer_.insert(buffer_.end(), in.begin(), in.end());
  }
}

void Output::flush() {
  write_through(buffer_);
  buffer_.clear();
}

void Output::commit() {
  flush();
  if (fd_ == STDOUT_FILENO) return;
  if (temporary_.empty()) {
    const int closed = ::close(fd_);
    fd_ = -1;
    if (closed != 0) fail(Code::io, "{}: cannot write: {}", name_, error_text(errno));
    return;
  }
  if (::fsync(fd_) != 0) fail(Code::io, "{}: cannot write: {}", name_, error_text(errno));
  rename_file(temporary_, name_);
  // From here on the name is taken: what fails now fails with the output whole.
  forget(temporary_);
  temporary_.clear();
  ::close(fd_);  // and the lock with it; fsync has said what there was to say
  fd_ = -1;
  sync_folder(parent_of(name_));
}

void write_file(const std::string& path, std::string_view text) {
  Output out(path);
  out.write(text);
  out.commit();
}

RandomFile::RandomFile(const std::string& path) : name_(path), fd_(open_to_read(path)) {
  struct stat info;
  if (::fstat(fd_, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd_);
    fail(Code::no_input, "{}: not a file that can be read at random", path);
  }
  size_ = static_cast<std::uint64_t>(info.st_size);
}

RandomFile::~RandomFile() { ::close(fd_); }

void RandomFile::read_at(std::uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t n = ::pread(fd_, out.data(), out.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(Code::io, "{}: cannot read: {}", name_, error_text(errno));
    if (n == 0) fail(Code::bad_data, "{}: cut short at byte {}", name_, offset);
    out = out.subspan(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
}

std::unique_ptr<RandomFile> RandomFile::spool(ByteSource& source) {
  const char* folder = std::getenv("TMPDIR");
  if (!folder || !*folder) folder = "/tmp";
  std::string path = std::string(folder) + "/tessera.XXXXXX";
  const int fd = ::mkostemp(path.data(), O_CLOEXEC);
  if (fd < 0) fail(Code::cannot_create, "{}: cannot create: {}", path, error_text(errno));
  ::unlink(path.c_str());
  std::unique_ptr<RandomFile> file(new RandomFile(source.name(), fd, 0));
  Bytes buffer(kBufferBytes);
  while (const std::size_t n = source.read(buffer)) {
    write_all(fd, path, std::span(buffer).first(n));
    file->size_ += n;
  }
  return file;
}

void RandomMemory::read_at(std::uint64_t offset, std::span<std::byte> out) const {
  if (offset > data_.size() || out.size() > data_.size() - offset)
    fail(Code::bad_data, "{}: cut short at byte {}", name_, data_.size());
  if (!out.empty()) std::memcpy(out.data(), data_.data() + offset, out.size());
}

std::size_t SequentialSource::read(std::span<std::byte> out) {
  const std::size_t n =
      static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), bytes_.size() - offset_));
  bytes_.read_at(offset_, out.first(n));
  offset_ += n;
  return n;
}

bool is_regular_file(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

void sync_folder(const std::string& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) fail(Code::io, "{}: cannot open: {}", folder, error_text(errno));
  const int result = ::fsync(fd);
  const int error = errno;
  ::close(fd);
  // Some file systems cannot sync a folder; the rename is then as durable as they make it.
  if (result != 0 && error != EINVAL && error != ENOTSUP)
    fail(Code::io, "{}: cannot write: {}", folder, error_text(error));
}

void rename_durably(const std::string& from, const std::string& to) {
  rename_file(from, to);
  sync_folder(parent_of(to));
}

void make_folders(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) fail(Code::cannot_create, "{}: cannot create: {}", path, error.message());
}

}  // namespace core
