// No byte can change, be added or be removed unnoticed.

#include <cstring>

#include "sample.h"
#include "shard/dataset.h"
#include "shard/documents_codec.h"
#include "shard/header.h"
#include "shard/layout.h"
#include "shard/zstd_frame.h"

#include <doctest/doctest.h>

namespace {

void read_through(std::span<const std::byte> bytes) {
  core::MemorySource source(bytes, "x.shard.zst");
  shard::verify(source);
}

// Opens for random access and returns the raw elements.
std::vector<std::byte> read_at_random(std::span<const std::byte> bytes) {
  const auto file = sample::open(bytes);
  std::vector<std::byte> all(file.size() * shard::size_of(file.header().dtype));
  file.read(0, std::span(all));
  return all;
}

}  // namespace

DOCTEST_TEST_CASE("every byte flipped is found") {
  for (const auto& [kind, whole] : sample::of_every_form()) {
    DOCTEST_CAPTURE(kind);
    const auto elements = read_at_random(whole);
    for (std::size_t i = 0; i < whole.size(); ++i) {
      for (const int bit : {0, 3, 7}) {
        DOCTEST_CAPTURE(i);
        core::Bytes bytes = whole;
        bytes[i] ^= std::byte(1 << bit);
        const auto streamed = thrown([&] { read_through(bytes); });
        DOCTEST_REQUIRE(streamed.code == 65);
        DOCTEST_REQUIRE(sample::has(streamed.text, "x.shard.zst: "));
        // Random access may miss a bit without effect; it never returns other elements.
        std::vector<std::byte> random;
        const auto opened = thrown([&] { random = read_at_random(bytes); });
        DOCTEST_REQUIRE((opened.code == 65 || random == elements));
      }
    }
  }
}

DOCTEST_TEST_CASE("every prefix is cut short") {
  for (const auto& [kind, whole] : sample::of_every_form()) {
    DOCTEST_CAPTURE(kind);
    for (std::size_t n = 0; n < whole.size(); ++n) {
      DOCTEST_CAPTURE(n);
      const auto prefix = std::span(whole).first(n);
      for (const auto& error :
          {thrown([&] { read_through(prefix); }), thrown([&] { sample::open(prefix); })}) {
        DOCTEST_REQUIRE(error.code == 65);
        DOCTEST_REQUIRE(sample::has(error.text, "cut short"));
      }
    }
  }
}

DOCTEST_TEST_CASE("a large shard cut between frames, within one, or of a frame too few") {
  const auto whole = sample::write({sample::ids(50'257), sample::numbers(300'000, 50'257), {}});
  for (const double share : {0.1, 0.5, 0.9}) {
    const auto prefix =
        std::span(whole).first(static_cast<std::size_t>(share * double(whole.size())));
    DOCTEST_CHECK(sample::has(thrown([&] { read_through(prefix); }).text, "cut short"));
    DOCTEST_CHECK(sample::has(thrown([&] { sample::open(prefix); }).text, "cut short"));
  }
}

DOCTEST_TEST_CASE("bytes after the end are found, and say what joins shards") {
  for (const auto& [kind, whole] : sample::of_every_form()) {
    DOCTEST_CAPTURE(kind);
    core::Bytes one = whole, two = whole;
    one.push_back(std::byte{0});
    two.insert(two.end(), whole.begin(), whole.end());
    for (const auto& bytes : {one, two}) {
      for (const auto& error :
          {thrown([&] { read_through(bytes); }), thrown([&] { sample::open(bytes); })}) {
        DOCTEST_CHECK(error.code == 65);
        DOCTEST_CHECK(sample::has(error.text, "use shard merge"));
      }
    }
  }
}

DOCTEST_TEST_CASE("an unknown version is refused and both are named") {
  auto bytes = sample::of_each_kind()[0].second;
  bytes[16] = std::byte{9};
  for (const auto& error :
      {thrown([&] { read_through(bytes); }), thrown([&] { sample::open(bytes); })}) {
    DOCTEST_CHECK(error.code == 65);
    DOCTEST_CHECK(sample::has(error.text, "version 9"));
    DOCTEST_CHECK(sample::has(error.text, "version 1"));
  }
}

DOCTEST_TEST_CASE("what is no shard is told so") {
  core::Bytes zstd;
  shard::compress_frame(
      shard::make_compress_context().get(), std::as_bytes(std::span("text", 4)), zstd);
  const std::string text = "It was a bright cold day in April";
  DOCTEST_CHECK(sample::has(thrown([&] { read_through(zstd); }).text, "zstd"));
  DOCTEST_CHECK(sample::has(
      thrown([&] { sample::open(std::as_bytes(std::span(text.data(), text.size()))); }).text,
      "not a shard, but text; encode a text with: tokenize -t TOKENIZER"));
  const std::string table = std::string("PAR1\x15\x04") + std::string(300, '\0');
  DOCTEST_CHECK(sample::has(
      thrown([&] { sample::open(std::as_bytes(std::span(table.data(), table.size()))); }).text,
      "not a shard, but Parquet, not text; tokenize --format parquet reads such files"));
}

DOCTEST_TEST_CASE("sizes beyond all bounds are refused, with checksums that are right") {
  namespace layout = shard::layout;
  const auto whole = sample::of_each_kind()[0].second;
  const auto header_bytes = 8 + layout::get<std::uint32_t>(whole, 4);
  // Changes a number of the header and repairs the checksum after it.
  const auto with_header = [&](std::size_t at, auto number) {
    core::Bytes bytes = whole;
    std::memcpy(bytes.data() + at, &number, sizeof number);
    const auto hash = core::hash64(std::span(bytes).first(header_bytes - 8));
    std::memcpy(bytes.data() + header_bytes - 8, &hash, sizeof hash);
    return thrown([&] { read_through(bytes); }).code;
  };
  DOCTEST_CHECK(with_header(24, std::uint64_t{1} << 40) == 65);    // tokenizer of 1 TB
  DOCTEST_CHECK(with_header(24, std::uint64_t{200} << 20) == 65);  // more than the file has
  DOCTEST_CHECK(with_header(20, std::uint32_t{0xffffffff}) == 65);
  DOCTEST_CHECK(with_header(4, std::uint32_t{0xffffffff}) == 65);

  // The trailer: elements, documents, sizes.
  const auto file = sample::open(whole);
  const std::size_t table_bytes = 17 + 8 * layout::get<std::uint32_t>(whole, whole.size() - 9);
  const std::size_t table = whole.size() - table_bytes;
  const std::size_t trailer = table - layout::get<std::uint32_t>(whole, whole.size() - 9 - 8);
  const auto with_trailer = [&](std::size_t at, auto number) {
    core::Bytes bytes = whole;
    std::memcpy(bytes.data() + trailer + at, &number, sizeof number);
    const auto hash = core::hash64(std::span(bytes).subspan(trailer, table - 8 - trailer));
    std::memcpy(bytes.data() + table - 8, &hash, sizeof hash);
    return std::max(
        thrown([&] { read_through(bytes); }).code, thrown([&] { sample::open(bytes); }).code);
  };
  DOCTEST_CHECK(layout::get<std::uint64_t>(whole, trailer + 16) == 200);
  DOCTEST_CHECK(with_trailer(16, std::uint64_t{1} << 40) == 65);
  DOCTEST_CHECK(with_trailer(16, std::uint64_t{201}) == 65);
  DOCTEST_CHECK(with_trailer(24, std::uint64_t{1} << 40) == 65);
  DOCTEST_CHECK(with_trailer(24, std::uint64_t{3}) == 65);
  DOCTEST_CHECK(with_trailer(24, std::uint64_t{5}) == 65);
  DOCTEST_CHECK(with_trailer(32, std::uint32_t{0xffffffff}) == 65);
  DOCTEST_CHECK(with_trailer(36, std::uint32_t{0x7fffffff}) == 65);
  DOCTEST_CHECK(with_trailer(40, std::uint64_t{0}) == 65);  // the fingerprint is no longer correct

  // A seek table that claims 2^27 frames.
  core::Bytes bytes = whole;
  const std::uint32_t many = 1u << 27;
  std::memcpy(bytes.data() + bytes.size() - 9, &many, sizeof many);
  DOCTEST_CHECK(thrown([&] { sample::open(bytes); }).code == 65);
}

DOCTEST_TEST_CASE("elements beyond the vocabulary are found though every checksum is right") {
  // A writer with vocabulary 300 whose header then says 299, with repaired checksums.
  const sample::Data data{sample::ids(300), {0, 299, 5}, {}};
  core::Bytes bytes = sample::write(data);
  const std::size_t header_bytes = 8 + shard::layout::get<std::uint32_t>(bytes, 4);
  auto other = data.header;
  other.vocabulary = 299;
  const auto header = shard::layout::encode_header(other);
  DOCTEST_REQUIRE(header.size() == header_bytes);
  std::copy(header.begin(), header.end(), bytes.begin());
  DOCTEST_CHECK(sample::has(thrown([&] { read_through(bytes); }).text, "299"));
}

DOCTEST_TEST_CASE("elements too many or too few are found though every checksum is right") {
  namespace layout = shard::layout;
  // Header and data of one shard, trailer of another with more elements, with matching hashes.
  const auto parts = [](std::size_t n) {
    const auto bytes = sample::write({sample::ids(300), sample::numbers(n, 300), {}});
    const std::size_t n_frames = layout::get<std::uint32_t>(bytes, bytes.size() - 9);
    const std::size_t table = bytes.size() - 17 - 8 * n_frames;
    const std::size_t trailer = table - layout::get<std::uint32_t>(bytes, bytes.size() - 17);
    return std::tuple{core::Bytes(bytes.begin(), bytes.begin() + std::ptrdiff_t(trailer)),
        core::Bytes(bytes.begin() + std::ptrdiff_t(trailer), bytes.begin() + std::ptrdiff_t(table)),
        core::Bytes(bytes.begin() + std::ptrdiff_t(table), bytes.end())};
  };
  const auto join = [&](std::size_t n_data, std::size_t n_trailer) {
    auto [bytes, ignored, table] = parts(n_data);
    auto trailer = std::get<1>(parts(n_trailer));
    const auto put = [](core::Bytes& out, std::size_t at, auto number) {
      std::memcpy(out.data() + at, &number, sizeof number);
    };
    const auto hash = core::hash128(bytes);
    put(trailer, 72, hash.low);
    put(trailer, 80, hash.high);
    put(trailer, trailer.size() - 8, core::hash64(std::span(trailer).first(trailer.size() - 8)));
    put(table, table.size() - 17, static_cast<std::uint32_t>(trailer.size()));
    for (const auto& part : {trailer, table}) bytes.insert(bytes.end(), part.begin(), part.end());
    return bytes;
  };
  read_through(join(100, 100));
  for (const std::size_t other : {99, 101}) {
    const auto bytes = join(100, other);
    DOCTEST_CHECK(thrown([&] { read_through(bytes); }).code == 65);
    DOCTEST_CHECK(thrown([&] { sample::open(bytes); }).code == 65);
  }
}

DOCTEST_TEST_CASE("documents that are all alike are bounded by the bytes that are there") {
  // Correct checksums, a few kilobytes, and more documents than they could hold.
  constexpr std::uint64_t kDocuments = 5'000'000;
  const shard::Header header = sample::ids(256);
  shard::layout::TrailerFrame trailer;
  shard::DocumentsEncoder documents;
  core::Hasher nothing;
  const auto digest = nothing.digest();
  for (std::uint64_t i = 0; i < kDocuments; ++i) {
    documents.append(0, 0, 0);
    trailer.content.append(digest, 0, 0, 0);
  }
  core::Bytes bytes = shard::layout::encode_header(header);
  const std::uint64_t offset = bytes.size();
  trailer.fingerprint = shard::fingerprint(header, trailer.content);
  trailer.file_hash = core::hash128(bytes);
  trailer.boundaries = documents.finish();
  trailer.provenance = "[]";
  // Accepted as it is if there are enough bytes before it.
  const auto frame = shard::layout::encode_trailer(trailer, kDocuments);
  bytes.insert(bytes.end(), frame.begin(), frame.end());
  const auto table = shard::layout::encode_seek_table(std::vector<shard::layout::FrameSize>{
      {static_cast<std::uint32_t>(offset), 0}, {static_cast<std::uint32_t>(frame.size()), 0}});
  bytes.insert(bytes.end(), table.begin(), table.end());
  DOCTEST_CHECK(bytes.size() < 20'000);
  for (const auto& error :
      {thrown([&] { read_through(bytes); }), thrown([&] { sample::open(bytes); })}) {
    DOCTEST_CHECK(error.code == 65);
    DOCTEST_CHECK(sample::has(error.text, "the trailer's sizes"));
  }
  // What readers refuse is not written.
  const auto refused = thrown([&] { shard::layout::encode_trailer(trailer, offset); });
  DOCTEST_CHECK(refused.code == 65);
  DOCTEST_CHECK(sample::has(refused.text, "write several shards"));
}

DOCTEST_TEST_CASE("marks that are all alike are bounded by the bytes that are there") {
  // Correct checksums and an eighth of a bit per mark.
  constexpr std::uint64_t kMarks = 5'000'000;
  shard::Header header = sample::ids(256);
  header.marked = true;
  std::vector<shard::Span> marks;
  for (std::uint64_t i = 0; i < kMarks; ++i) marks.push_back({2 * i, 2 * i + 1});
  shard::layout::TrailerFrame trailer;
  shard::DocumentsEncoder documents;
  documents.append(2 * kMarks, 0, 0, {}, &marks);
  trailer.content.append(core::Hasher().digest(), 2 * kMarks, 0, 0, marks);
  trailer.marks = kMarks;
  trailer.boundaries = documents.finish();
  trailer.provenance = "[]";
  trailer.fingerprint = shard::fingerprint(header, trailer.content);
  const auto frame = shard::layout::encode_trailer(trailer, kMarks);
  shard::Content content;
  DOCTEST_CHECK(
      shard::layout::decode_trailer(frame, header, kMarks, "x", content).documents.marks == marks);
  DOCTEST_CHECK(
      thrown([&] { shard::layout::decode_trailer(frame, header, 100, "x", content); }).code == 65);
  DOCTEST_CHECK(thrown([&] { shard::layout::encode_trailer(trailer, 100); }).code == 65);
}
