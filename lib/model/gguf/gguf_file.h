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

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/mapped_file.h"
#include "model/gguf/gguf_blocks.h"

namespace model {

/// Whether `path` is a regular file that begins as GGUF does, or whose name ends in ".gguf".
bool is_gguf(const std::string& path);

struct GgufTensor {
  const GgufType* type;
  std::vector<std::int64_t> shape;  ///< the outermost dimension first
  std::size_t begin, bytes;         ///< in the file
};

/// Checked whole when it is opened, in time and memory bounded by a multiple of the file's size.
/// Thread safe.
class GgufFile {
 public:
  /// Throws Error{no_input}, and Error{bad_data} naming what is wrong in the header or which tensor
  /// is outside the file, overlaps another or has a type that is not supported.
  explicit GgufFile(const std::string& path);
  /// Bytes in memory, which outlive it.
  GgufFile(std::span<const std::byte> bytes, std::string name);

  const std::string& name() const { return name_; }
  const std::map<std::string, GgufTensor>& tensors() const { return tensors_; }
  std::span<const std::byte> bytes_of(const GgufTensor& tensor) const {
    return bytes_.subspan(tensor.begin, tensor.bytes);
  }

  bool has(const std::string& key) const { return values_.count(key) > 0; }
  bool is_list(const std::string& key) const;
  /// A metadata value, nothing where the key is absent. Throw Error{bad_data} for one of another
  /// type. whole() takes an array whose elements are all equal, too.
  std::optional<std::int64_t> whole(const std::string& key) const;
  std::optional<double> number(const std::string& key) const;  ///< of a float32: the shortest
  std::optional<bool> truth(const std::string& key) const;
  std::optional<std::string_view> text(const std::string& key) const;
  /// Empty where the key is absent.
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
