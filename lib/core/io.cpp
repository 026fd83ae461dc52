#include "core/io.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "core/path_kind.h"
#include "core/temporary_file.h"

namespace core {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 18;

std::function<void()> g_terminal_notice;

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

int open_to_read(const std::string& path, int flags = 0) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | flags);
  if (fd < 0) fail_errno(Code::no_input, path + ": cannot open", errno);
  struct stat info;
  if (::fstat(fd, &info) == 0 && S_ISDIR(info.st_mode)) {
    ::close(fd);
    refuse_folder(path);
  }
  return fd;
}

std::string parent_of(const std::string& path) {
  const auto parent = std::filesystem::path(path).parent_path();
  return parent.empty() ? "." : parent.string();
}

// Makes a name in the folder durable after a crash. Errors name `name`.
void sync_folder_of(const std::string& folder, const std::string& name) {
  const Descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // The folder may accept files although it cannot be listed.
  if (!opened && errno == EACCES) return;
  if (!opened) fail_errno(Code::io, name + ": cannot open its folder", errno);
  // Some file systems cannot sync a folder; the durability of the rename then depends on them.
  if (::fsync(opened.fd()) != 0 && errno != EINVAL && errno != ENOTSUP)
    fail(Code::io, "{}: cannot write its folder: {}", name, error_text(errno));
}

void rename_file(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0)
    fail_errno(Code::cannot_create, to + ": cannot create", errno);
}

// The files, by device and inode number, that no Output may replace.
std::set<std::pair<dev_t, ino_t>> g_inputs;

void refuse_inputs(const std::string& name, const struct stat& info) {
  if (S_ISREG(info.st_mode) && g_inputs.count({info.st_dev, info.st_ino}) > 0)
    bad_usage("{}: is also an input, which would be lost; give another output", name);
}

}  // namespace

void on_terminal_input(std::function<void()> notice) { g_terminal_notice = std::move(notice); }

std::unique_ptr<ByteSource> open_source(const std::string& path, const std::string& name) {
  if (path == "-") {
    if (g_terminal_notice && ::isatty(STDIN_FILENO)) g_terminal_notice();
    return std::make_unique<FileSource>(STDIN_FILENO, "stdin", false);
  }
  return std::make_unique<FileSource>(open_to_read(path), name.empty() ? path : name, true);
}

std::vector<std::string> input_paths(const std::vector<std::string>& files) {
  if (std::ranges::count(files, "-") > 1)
    bad_usage("two inputs are -, but stdin can be read only once");
  return files.empty() ? std::vector<std::string>{"-"} : files;
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
    if (done > limit) bad_data("{}: larger than {} bytes", source.name(), limit);
    if (n == 0) break;
  }
  text.resize(done);
  return text;
}

std::string read_text(const std::string& path, std::size_t limit) {
  return read_text(*open_source(path), limit);
}

void protect_input(const std::string& path) {
  struct stat info;
  const int found = path == "-" ? ::fstat(STDIN_FILENO, &info) : ::stat(path.c_str(), &info);
  if (found == 0 && S_ISREG(info.st_mode)) g_inputs.insert({info.st_dev, info.st_ino});
}

void refuse_input(const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) == 0) refuse_inputs(path, info);
}

Output::Output(const std::string& path) : name_(path) {
  buffer_.reserve(kBufferBytes);
  const Destination destination = destination_of(path);
  struct stat info;
  if (destination.descriptor) {
    fd_ = *destination.descriptor;
    if (fd_ == STDOUT_FILENO) name_ = "stdout";
    if (::fstat(fd_, &info) != 0) fail_errno(Code::cannot_create, name_ + ": cannot open", errno);
    refuse_inputs(name_, info);
    return;
  }
  target_ = destination.path;
  if (::stat(target_.c_str(), &info) == 0) {
    refuse_inputs(path, info);
    if (!S_ISREG(info.st_mode)) {
      // Write a device or a pipe (/dev/null, /dev/full, a FIFO) directly; there is nothing to
      // rename.
      fd_ = ::open(target_.c_str(), O_WRONLY | O_CLOEXEC);
      if (fd_ < 0) fail_errno(Code::cannot_create, path + ": cannot open", errno);
      owned_ = true;
      return;
    }
  }
  std::string temporary;
  fd_ = create_locked(target_, temporary, path);
  owned_ = true;
  temporary_ = temporary;
  remember_temporary(temporary_);
}

Output::~Output() {
  // Remove it while it is locked; afterwards it may belong to another process.
  if (!temporary_.empty()) {
    ::unlink(temporary_.c_str());
    forget_temporary(temporary_);
  }
  if (owned_) ::close(fd_);
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
  if (!owned_) return;
  if (temporary_.empty()) {
    owned_ = false;
    if (::close(fd_) != 0) fail_errno(Code::io, name_ + ": cannot write", errno);
    return;
  }
  if (::fsync(fd_) != 0) fail_errno(Code::io, name_ + ": cannot write", errno);
  if (!is_same_file(fd_, temporary_)) {
    const std::string temporary = std::exchange(temporary_, {});  // not to be removed: another's
    forget_temporary(temporary);
    fail(Code::cannot_create, "{}: {} was removed or replaced while it was written", name_,
        temporary);
  }
  rename_file(temporary_, target_);
  // The output is complete from here on, even if a later step fails.
  forget_temporary(temporary_);
  temporary_.clear();
  owned_ = false;
  ::close(fd_);  // and releases the lock; fsync has reported all errors
  sync_folder_of(parent_of(target_), name_);
}

void write_file(const std::string& path, std::string_view text) {
  Output out(path);
  out.write(text);
  out.commit();
}

// Open a pipe without waiting for its other end.
RandomFile::RandomFile(const std::string& path, std::string name)
    : name_(name.empty() ? std::string(path) : std::move(name)),
      fd_(open_to_read(path, O_NONBLOCK)) {
  struct stat info;
  if (::fstat(fd_, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd_);
    fail(Code::no_input, "{}: not seekable; give a regular file", path);
  }
  size_ = static_cast<std::uint64_t>(info.st_size);
}

RandomFile::~RandomFile() { ::close(fd_); }

void RandomFile::read_at(std::uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t n = ::pread(fd_, out.data(), out.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(Code::io, "{}: cannot read: {}", name_, error_text(errno));
    if (n == 0) bad_data("{}: cut short at byte {}", name_, offset);
    out = out.subspan(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
}

void RandomMemory::read_at(std::uint64_t offset, std::span<std::byte> out) const {
  if (offset > data_.size() || out.size() > data_.size() - offset)
    bad_data("{}: cut short at byte {}", name_, data_.size());
  if (!out.empty()) std::memcpy(out.data(), data_.data() + offset, out.size());
}

std::size_t SequentialSource::read(std::span<std::byte> out) {
  const std::size_t n =
      static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), bytes_.size() - offset_));
  bytes_.read_at(offset_, out.first(n));
  offset_ += n;
  return n;
}

bool exists(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0;
}

bool is_regular_file(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

void sync_folder(const std::string& folder) { sync_folder_of(folder, folder); }

void rename_durably(const std::string& from, const std::string& to) {
  rename_file(from, to);
  sync_folder_of(parent_of(to), to);
}

void make_folder(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const auto bare = path.size() > 1 && path.back() == '/' ? path.substr(0, path.size() - 1) : path;
  fs::create_directory(bare, error);
  const auto parent = fs::path(bare).parent_path();
  if (error == std::errc::no_such_file_or_directory && !parent.empty() && !fs::exists(parent))
    fail(Code::cannot_create, "{}: cannot create: no folder {}; make it first", path,
        parent.string());
  if (error) fail(Code::cannot_create, "{}: cannot create: {}", path, error.message());
}

void write_all(int fd, const std::string& name, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0) {
      if (errno == EINTR) continue;
      fail(Code::io, "{}: cannot write: {}", name, error_text(errno));
    }
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
}

}  // namespace core
