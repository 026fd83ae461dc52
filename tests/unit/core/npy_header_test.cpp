#include "core/npy_header.h"

#include <rapidcheck.h>

#include "unit/thrown.h"

#include <doctest/doctest.h>

namespace {

std::span<const std::byte> bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// Returns a file of version `major` with this text after its length.
std::string file(int major, const std::string& dict) {
  std::string out = "\x93NUMPY";
  out += {static_cast<char>(major), '\0'};
  for (int i = 0; i < (major == 1 ? 2 : 4); ++i)
    out += static_cast<char>(dict.size() >> (8 * i) & 0xFF);
  return out + dict;
}

Thrown refused(const std::string& front) {
  return thrown([&] { core::parse_npy_header(bytes(front), "x.npy"); });
}

}  // namespace

DOCTEST_TEST_CASE("an array's header comes back, on a boundary of 64 bytes") {
  DOCTEST_CHECK(rc::check([](const std::vector<std::uint64_t>& dimensions) {
    const auto shape = std::vector<std::uint64_t>(dimensions.begin(),
        dimensions.begin() + std::ptrdiff_t(std::min<std::size_t>(dimensions.size(), 32)));
    const auto descr = *rc::gen::element<std::string>("<u2", "|u1", "<f4", "<i8");
    const std::string front = core::format_npy_header(descr, shape);
    const auto header = core::parse_npy_header(bytes(front), "x.npy");
    RC_ASSERT(header.descr == descr && header.shape == shape && !header.fortran_order);
    RC_ASSERT(header.data_offset == front.size() && front.size() % 64 == 0);
  }));
}

DOCTEST_TEST_CASE("every spelling of NumPy is read") {
  for (const int major : {1, 2, 3}) {
    const auto header = core::parse_npy_header(
        bytes(file(major, "{'shape': (3, 4), 'fortran_order': True, \"descr\": '<f2'}\n")), "x");
    DOCTEST_CHECK(header.shape == std::vector<std::uint64_t>{3, 4});
    DOCTEST_CHECK(header.fortran_order);
    DOCTEST_CHECK(header.descr == "<f2");
  }
  const auto scalar = core::parse_npy_header(
      bytes(file(1, "{'descr': '<i4', 'fortran_order': False, 'shape': (), }  \n")), "x");
  DOCTEST_CHECK(scalar.shape.empty());
  DOCTEST_CHECK(scalar.elements(4, "x") == 1);
}

DOCTEST_TEST_CASE("what is no header is refused by name") {
  const std::string good = core::format_npy_header("<u2", std::vector<std::uint64_t>{7});
  for (std::size_t n = 0; n < good.size(); ++n)
    DOCTEST_CHECK(refused(good.substr(0, n)).code == 65);
  DOCTEST_CHECK(refused("PK\x03\x04 an archive").names("not a .npy file"));
  DOCTEST_CHECK(refused(file(9, "{}")).names("version 9.0"));
  for (const char* dict :
      {"", "{", "{}", "{'descr': '<u2'}", "{'descr': '<u2', 'fortran_order': False, 'shape': (7,)",
          "{'descr': '<u2', 'fortran_order': Maybe, 'shape': (7,)}",
          "{'descr': '<u2', 'fortran_order': False, 'shape': (-7,)}",
          "{'descr': '<u2', 'fortran_order': False, 'shape': (99999999999999999999,)}",
          "{'descr': '<u2', 'descr': '<u2', 'fortran_order': False, 'shape': (7,)}",
          "{'descr': [('a', '<u2')], 'fortran_order': False, 'shape': (7,)}",
          "{'descr': '<u2', 'fortran_order': False, 'shape': (7,)} and more"})
    DOCTEST_CHECK_MESSAGE(refused(file(1, dict)).names("damaged"), dict);
  DOCTEST_CHECK(refused(file(2, "") + std::string("\xff\xff\xff\x7f", 4)).code == 65);
}

DOCTEST_TEST_CASE("a shape larger than any file is refused before anything is made of it") {
  core::NpyHeader header;
  for (const std::vector<std::uint64_t>& shape :
      {std::vector<std::uint64_t>{1ull << 62}, {1ull << 32, 1ull << 31}, {0, UINT64_MAX}}) {
    header.shape = shape;
    const auto error = thrown([&] { header.elements(2, "x.npy"); });
    DOCTEST_CHECK(error.code == 65);
    DOCTEST_CHECK(error.names("x.npy"));
  }
  header.shape = {1ull << 40, 1ull << 20};
  DOCTEST_CHECK(header.elements(4, "x") == 1ull << 60);
}
