#pragma once
// Byte sources and sinks, and outputs that are whole or absent.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace core {

using Bytes = std::vector<std::byte>;

/// A stream of bytes to read once, front to back. Not thread safe.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// Fills up to out.size() bytes, returns how many; 0 only at the end. Throws Error{io}.
  virtual std::size_t read(std::span<std::byte> out) = 0;
  /// The name for messages: a path, or "stdin".
  virtual const std::string& name() const = 0;
};

/// A stream of bytes to write once, front to back. Not thread safe.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  /// Takes all of `in`. Throws Error{io}.
  virtual void write(std::span<const std::byte> in) = 0;
  void write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }
};

/// Bytes of a file, or of stdin for "-". `name` stands in messages; empty: the path, or "stdin".
/// Throws Error{no_input} if it cannot be opened (a folder included).
std::unique_ptr<ByteSource> open_source(const std::string& path, const std::string& name = {});
/// The files of a command line: none is stdin, "-". Throws Error{usage} for a second "-".
std::vector<std::string> input_paths(const std::vector<std::string>& files);
/// `notice` is called before stdin is read where that is a terminal, so that a program that waits
/// can say so. For the program's start, before any thread.
void on_terminal_input(std::function<void()> notice);

/// Bytes in memory; `data` must outlive the source.
class MemorySource : public ByteSource {
 public:
  explicit MemorySource(std::span<const std::byte> data, std::string name = "memory");
  explicit MemorySource(std::string_view text, std::string name = "memory");
  std::size_t read(std::span<std::byte> out) override;
  const std::string& name() const override { return name_; }

 private:
  std::span<const std::byte> rest_;
  std::string name_;
};

/// Collects bytes in memory.
class MemorySink : public ByteSink {
 public:
  using ByteSink::write;
  void write(std::span<const std::byte> in) override {
    bytes.insert(bytes.end(), in.begin(), in.end());
  }
  std::string_view text() const {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  Bytes bytes;
};

/// Reads to `out.size()` or the end, whichever is first.
std::size_t read_fully(ByteSource& source, std::span<std::byte> out);

/// Everything up to `limit` bytes. Throws Error{bad_data} if there is more, Error{no_input},
/// Error{io}.
std::string read_text(const std::string& path, std::size_t limit = std::size_t{1} << 30);
std::string read_text(ByteSource& source, std::size_t limit = std::size_t{1} << 30);

/// No Output may take the place of this file (of stdin, for "-"); a path that is not there is
/// passed over. To be called before threads begin.
void protect_input(const std::string& path);
/// Throws Error{usage} if protect_input() was given this file: for who writes without an Output.
void refuse_input(const std::string& path);

/// An output that appears under its name only when complete: bytes go to a temporary file beside it
/// (temporary_file.h), locked; commit() writes them to disk, renames, and syncs the folder. Without
/// commit() the temporary file is removed; where the process was killed it stays until the next
/// Output of that path. A path that is a symbolic link is what it names; devices and pipes are
/// written as they are; "-" or "" is stdout, as are /dev/stdout and the like (destination.h):
/// commit() flushes.
class Output : public ByteSink {
 public:
  /// Throws Error{cannot_create}, also if another process is writing to that path; Error{usage} for
  /// a protected input.
  explicit Output(const std::string& path);
  ~Output() override;
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  using ByteSink::write;
  void write(std::span<const std::byte> in) override;
  /// Hands buffered bytes to the system without completing the output.
  void flush();
  void commit();
  const std::string& name() const { return name_; }

 private:
  void write_through(std::span<const std::byte> in);
  std::string name_;                // as it was given
  std::string target_, temporary_;  // paths, if it is a file
  int fd_ = -1;
  bool owned_ = false;  // fd_ is to be closed
  Bytes buffer_;
};

/// Writes `text` to `path` whole or not at all.
void write_file(const std::string& path, std::string_view text);

/// Bytes of random access, read only. Thread safe.
class RandomSource {
 public:
  virtual ~RandomSource() = default;
  virtual std::uint64_t size() const = 0;
  /// Exactly out.size() bytes at `offset`. Throws Error{bad_data} past the end, Error{io}.
  virtual void read_at(std::uint64_t offset, std::span<std::byte> out) const = 0;
  virtual const std::string& name() const = 0;
};

/// A file of random access.
class RandomFile : public RandomSource {
 public:
  /// `name` stands in messages; empty: the path. Throws Error{no_input}.
  explicit RandomFile(const std::string& path, std::string name = {});
  ~RandomFile() override;
  RandomFile(const RandomFile&) = delete;
  RandomFile& operator=(const RandomFile&) = delete;
  std::uint64_t size() const override { return size_; }
  void read_at(std::uint64_t offset, std::span<std::byte> out) const override;
  const std::string& name() const override { return name_; }

 private:
  std::string name_;
  int fd_;
  std::uint64_t size_;
};

/// Bytes in memory; `data` must outlive it.
class RandomMemory : public RandomSource {
 public:
  explicit RandomMemory(std::span<const std::byte> data, std::string name = "memory")
      : data_(data), name_(std::move(name)) {}
  std::uint64_t size() const override { return data_.size(); }
  void read_at(std::uint64_t offset, std::span<std::byte> out) const override;
  const std::string& name() const override { return name_; }

 private:
  std::span<const std::byte> data_;
  std::string name_;
};

/// Reads a RandomSource front to back; it must outlive this.
class SequentialSource : public ByteSource {
 public:
  explicit SequentialSource(const RandomSource& bytes) : bytes_(bytes) {}
  std::size_t read(std::span<std::byte> out) override;
  const std::string& name() const override { return bytes_.name(); }

 private:
  const RandomSource& bytes_;
  std::uint64_t offset_ = 0;
};

/// True if `path` is a file that can be sought (so that a shard in it can be read at random).
bool is_regular_file(const std::string& path);
/// True if anything is at `path`.
bool exists(const std::string& path);

/// fsync of a folder, so that renames in it are on disk. Throws Error{io}.
void sync_folder(const std::string& folder);
/// Renames and syncs the folder of `to`. Throws Error{cannot_create}.
void rename_durably(const std::string& from, const std::string& to);
/// Makes a folder where none is there; its parent must be. Throws Error{cannot_create}.
void make_folder(const std::string& path);

/// Removes every temporary file of Outputs still open; async-signal-safe.
void remove_temporaries() noexcept;

}  // namespace core
