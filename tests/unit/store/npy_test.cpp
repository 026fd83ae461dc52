#include "store/npy.h"

#include <cstdlib>
#include <fstream>

#include "core/io.h"
#include "core/rng.h"
#include "unit/store/store_folder.h"
#include "unit/thrown.h"

#include <doctest/doctest.h>

namespace {

namespace fs = std::filesystem;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string with_dict(const std::string& dict) {
  std::string header = "\x93NUMPY";
  std::string text = dict;
  while ((10 + text.size() + 1) % 64 != 0) text += ' ';
  text += '\n';
  header += {'\1', '\0', static_cast<char>(text.size() & 255), static_cast<char>(text.size() >> 8)};
  return header + text;
}

int code_of(const std::string& file) {
  return thrown([&] { store::parse_npy_header(bytes_of(file), "x.npy"); }).code;
}

}  // namespace

DOCTEST_TEST_CASE("a header is read in any order of its keys, as NumPy writes it") {
  const auto header = store::parse_npy_header(
      bytes_of(with_dict("{'shape': (3, 4), \"descr\": \"<f2\", 'fortran_order': False}")), "x");
  DOCTEST_CHECK(header.descr == "<f2");
  DOCTEST_CHECK(header.shape == std::vector<std::uint64_t>{3, 4});
  DOCTEST_CHECK(header.data_offset == 128);
  const auto own = store::format_npy_header("<i8", {18'000'000'000'000'000});
  DOCTEST_CHECK(own.size() == store::kNpyHeaderBytes);
  DOCTEST_CHECK(thrown([&] { store::parse_npy_header(bytes_of(own), "x"); }).code == 0);
}

DOCTEST_TEST_CASE(
    "a damaged header is refused: every prefix, every byte, and shapes that overflow") {
  const auto good = with_dict("{'descr': '<i4', 'fortran_order': False, 'shape': (7,), }");
  DOCTEST_CHECK(code_of(good) == 0);
  for (std::size_t n = 0; n < good.size(); ++n) DOCTEST_CHECK(code_of(good.substr(0, n)) == 65);
  core::Rng rng(1);
  for (std::size_t at = 0; at < good.size(); ++at)  // an answer or an error, never a crash
    for (int i = 0; i < 8; ++i) {
      auto bad = good;
      bad[at] = static_cast<char>(rng.next());
      const int code = code_of(bad);
      DOCTEST_CHECK((code == 0 || code == 65));
    }
  for (const std::string dict : {
           "{'descr': '<f4', 'fortran_order': False, 'shape': (7,), }",
           "{'descr': '>f2', 'fortran_order': False, 'shape': (7,), }",
           "{'descr': '<f2', 'fortran_order': True, 'shape': (7, 2), }",
           "{'descr': '<f2', 'fortran_order': False, 'shape': (-7,), }",
           "{'descr': '<f2', 'fortran_order': False, 'shape': (4294967296, 4294967296), }",
           "{'descr': '<f2', 'fortran_order': False, 'shape': (99999999999999999999,), }",
           "{'descr': '<f2', 'fortran_order': False, }",
           "{'descr': '<f2', 'descr': '<f2', 'fortran_order': False, 'shape': (7,), }",
           "{'descr': '<f2', 'fortran_order': False, 'shape': (7,), } more",
           "{'descr': '<f2', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,1), }",
       }) {
    DOCTEST_CAPTURE(dict);
    DOCTEST_CHECK(code_of(with_dict(dict)) == 65);
  }
}

DOCTEST_TEST_CASE("rows that were not committed are not there, and the next writer cuts them off") {
  const StoreFolder folder;
  fs::create_directories(folder.path);
  const std::string path = folder.path / "x.npy";
  const std::vector<std::int32_t> rows{1, 2, 3, 4, 5, 6};
  {
    store::NpyWriter writer(path, "<i4", 0, 2, true);
    writer.write(std::span<const std::int32_t>(rows).first(4));
    writer.commit();
    writer.write(std::span<const std::int32_t>(rows));
  }
  const store::NpyArray two(path, "<i4", 2, 2, true);
  DOCTEST_CHECK(two.values<std::int32_t>()[3] == 4);
  DOCTEST_CHECK(thrown([&] { store::NpyArray(path, "<i4", 3, 2, true); }).code == 65);
  {
    store::NpyWriter writer(path, "<i4", 1, 2, true);
    writer.write(std::span<const std::int32_t>(rows).last(2));
    writer.commit();
  }
  DOCTEST_CHECK(fs::file_size(path) == store::kNpyHeaderBytes + 16);
  const store::NpyArray again(path, "<i4", 2, 2, true);
  const auto values = again.values<std::int32_t>();
  DOCTEST_CHECK(std::vector<std::int32_t>(values.begin(), values.end()) ==
                std::vector<std::int32_t>{1, 2, 5, 6});
}

DOCTEST_TEST_CASE("numpy and Python's faiss open all of a store and find what this finds") {
  const char* python = std::getenv("TESSERA_PEERS");
  if (python == nullptr) {
    DOCTEST_MESSAGE("SKIP: TESSERA_PEERS names no python with numpy and faiss");
    return;
  }
  const std::string probe = std::string(python) + " -c 'import numpy, faiss' 2>/dev/null";
  if (std::system(probe.c_str()) != 0) {
    DOCTEST_MESSAGE("SKIP: " << python << " has no numpy or no faiss");
    return;
  }
  const StoreFolder folder;
  build_store(folder.path, make_plan("IVF4,PQ8x4fs"), random_rows(3000, 2), {0, 100});
  const std::string script = "tests/unit/store/open_store.py";
  const std::string command = std::string(python) + " " + script + " " + folder.path.string();
  DOCTEST_CHECK(std::system(command.c_str()) == 0);
  const StoreFolder grown;
  build_store(grown.path, make_plan("Flat"), random_rows(300, 2), {0, 100});
  build_store(grown.path, make_plan("", "more"), random_rows(100, 3), {0}, true);
  DOCTEST_CHECK(
      std::system((std::string(python) + " " + script + " " + grown.path.string()).c_str()) == 0);
}
