#include "store/npy.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "core/io.h"

namespace store {
namespace {

using core::Code;
using core::fail;

constexpr std::size_t kMostDimensions = 8;

std::vector<std::uint64_t> shape_of(std::uint64_t rows, std::uint64_t width, bool matrix) {
  return matrix ? std::vector<std::uint64_t>{rows, width} : std::vector<std::uint64_t>{rows};
}

void expect_array(const core::NpyHeader& header, std::string_view descr, std::uint64_t rows,
    std::uint64_t width, bool matrix, const std::string& name) {
  const bool same = header.descr == descr && header.shape.size() == (matrix ? 2U : 1U) &&
                    header.shape[0] >= rows && (!matrix || header.shape[1] == width);
  if (!same)
    core::bad_data("{}: has type '{}' and shape ({}), expected '{}' and ({})", name, header.descr,
        fmt::join(header.shape, ", "), descr, fmt::join(shape_of(rows, width, matrix), ", "));
}

// Returns the element size of "<f2", "<i4" or "<i8" in bytes; 0 for any other type.
std::size_t npy_element_bytes(std::string_view descr) {
  return descr == "<f2" ? 2 : descr == "<i4" ? 4 : descr == "<i8" ? 8 : 0;
}

}  // namespace

core::NpyHeader parse_npy_header(std::span<const std::byte> front, const std::string& origin) {
  core::NpyHeader header = core::parse_npy_header(front, origin);
  const std::size_t element = npy_element_bytes(header.descr);
  if (element == 0)
    core::bad_data("{}: elements of type '{}' are not supported; '<f2', '<i4' and '<i8' are",
        origin, header.descr);
  if (header.fortran_order) core::bad_data("{}: is in Fortran order, expected C order", origin);
  if (header.data_offset % 8 != 0)
    core::bad_data("{}: its elements begin at byte {}, which is not a multiple of 8", origin,
        header.data_offset);
  if (header.shape.size() > kMostDimensions)
    core::bad_value(origin, "the number of dimensions", header.shape.size(),
        fmt::format("0 to {}", kMostDimensions));
  header.elements(element, origin);
  return header;
}

std::string format_npy_header(std::string_view descr, const std::vector<std::uint64_t>& shape) {
  std::string header = core::format_npy_header(descr, shape);
  if (header.size() != kNpyHeaderBytes) core::bug("a .npy header of {} bytes", header.size());
  return header;
}

NpyArray::NpyArray(const std::string& path, std::string_view descr, std::uint64_t rows,
    std::uint64_t width, bool matrix)
    : file_(path) {
  const auto front = file_.bytes();
  const core::NpyHeader header = parse_npy_header(front, path);
  expect_array(header, descr, rows, width, matrix, path);
  offset_ = header.data_offset;
  elements_ = rows * width;
  const std::uint64_t bytes = elements_ * npy_element_bytes(descr);
  if (front.size() - offset_ < bytes)
    core::bad_data("{}: cut short: it has {} of {} bytes", path, front.size(), offset_ + bytes);
}

NpyWriter::NpyWriter(const std::string& path, std::string_view descr, std::uint64_t rows,
    std::uint64_t width, bool matrix)
    : name_(path), descr_(descr), rows_(rows), width_(width),
      row_bytes_(width * npy_element_bytes(descr)), matrix_(matrix) {
  if (rows > 0) {
    const NpyArray there(path, descr, rows, width, matrix);
    if (there.data_offset() != kNpyHeaderBytes)
      core::bad_data(
          "{}: its header was written by another program; rows cannot be appended", path);
  }
  fd_ = core::Descriptor(
      rows == 0 ? core::create_file(path) : ::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd_) core::fail_errno(Code::cannot_create, path + ": cannot open", errno);
  write_header();  // before truncating rows of an interrupted command, which it may have counted
  if (::ftruncate(fd_.fd(), static_cast<off_t>(kNpyHeaderBytes + rows * row_bytes_)) != 0)
    fail(Code::io, "{}: cannot write: {}", path, core::error_text(errno));
}

void NpyWriter::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd_.fd(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0) {
      if (errno == EINTR) continue;
      fail(Code::io, "{}: cannot write: {}", name_, core::error_text(errno));
    }
    bytes = bytes.subspan(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
}

void NpyWriter::sync() {
  if (::fsync(fd_.fd()) != 0)
    fail(Code::io, "{}: cannot write: {}", name_, core::error_text(errno));
}

void NpyWriter::write(std::span<const std::byte> rows) {
  write_at(kNpyHeaderBytes + rows_ * row_bytes_, rows);
  rows_ += rows.size() / row_bytes_;
}

void NpyWriter::write_header() {
  const std::string header = format_npy_header(descr_, shape_of(rows_, width_, matrix_));
  write_at(0, std::as_bytes(std::span(header)));
}

void NpyWriter::commit() {
  sync();
  write_header();
  sync();
}

}  // namespace store
