#include "ngrams/mapped_array.h"

#include <algorithm>

#include "core/error.h"
#include "core/npy_header.h"

namespace ngrams {

MappedArray::MappedArray(const std::string& path, std::string_view descr, std::uint64_t elements)
    : file_(path) {
  const auto start = file_.bytes().first(std::min(file_.bytes().size(), core::kMaxNpyHeaderBytes));
  const auto header = core::parse_npy_header(start, path);
  offset_ = header.data_offset;
  const std::uint64_t element = bytes_of(descr);
  if (header.descr != descr || header.fortran_order || header.shape.size() != 1 ||
      header.shape[0] != elements || offset_ % element != 0 ||
      (file_.bytes().size() - offset_) / element != elements ||
      (file_.bytes().size() - offset_) % element != 0)
    core::fail(core::Code::bad_data, "{}: damaged: it is not {} elements of type '{}'", path,
               elements, descr);
}

void MappedArray::expect(const std::string& hash) const {
  if (core::hash128(bytes()).hex() != hash)
    core::fail(core::Code::bad_data, "{}: corrupt file: checksum mismatch", name());
}

ArrayWriter::ArrayWriter(const std::string& path, std::string_view descr, std::uint64_t elements)
    : out_(path) {
  out_.write(core::format_npy_header(descr, std::span(&elements, 1)));
}

void ArrayWriter::write(std::span<const std::byte> elements) {
  hash_.update(elements);
  out_.write(elements);
}

std::string ArrayWriter::commit() {
  out_.commit();
  return hash_.digest().hex();
}

std::string_view descr_of(std::uint64_t types) {
  return types <= 1U << 8 ? "|u1" : types <= 1U << 16 ? "<u2" : "<u4";
}

std::size_t bytes_of(std::string_view descr) { return static_cast<std::size_t>(descr[2] - '0'); }

}  // namespace ngrams
