#pragma once
// A file of torch.save: a pickle and the bytes of its tensors, in the zip format or the older
// stream format:
//
//   zip     NAME/data.pkl; NAME/data/KEY, the bytes of each storage; NAME/byteorder
//   stream  pickles of a magic number, a version, facts of the machine, the object, the storages'
//           keys; then for each storage its number of elements, 8 bytes, and its bytes
// A zip archive with uncompressed files, as torch.save writes it (format: PKWARE's APPNOTE, with
// the 64-bit extension).
// Reads Python pickles, protocols 2 to 5, as data (pickletools documents the opcodes). Executes
// nothing and supports no class but OrderedDict, which becomes a dict.

#include "core/io.h"
#include "model/pickle/pickle_value.h"
#include "nn/base/torch.h"

namespace model {

/// Limits on the bytes of a pickle, and on its values, memo and stack entries and dict elements,
/// far above any checkpoint's.
inline constexpr std::uint64_t kMostPickleBytes = std::uint64_t{1} << 26;
inline constexpr std::size_t kMostPickleValues = std::size_t{1} << 20;

/// Reads the pickle that begins at byte `begin` and stops before `end`. Time and memory are bounded
/// by the present bytes. Throws Error{bad_data} that names the byte at which the pickle is
/// truncated, malformed, unsupported or beyond the limits; Error{io}.
Pickle unpickle(const core::RandomSource& source, std::uint64_t begin, std::uint64_t end);

/// Location of a tensor; equal locations are the same memory.
struct TensorPlace {
  std::string storage;
  torch::Dtype dtype = torch::kFloat32;
  std::int64_t offset = 0;  ///< elements
  std::vector<std::int64_t> shape, strides;
  std::int64_t elements() const;
  std::int64_t span() const;  ///< number of storage elements from the first to the last
  bool operator==(const TensorPlace&) const = default;
};

/// An open file. Nothing in the pickle is executed. Tensors are read on demand. Thread safe.
class TorchFile {
 public:
  /// Opens a file. Throws Error{no_input}, Error{io}, and Error{bad_data} for content that
  /// torch.save does not write or that comes from a machine of the other byte order.
  explicit TorchFile(const std::string& path);
  explicit TorchFile(std::unique_ptr<core::RandomSource> source);

  const std::string& name() const { return source_->name(); }
  std::uint64_t size() const { return source_->size(); }
  const Pickle& pickle() const { return pickle_; }
  const PickleValue& root() const { return pickle_.root(); }

  /// Returns whether the value is a tensor, or a parameter created from one.
  static bool is_tensor(const PickleValue& value);
  /// Both functions throw Error{bad_data} if the value is no tensor, or exceeds its storage in
  /// extent or number of elements. `what` names it in messages.
  TensorPlace place(const PickleValue& value, const std::string& what) const;
  /// Reads a tensor in its own type, contiguous, on the CPU.
  torch::Tensor read(const PickleValue& value, const std::string& what) const;

 private:
  struct Storage {
    std::uint64_t begin, size;  ///< bytes of the file
  };
  void open_archive();
  void open_stream();
  void check_inside(const TensorPlace& place, const std::string& what) const;

  std::unique_ptr<core::RandomSource> source_;
  Pickle pickle_;
  std::map<std::string, Storage> storages_;
};

class ZipArchive {
 public:
  struct Entry {
    std::uint64_t begin, size;  ///< bytes of the archive
  };

  /// Returns whether the bytes begin with an archive's signature.
  static bool looks_like(const core::RandomSource& source);
  /// Throws Error{bad_data} for any violation of the format, and for compressed or encrypted files;
  /// Error{io}.
  explicit ZipArchive(const core::RandomSource& source);

  const std::map<std::string, Entry>& entries() const { return entries_; }

 private:
  std::map<std::string, Entry> entries_;
};

}  // namespace model
