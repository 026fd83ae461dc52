// zstd and gzip are unpacked; what is damaged, cut short or a shard is refused.

#include "shard/unpacked_source.h"

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

// What a file holds, read in pieces of `piece` bytes.
std::string held(const std::string& file, std::size_t piece = 1000) {
  shard::UnpackedSource source(std::make_unique<core::MemorySource>(file, "x"));
  std::string all, part(piece, 0);
  for (std::size_t n = 1; n > 0; all.append(part, 0, n))
    n = source.read(std::as_writable_bytes(std::span(part)));
  DOCTEST_CHECK(source.file_bytes() == file.size());
  return all;
}

// Longer than the buffer, packed too.
std::string long_text() {
  std::string text;
  for (const auto number : sample::numbers(200000, 1000)) text += std::to_string(number) + " ";
  return text;
}

}  // namespace

DOCTEST_TEST_CASE("bytes that are not compressed are what they are") {
  const std::vector<std::string> files{
      "",      "a",       std::string("\x1f\x8b", 2),          "\x1f\x8bzz",
      "(\xb5", "Once...", "\x28\xb5\x2f and what is no frame", long_text()};
  for (const auto& file : files) DOCTEST_CHECK(held(file) == file);
}

DOCTEST_TEST_CASE("zstd and gzip are unpacked, frame after frame, in pieces of any size") {
  const std::string skipped("\x50\x2a\x4d\x18\x03\0\0\0abc", 11);
  const std::string text = long_text();
  for (const auto& pack : {zstd, gzip}) {
    DOCTEST_CHECK(held(pack("")).empty());
    DOCTEST_CHECK(held(pack("one ") + pack("") + pack("two")) == "one two");
    DOCTEST_CHECK(held(pack("one ") + pack("two"), 1) == "one two");
    DOCTEST_CHECK(held(pack(text) + pack(text), 77777) == text + text);
    // A short file that unpacks to much more than a piece.
    DOCTEST_CHECK(held(pack(std::string(1 << 20, 'a'))) == std::string(1 << 20, 'a'));
  }
  DOCTEST_CHECK(held(skipped + zstd("one ") + skipped + zstd("two")) == "one two");
}

DOCTEST_TEST_CASE("compressed bytes that are damaged or cut short are refused") {
  for (const auto& pack : {zstd, gzip}) {
    const std::string file = pack("It was the best of times, it was the worst of times.");
    for (std::size_t n = 4; n < file.size(); ++n) {
      const auto error = thrown([&] { held(file.substr(0, n)); });
      DOCTEST_CHECK(error.code == 65);
      DOCTEST_CHECK(error.names("x: cut short"));
    }
    DOCTEST_CHECK(thrown([&] { held(file + "rubbish"); }).code == 65);
    std::string flipped = file;
    flipped[file.size() - 4] = static_cast<char>(flipped[file.size() - 4] ^ 1);
    DOCTEST_CHECK(thrown([&] { held(flipped); }).names("cannot be unpacked"));
  }
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
