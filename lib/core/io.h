#pragma once
// Byte sources and sinks, and outputs that become visible only when complete.
// Writes all bytes to an open descriptor.

#include "core/base.h"

namespace core {

using Bytes = std::vector<std::byte>;

/// A ByteSource is a stream of bytes that is read once, front to back. Not thread safe.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// Reads up to out.size() bytes and returns their number, which is 0 only at the end. Throws
  /// Error{io}.
  virtual std::size_t read(std::span<std::byte> out) = 0;
  /// Returns the name for messages: a path, or "stdin".
  virtual const std::string& name() const = 0;
};

/// A ByteSink is a stream of bytes that is written once, front to back. Not thread safe.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  /// Writes all of `in`. Throws Error{io}.
  virtual void write(std::span<const std::byte> in) = 0;
  void write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }
};

/// Opens a file, or stdin for "-". `name` is the name for messages; if empty, it is the path or
/// "stdin". Throws Error{no_input} if the file cannot be opened or is a folder.
std::unique_ptr<ByteSource> open_source(const std::string& path, const std::string& name = {});
/// Returns the files of a command line; no file means stdin, "-". Throws Error{usage} for a second
/// "-".
std::vector<std::string> input_paths(const std::vector<std::string>& files);
/// Registers `notice`, which is called before stdin is read if stdin is a terminal, so that the
/// program can say that it waits for input. Call it at program start, before any thread starts.
void on_terminal_input(std::function<void()> notice);

/// A MemorySource reads bytes in memory. `data` must outlive the source.
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

/// A MemorySink collects bytes in memory.
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

/// Reads until `out` is full or the source ends, and returns the number of bytes.
std::size_t read_fully(ByteSource& source, std::span<std::byte> out);

/// Reads a whole source of at most `limit` bytes. Throws Error{bad_data} if it is longer,
/// Error{no_input} if it cannot be opened, Error{io} if reading fails.
std::string read_text(const std::string& path, std::size_t limit = std::size_t{1} << 30);
std::string read_text(ByteSource& source, std::size_t limit = std::size_t{1} << 30);

/// Registers an input file (stdin for "-") that no Output may replace. A path that does not exist
/// is ignored. Call it before threads start.
void protect_input(const std::string& path);
/// Throws Error{usage} if protect_input() registered this file. Code that writes without an Output
/// must call it.
void refuse_input(const std::string& path);

/// An Output is a file that appears under its name only when it is complete. Bytes go to a locked
/// temporary file in the target's folder (temporary_file.h); commit() syncs this file to disk,
/// renames it and syncs the folder. Without commit(), the destructor removes the temporary file. If
/// the process is killed, the temporary file remains until the next Output for that path. A
/// symbolic link is resolved to its target. Devices and pipes are written directly. "-", "",
/// /dev/stdout and the like (temporary_file.h) mean stdout, which commit() flushes.
class Output : public ByteSink {
 public:
  /// Opens the output. Throws Error{cannot_create} if it cannot be created or another process is
  /// writing to that path, and Error{usage} if the path is a protected input.
  explicit Output(const std::string& path);
  ~Output() override;
  Output(Output&&) = delete;
  using ByteSink::write;
  void write(std::span<const std::byte> in) override;
  /// Passes buffered bytes to the system without completing the output.
  void flush();
  /// Completes the output. Throws Error{io} or Error{cannot_create}.
  void commit();
  const std::string& name() const { return name_; }

 private:
  void write_through(std::span<const std::byte> in);
  std::string name_;                // as given by the caller
  std::string target_, temporary_;  // paths, if the output is a file
  int fd_ = -1;
  bool owned_ = false;  // the destructor closes fd_
  Bytes buffer_;
};

/// Writes `text` to `path` through an Output: the whole text or nothing.
void write_file(const std::string& path, std::string_view text);

/// A RandomSource gives read-only random access to bytes. Thread safe.
class RandomSource {
 public:
  virtual ~RandomSource() = default;
  virtual std::uint64_t size() const = 0;
  /// Reads exactly out.size() bytes at `offset`. Throws Error{bad_data} past the end, and
  /// Error{io}.
  virtual void read_at(std::uint64_t offset, std::span<std::byte> out) const = 0;
  virtual const std::string& name() const = 0;
};

/// A RandomFile gives random access to a file.
class RandomFile : public RandomSource {
 public:
  /// Opens the file. `name` is the name for messages; if empty, it is the path. Throws
  /// Error{no_input}.
  explicit RandomFile(const std::string& path, std::string name = {});
  ~RandomFile() override;
  RandomFile(RandomFile&&) = delete;
  std::uint64_t size() const override { return size_; }
  void read_at(std::uint64_t offset, std::span<std::byte> out) const override;
  const std::string& name() const override { return name_; }

 private:
  std::string name_;
  int fd_;
  std::uint64_t size_;
};

/// A RandomMemory gives random access to bytes in memory; `data` must outlive it.
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

/// A SequentialSource reads a RandomSource front to back; the RandomSource must outlive it.
class SequentialSource : public ByteSource {
 public:
  explicit SequentialSource(const RandomSource& bytes) : bytes_(bytes) {}
  std::size_t read(std::span<std::byte> out) override;
  const std::string& name() const override { return bytes_.name(); }

 private:
  const RandomSource& bytes_;
  std::uint64_t offset_ = 0;
};

/// Returns true if `path` is a regular file, which is seekable (so that a shard in it can be read
/// at random).
bool is_regular_file(const std::string& path);
/// Returns true if `path` exists.
bool exists(const std::string& path);

/// Syncs a folder to disk (fsync), so that renames in it are durable. Throws Error{io}.
void sync_folder(const std::string& folder);
/// Renames a file and syncs the folder of `to`. Throws Error{cannot_create}.
void rename_durably(const std::string& from, const std::string& to);
/// Creates a folder if it does not exist; its parent must exist. Throws Error{cannot_create}.
void make_folder(const std::string& path);

/// Removes the temporary files of all open Outputs. Async-signal-safe.
void remove_temporaries() noexcept;

/// Writes all bytes despite partial writes and interrupting signals. Throws Error{io}, naming
/// `name`.
void write_all(int fd, const std::string& name, std::span<const std::byte> bytes);
inline void write_all(int fd, const std::string& name, std::string_view text) {
  write_all(fd, name, std::as_bytes(std::span(text.data(), text.size())));
}

}  // namespace core
