#include "shard/array_file.h"

#include <rapidcheck.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/npy_header.h"
#include "sample.h"

#include <doctest/doctest.h>

namespace {

using shard::ArrayFormat;

// Returns the bytes of little-endian numbers.
template <class T> std::string raw(const std::vector<T>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T)};
}

std::string npy(
    const char* descr, const std::vector<std::uint64_t>& shape, const std::string& data) {
  return core::format_npy_header(descr, shape) + data;
}

std::string llmc(std::vector<std::int32_t> start, const std::string& data) {
  start.resize(256);
  return raw(start) + data;
}

template <class T = std::uint64_t>
std::vector<T> read(
    const std::string& file, std::optional<ArrayFormat> format = {}, std::size_t piece = 3) {
  core::MemorySource source(file, "x.bin");
  shard::ArrayReader reader(source, format);
  std::vector<T> all, buffer(piece);
  for (std::size_t n = piece; n == piece;) {
    n = reader.read(std::span(buffer));
    all.insert(all.end(), buffer.begin(), buffer.begin() + std::ptrdiff_t(n));
  }
  return all;
}

Thrown refused(const std::string& file, std::optional<ArrayFormat> format = {}) {
  return thrown([&] { read(file, format); });
}

using Ids = std::vector<std::uint64_t>;

// A file in its own folder, since a data set reads files.
class ShardFile {
 public:
  explicit ShardFile(const core::Bytes& bytes)
      : path_(std::filesystem::temp_directory_path() /
              ("array-file-test." + std::to_string(::getpid()))) {
    std::ofstream(path_, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), std::streamsize(bytes.size()));
  }
  ~ShardFile() { std::filesystem::remove(path_); }
  shard::Dataset open() const { return shard::Dataset({path_.string()}); }

 private:
  std::filesystem::path path_;
};

std::string exported(const core::Bytes& bytes, ArrayFormat format) {
  const ShardFile file(bytes);
  core::MemorySink sink;
  shard::write_array(file.open(), format, sink, [](std::uint64_t) {});
  return std::string(sink.text());
}

}  // namespace

DOCTEST_TEST_CASE("each format is read, of every type") {
  DOCTEST_CHECK(
      read(llmc({20240520, 1, 3}, raw<std::uint16_t>({50256, 1, 2}))) == Ids{50256, 1, 2});
  DOCTEST_CHECK(read(llmc({20240801, 7, 2}, raw<std::uint32_t>({128000, 9}))) == Ids{128000, 9});
  DOCTEST_CHECK(read(raw<std::uint16_t>({7, 65535}), ArrayFormat::nanogpt) == Ids{7, 65535});
  DOCTEST_CHECK(read(npy("|u1", {2}, raw<std::uint8_t>({7, 255}))) == Ids{7, 255});
  DOCTEST_CHECK(read(npy("<u2", {2}, raw<std::uint16_t>({7, 65535}))) == Ids{7, 65535});
  DOCTEST_CHECK(read(npy("<i4", {2}, raw<std::int32_t>({7, 1 << 30}))) == Ids{7, 1 << 30});
  DOCTEST_CHECK(read(npy("<i8", {2, 1}, raw<std::int64_t>({7, 1ll << 60}))) == Ids{7, 1ull << 60});
  DOCTEST_CHECK(read(npy("<u8", {0}, "")) == Ids{});
  DOCTEST_CHECK(read<float>(npy("<f4", {1, 2}, raw<float>({1.5f, -2e30f}))) ==
                std::vector<float>{1.5f, -2e30f});
  // float16 numbers: 1, -2, the largest, the smallest, the smallest normal, -0.
  DOCTEST_CHECK(read<float>(npy("<f2", {3, 2},
                    raw<std::uint16_t>({0x3C00, 0xC000, 0x7BFF, 0x0001, 0x0400, 0x8000}))) ==
                std::vector<float>{1, -2, 65504, 0x1p-24f, 0x1p-14f, 0});
}

DOCTEST_TEST_CASE("the pieces in which a file is read do not matter") {
  const std::string file = npy("<u4", {100'000}, raw<std::uint32_t>([] {
    std::vector<std::uint32_t> numbers;
    for (const auto n : sample::numbers(100'000, 1u << 31))
      numbers.push_back(static_cast<std::uint32_t>(n));
    return numbers;
  }()));
  const auto whole = read(file, {}, 1 << 20);
  DOCTEST_CHECK(whole.size() == 100'000);
  DOCTEST_CHECK(read(file, {}, 777) == whole);
  DOCTEST_CHECK(read(file, {}, 50'000) == whole);
}

DOCTEST_TEST_CASE("what is cut short, too long, negative or not finite is named with its place") {
  const auto good = llmc({20240520, 1, 3}, raw<std::uint16_t>({1, 2, 3}));
  for (std::size_t n = 0; n < good.size(); ++n)
    DOCTEST_CHECK(refused(good.substr(0, n), ArrayFormat::llmc).code == 65);
  DOCTEST_CHECK(refused(good.substr(0, 1029)).names("x.bin: cut short at byte 1029"));
  DOCTEST_CHECK(refused(good + "x").names("data after the 3 numbers"));
  DOCTEST_CHECK(refused("abc", ArrayFormat::nanogpt).names("cut short at byte 3"));
  DOCTEST_CHECK(refused("no magic").names("--format nanogpt"));
  DOCTEST_CHECK(refused(llmc({20240520, 2, 0}, "")).names("version 2"));
  DOCTEST_CHECK(refused(llmc({20240520, 1, -1}, "")).code == 65);
  DOCTEST_CHECK(refused(npy("<i4", {2}, raw<std::int32_t>({7, -7}))).names("number 1 is negative"));
  DOCTEST_CHECK(refused(npy(">u2", {1}, "ab")).names("type >u2"));
  DOCTEST_CHECK(refused(npy("<f8", {1, 1}, "abcdefgh")).names("type <f8"));
  DOCTEST_CHECK(refused(npy("<f4", {4}, "")).names("shape (4)"));
  DOCTEST_CHECK(refused(npy("<u2", {1, 2, 3}, "")).names("shape (1, 2, 3)"));
  DOCTEST_CHECK(refused(npy("<u2", {1, 0}, "")).names("has empty rows"));
  const auto nan = npy("<f4", {1, 2}, raw<float>({1, NAN}));
  DOCTEST_CHECK(thrown([&] { read<float>(nan); }).names("number 1 is not finite"));
  const auto infinite = npy("<f2", {1, 1}, raw<std::uint16_t>({0x7C00}));
  DOCTEST_CHECK(thrown([&] { read<float>(infinite); }).names("not finite"));
}

DOCTEST_TEST_CASE("a terabyte that is announced is not believed") {
  DOCTEST_CHECK(refused(npy("<u2", {1ull << 39}, "ab")).names("cut short"));
  DOCTEST_CHECK(refused(npy("<f4", {1ull << 20, 1ull << 18}, "")).code != 0);
  DOCTEST_CHECK(refused(llmc({20240801, 7, 2'000'000'000}, "ab")).names("cut short"));
  DOCTEST_CHECK(refused(npy("<u2", {1ull << 63}, "")).names("larger than any file"));
}

DOCTEST_TEST_CASE("what a shard writes in a format is read from it again") {
  DOCTEST_CHECK(rc::check([] {
    const auto vocabulary = *rc::gen::element<std::uint64_t>(200, 50'257, 128'256);
    const auto n = *rc::gen::inRange<std::size_t>(0, 3000);
    const auto numbers = sample::numbers(n, vocabulary);
    const auto bytes = sample::write({sample::ids(vocabulary), numbers, {}});
    for (const auto format : {ArrayFormat::llmc, ArrayFormat::nanogpt, ArrayFormat::npy}) {
      if (format == ArrayFormat::nanogpt && vocabulary > 65'536) continue;
      RC_ASSERT(read(exported(bytes, format), format, 100) == numbers);
    }
  }));
  const auto vectors = sample::write_vectors(2, {1.5f, -2, 0, 4});
  DOCTEST_CHECK(
      read<float>(exported(vectors, ArrayFormat::npy)) == std::vector<float>{1.5f, -2, 0, 4});
}

DOCTEST_TEST_CASE("a format refuses what it cannot hold") {
  const auto wide = sample::write({sample::ids(128'256), {1}, {}});
  DOCTEST_CHECK(thrown([&] { exported(wide, ArrayFormat::nanogpt); }).code == 64);
  const auto order = sample::write({sample::order(shard::Dtype::u64, 9), {1}, {}});
  DOCTEST_CHECK(thrown([&] { exported(order, ArrayFormat::llmc); }).code == 64);
  const auto vectors = sample::write_vectors(2, {1, 2});
  DOCTEST_CHECK(thrown([&] { exported(vectors, ArrayFormat::llmc); }).names("use npy"));
}
