#pragma once
// A GGUF file of version 2 or 3, little endian, as llama.cpp writes one: its metadata and where its
// tensors are.
//
//   4 bytes     "GGUF"
//   u32         version
//   u64, u64    numbers of tensors and of metadata
//   metadata    key (text), u32 type, value; a text is u64 bytes and the bytes, an array u32 type,
//               u64 elements and the elements
//   tensors     name (text), u32 dimensions, u64 each, the innermost first, u32 type, u64 offset
//   the rest    from the next multiple of general.alignment [32]: the tensors' blocks
//
// https://github.com/ggml-org/ggml/blob/master/docs/gguf.md

#include "core/mapped_file.h"
#include "model/gguf/gguf_blocks.h"

namespace model {

/// Returns whether `path` is a regular file that begins with GGUF's magic or whose name ends in
/// ".gguf".
bool is_gguf(const std::string& path);

struct GgufTensor {
  const GgufType* type;
  std::vector<std::int64_t> shape;  ///< outermost dimension first
  std::size_t begin, bytes;         ///< in the file
};

/// A GGUF file. The constructor checks the whole header, in time and memory bounded by a multiple
/// of the file's size. Thread safe.
class GgufFile {
 public:
  /// Opens a file. Throws Error{no_input}, and Error{bad_data} that names the fault of the header,
  /// or the tensor which is outside the file, overlaps another or has an unsupported type.
  explicit GgufFile(const std::string& path);
  /// Reads from memory; `bytes` must outlive the object.
  GgufFile(std::span<const std::byte> bytes, std::string name);

  const std::string& name() const { return name_; }
  const std::map<std::string, GgufTensor>& tensors() const { return tensors_; }
  std::span<const std::byte> bytes_of(const GgufTensor& tensor) const {
    return bytes_.subspan(tensor.begin, tensor.bytes);
  }

  /// Tells the system that it may drop the pages of these bytes of the file.
  void release(std::span<const std::byte> bytes) const {
    mapped_.release(static_cast<std::size_t>(bytes.data() - bytes_.data()), bytes.size());
  }

  bool has(const std::string& key) const { return values_.count(key) > 0; }
  bool is_list(const std::string& key) const;
  /// Returns the metadata keys that begin with `prefix`.
  std::vector<std::string> keys(const std::string& prefix) const;
  /// Return a metadata value; nullopt if the key is absent. Throw Error{bad_data} for a value of
  /// another type. whole() also accepts an array with equal elements.
  std::optional<std::int64_t> whole(const std::string& key) const;
  std::optional<double> number(const std::string& key) const;  ///< shortest decimal form of a
                                                               ///< float32
  std::optional<bool> truth(const std::string& key) const;
  std::optional<std::string_view> text(const std::string& key) const;
  /// Return an array; empty if the key is absent.
  std::vector<std::string_view> texts(const std::string& key) const;
  std::vector<double> numbers(const std::string& key) const;

 private:
  struct Value {
    std::uint32_t type = 0;  // of an array: of its elements
    bool array = false;
    std::uint64_t count = 1;
    std::span<const std::byte> bytes;  // of the elements
  };
  class Cursor;
  void parse();
  Value parse_value(Cursor& cursor, const std::string& key) const;
  void parse_tensor(Cursor& cursor);
  void expect_apart() const;
  const Value* find(const std::string& key) const;

  core::MappedFile mapped_;
  std::string name_;
  std::span<const std::byte> bytes_;
  std::map<std::string, Value> values_;
  std::map<std::string, GgufTensor> tensors_;
};

}  // namespace model
