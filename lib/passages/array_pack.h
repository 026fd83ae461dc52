#pragma once
// A file of several arrays, which is read by mapping. Numbers are little-endian.
//
//   8 bytes    the name of the format
//   u32        its version; zeros up to byte 64
//   arrays     each aligned to 64 bytes, with zeros between
//   JSON       the format's facts, "arrays" ([{name, offset, bytes, hash}, ...], XXH3-128) and
//              "hash", that of the object without it
//   u64        length of the JSON in bytes
//   8 bytes    the name again

#include "core/hash.h"
#include "core/io.h"
#include "core/json.h"

namespace passages {

/// A PackFormat identifies the format of the file.
struct PackFormat {
  std::string_view name;  ///< 8 characters
  std::uint32_t version;
  std::string what;     ///< for messages: "an index of passages"
  std::string written;  ///< for messages: the command that writes it
};

/// A PackWriter writes the file front to back; it does not commit the sink.
class PackWriter {
 public:
  PackWriter(core::ByteSink& out, const PackFormat& format);

  /// Starts an array that write() fills in pieces; the next begin() ends it.
  void begin(std::string name);
  template <class T> void write(std::span<const T> elements) {
    put(std::as_bytes(elements));
    hash_.update(std::as_bytes(elements));
  }
  /// Writes a whole array.
  template <class T> void add(std::string name, std::span<const T> elements) {
    begin(std::move(name));
    write(elements);
  }
  /// Ends the file with the facts.
  void finish(core::OrderedJson facts);

 private:
  void put(std::span<const std::byte> bytes);
  void end();
  core::ByteSink& out_;
  PackFormat format_;
  core::Hasher hash_;
  std::string name_;  // name of the current array; empty: none
  std::uint64_t offset_ = 0, start_ = 0;
  core::OrderedJson arrays_ = core::OrderedJson::array();
};

/// A PackReader reads the file. Its constructor makes all checks that need only the bytes,
/// including the hash of every array.
class PackReader {
 public:
  /// `bytes` are aligned to 64 bytes and outlive the reader. Throws Error{bad_data}, naming `name`.
  PackReader(std::span<const std::byte> bytes, const PackFormat& format, std::string name);

  const core::Json& facts() const { return facts_; }
  const std::string& name() const { return name_; }
  /// Returns an array. Throws Error{bad_data} if it is absent or does not hold a whole number of
  /// elements.
  template <class T> std::span<const T> array(const std::string& name) const {
    const auto bytes = bytes_of(name, sizeof(T));
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
  /// Returns an array of exactly `n` elements; throws likewise.
  template <class T> std::span<const T> array(const std::string& name, std::uint64_t n) const {
    const auto elements = array<T>(name);
    if (elements.size() != n)
      core::bad_data("{}: damaged: {} has {} elements, not {}", name_, name, elements.size(), n);
    return elements;
  }

 private:
  std::span<const std::byte> bytes_of(const std::string& name, std::size_t element) const;
  std::string name_;
  core::Json facts_;
  std::map<std::string, std::span<const std::byte>> arrays_;
};

}  // namespace passages
