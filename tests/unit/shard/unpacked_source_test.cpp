// zstd, gzip, xz and bzip2 are decompressed. Damaged or truncated files and shards are refused.

#include "shard/unpacked_source.h"

#include <bzlib.h>
#include <lzma.h>
#include <zlib.h>

#include "shard/zstd_frame.h"
#include "unit/shard/sample.h"
#include "unit/thrown.h"

#include <doctest/doctest.h>

namespace {

std::string zstd(const std::string& text) {
  const auto context = shard::make_compress_context();
  core::Bytes out;
  shard::compress_frame(context.get(), std::as_bytes(std::span(text)), out);
  return {reinterpret_cast<const char*>(out.data()), out.size()};
}

std::string gzip(const std::string& text) {
  z_stream stream{};
  DOCTEST_REQUIRE(::deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string in = text, out(text.size() + 1000, 0);
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  DOCTEST_REQUIRE(::deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(out.size() - stream.avail_out);
  ::deflateEnd(&stream);
  return out;
}

std::string xz(const std::string& text) {
  std::string out(text.size() + 1000, 0);
  std::size_t size = 0;
  DOCTEST_REQUIRE(::lzma_easy_buffer_encode(0, LZMA_CHECK_CRC32, nullptr,
                      reinterpret_cast<const std::uint8_t*>(text.data()), text.size(),
                      reinterpret_cast<std::uint8_t*>(out.data()), &size, out.size()) == LZMA_OK);
  out.resize(size);
  return out;
}

std::string bzip2(const std::string& text) {
  std::string in = text, out(text.size() + text.size() / 50 + 1000, 0);
  auto size = static_cast<unsigned>(out.size());
  DOCTEST_REQUIRE(::BZ2_bzBuffToBuffCompress(out.data(), &size, in.data(),
                      static_cast<unsigned>(in.size()), 1, 0, 0) == BZ_OK);
  out.resize(size);
  return out;
}

// Returns the contents of a file, read in pieces of `piece` bytes.
std::string held(const std::string& file, std::size_t piece = 1000) {
  shard::UnpackedSource source(std::make_unique<core::MemorySource>(file, "x"));
  std::string all, part(piece, 0);
  for (std::size_t n = 1; n > 0; all.append(part, 0, n))
    n = source.read(std::as_writable_bytes(std::span(part)));
  DOCTEST_CHECK(source.file_bytes() == file.size());
  return all;
}

// Longer than the buffer, even when compressed.
std::string long_text() {
  std::string text;
  for (const auto number : sample::numbers(200000, 1000)) text += std::to_string(number) + " ";
  return text;
}

}  // namespace

DOCTEST_TEST_CASE("bytes that are not compressed are what they are") {
  const std::vector<std::string> files{"", "a", std::string("\x1f\x8b", 2), "\x1f\x8bzz", "(\xb5",
      "Once...", "\x28\xb5\x2f and what is no frame", long_text()};
  for (const auto& file : files) DOCTEST_CHECK(held(file) == file);
}

DOCTEST_TEST_CASE("compressed files are unpacked, frame after frame, in pieces of any size") {
  const std::string skipped("\x50\x2a\x4d\x18\x03\0\0\0abc", 11);
  const std::string text = long_text();
  for (const auto& pack : {zstd, gzip, xz, bzip2}) {
    DOCTEST_CHECK(held(pack("")).empty());
    DOCTEST_CHECK(held(pack("one ") + pack("") + pack("two")) == "one two");
    DOCTEST_CHECK(held(pack("one ") + pack("two"), 1) == "one two");
    DOCTEST_CHECK(held(pack(text) + pack(text), 77777) == text + text);
    // A short file that decompresses to much more than a piece.
    DOCTEST_CHECK(held(pack(std::string(1 << 20, 'a'))) == std::string(1 << 20, 'a'));
  }
  DOCTEST_CHECK(held(skipped + zstd("one ") + skipped + zstd("two")) == "one two");
}

DOCTEST_TEST_CASE("compressed bytes that are damaged or cut short are refused") {
  for (const auto& pack : {zstd, gzip, xz, bzip2}) {
    const std::string file = pack("It was the best of times, it was the worst of times.");
    for (std::size_t n = 10; n < file.size(); ++n) {
      const auto error = thrown([&] { held(file.substr(0, n)); });
      DOCTEST_CHECK(error.code == 65);
      DOCTEST_CHECK(error.names("x: cut short"));
    }
    DOCTEST_CHECK(thrown([&] { held(file + "rubbish"); }).code == 65);
    std::string flipped = file;
    flipped[file.size() - 4] = static_cast<char>(flipped[file.size() - 4] ^ 1);
    DOCTEST_CHECK(thrown([&] { held(flipped); }).names("cannot be decompressed"));
  }
}

DOCTEST_TEST_CASE("xz: zeros in fours may follow each stream, as xz reads them, and nothing else") {
  const std::string file = xz("one "), long_file = xz(long_text()), fours(200000, 0);
  for (const std::size_t n : {4, 8, 200000}) {
    const auto padding = fours.substr(0, n);
    DOCTEST_CHECK(held(file + padding) == "one ");
    for (const std::size_t piece : {1, 1000})
      DOCTEST_CHECK(held(file + padding + file + padding + padding, piece) == "one one ");
    DOCTEST_CHECK(held(long_file + padding + long_file) == long_text() + long_text());
  }
  for (const std::size_t n : {1, 2, 3, 5})
    for (const auto& rest : {std::string(), file})
      DOCTEST_CHECK(thrown([&] { held(file + fours.substr(0, n) + rest); }).names("damaged data"));
  DOCTEST_CHECK(thrown([&] { held(file + fours + "x"); }).names("cut short"));
  DOCTEST_CHECK(thrown([&] { held(file + fours + gzip("two, and more")); }).names("damaged data"));
  DOCTEST_CHECK(thrown([&] { held(file + file.substr(0, 1)); }).names("cut short"));
}

DOCTEST_TEST_CASE("zeros behind the last member are passed over to the end, and nothing else is") {
  for (const auto& pack : {gzip, bzip2}) {
    const std::string file = pack("one "), zeros(200000, 0);
    DOCTEST_CHECK(held(file + zeros) == "one ");
    DOCTEST_CHECK(held(file + file + zeros.substr(0, 1), 1) == "one one ");
    DOCTEST_CHECK(thrown([&] { held(file + zeros + "x"); }).names("neither compressed nor zeros"));
    DOCTEST_CHECK(thrown([&] { held(file + zeros + file); }).names("neither compressed nor zeros"));
    DOCTEST_CHECK(thrown([&] { held(file + file.substr(0, 1)); }).names("cut short"));
  }
}

DOCTEST_TEST_CASE("what a frame looks back at has a bound") {
  const auto with = [](const std::string& file, std::uint64_t memory) {
    shard::UnpackedSource source(std::make_unique<core::MemorySource>(file, "x"), memory);
    return core::read_text(source);
  };
  // A frame that claims a window of 1 << (10 + n) bytes, and a last raw block "a".
  const auto frame = [](int n) {
    return std::string("\x28\xb5\x2f\xfd\0", 5) + static_cast<char>(n << 3) +
           std::string("\x09\0\0a", 4);
  };
  DOCTEST_CHECK(with(frame(17), shard::kUnpackMemory) == "a");
  DOCTEST_CHECK(thrown([&] { with(frame(18), shard::kUnpackMemory); }).names("--decode-memory 2G"));
  DOCTEST_CHECK(with(frame(18), std::uint64_t{256} << 20) == "a");
  DOCTEST_CHECK(with(frame(21), std::uint64_t{2} << 30) == "a");
  DOCTEST_CHECK(thrown([&] { with(frame(21), (std::uint64_t{2} << 30) - 1); }).code == 65);
  DOCTEST_CHECK(with(xz("a"), shard::kUnpackMemory) == "a");
  DOCTEST_CHECK(thrown([&] { with(xz("a"), 100 << 10); }).names("decompression needs 1 MiB"));
}

DOCTEST_TEST_CASE("a shard is no text, though it is zstd") {
  sample::Data data;
  data.header = sample::ids(100);
  data.elements = sample::numbers(50, 100);
  const core::Bytes bytes = sample::write(data);
  const std::string file(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto error = thrown([&] { held(file); });
  DOCTEST_CHECK(error.code == 65);
  DOCTEST_CHECK(error.names("--decode"));
}
