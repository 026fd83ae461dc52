#include "shard/layout.h"

#include "core/plain_text.h"
#include "shard/documents_codec.h"

namespace shard::layout {
namespace {

constexpr std::size_t kHeaderFixedBytes = 32, kTrailerFixedBytes = 88, kHashBytes = 8;

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string how_to_tokenize(const std::string& name) {
  return fmt::format("; encode a text with: tokenize -t TOKENIZER {} -o X.shard.zst",
      name == "stdin" ? "-" : name);
}

void put_hash(core::Bytes& frame) {
  const auto size = static_cast<std::uint64_t>(frame.size()) + kHashBytes - kFrameHeadBytes;
  if (size > UINT32_MAX)
    core::bad_data(
        "too many documents for one shard (their boundaries take {} bytes, 4 GiB at most); "
        "write several shards",
        size);
  const auto size32 = static_cast<std::uint32_t>(size);
  std::memcpy(frame.data() + 4, &size32, sizeof size32);
  put(frame, core::hash64(frame));
}

void check_hash(std::span<const std::byte> frame, std::uint64_t offset, std::string_view what,
    const std::string& name) {
  const std::size_t end = frame.size() - kHashBytes;
  if (core::hash64(frame.first(end)) != get<std::uint64_t>(frame, end)) damaged(name, offset, what);
}

core::Digest get_digest(std::span<const std::byte> in, std::size_t at) {
  return {.high = get<std::uint64_t>(in, at + 8), .low = get<std::uint64_t>(in, at)};
}

std::string decompress_text(
    std::span<const std::byte> in, std::size_t size, const std::string& name) {
  if (size == 0 && in.empty()) return {};
  if (ZSTD_getFrameContentSize(in.data(), in.size()) != size) damaged(name, 0, "the tokenizer");
  std::string text(size, '\0');
  if (ZSTD_decompress(text.data(), text.size(), in.data(), in.size()) != size)
    damaged(name, 0, "the tokenizer");
  return text;
}

}  // namespace

void put(core::Bytes& out, const core::Digest& digest) {
  put(out, digest.low);
  put(out, digest.high);
}

void put(core::Bytes& out, std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

core::Bytes encode_header(const Header& header) {
  const std::string json = header_json(header);
  core::Bytes frame, tokenizer;
  if (!header.tokenizer.empty()) {
    const auto context = make_compress_context();
    compress_frame(context.get(),
        std::as_bytes(std::span(header.tokenizer.data(), header.tokenizer.size())), tokenizer);
  }
  if (header.tokenizer.size() > kMaxHeaderBytes || tokenizer.size() > kMaxHeaderBytes / 2)
    core::bad_data("the tokenizer is too large for a shard ({} bytes)", kMaxHeaderBytes);
  put_all(frame, kHeaderMagic, std::uint32_t{0}, kHeaderName, kVersion,
      static_cast<std::uint32_t>(json.size()), static_cast<std::uint64_t>(header.tokenizer.size()),
      json);
  frame.insert(frame.end(), tokenizer.begin(), tokenizer.end());
  put_hash(frame);
  return frame;
}

std::size_t check_start(std::span<const std::byte> start, const std::string& name) {
  if (start.empty() && name == "stdin") core::bad_data("no FILE given and stdin is empty");
  if (start.empty()) core::bad_data("{}: is empty: no text and no shard, or cut short", name);
  core::Bytes expected;
  put(expected, kHeaderMagic);
  const auto common = std::min(start.size(), expected.size());
  if (!std::equal(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(common),
          start.begin())) {
    const bool zstd = start.size() >= 4 && get<std::uint32_t>(start, 0) == kZstdMagic;
    // What the file is, where its beginning says so; zstd's may be another shard's.
    const std::string what = zstd ? "" : core::what_is_no_text(text_of(start));
    if (!what.empty()) core::bad_data("{}: not a shard, but {}", name, what);
    const std::string kind = zstd ? ", but other data compressed by zstd"
                             : core::begins_as_text(text_of(start)) ? ", but text"
                                                                    : " and not text";
    core::bad_data(
        "{}: not a shard{}{}", name, kind, kind.front() == ',' ? how_to_tokenize(name) : "");
  }
  if (start.size() < kVersionEnd) cut_short(name, start.size(), "the header");
  if (text_of(start.subspan(kFrameHeadBytes, kHeaderName.size())) != kHeaderName)
    core::bad_data("{}: not a shard", name);
  const auto version = get<std::uint32_t>(start, kVersionEnd - 4);
  if (version != kVersion)
    core::bad_data("{}: shard format version {} is not supported; this program reads version {}",
        name, version, kVersion);
  const auto size = get<std::uint32_t>(start, 4);
  if (size > kMaxHeaderBytes || size < kHeaderFixedBytes + kHashBytes - kFrameHeadBytes)
    damaged(name, 4, "the header's size");
  return kFrameHeadBytes + size;
}

Header decode_header(std::span<const std::byte> frame, const std::string& name) {
  check_hash(frame, 0, "the header", name);
  const auto json_bytes = get<std::uint32_t>(frame, kVersionEnd);
  const auto tokenizer_bytes = get<std::uint64_t>(frame, kVersionEnd + 4);
  const std::size_t room = frame.size() - kHeaderFixedBytes - kHashBytes;
  if (json_bytes > room || tokenizer_bytes > kMaxHeaderBytes) damaged(name, 20, "the header");
  Header header = header_from_json(text_of(frame.subspan(kHeaderFixedBytes, json_bytes)), name);
  header.tokenizer =
      decompress_text(frame.subspan(kHeaderFixedBytes + json_bytes, room - json_bytes),
          static_cast<std::size_t>(tokenizer_bytes), name);
  return header;
}

core::Bytes encode_trailer(const TrailerFrame& trailer, std::uint64_t offset) {
  core::Bytes frame;
  put_all(frame, kTrailerMagic, std::uint32_t{0}, kTrailerName, trailer.content.elements,
      trailer.content.documents, static_cast<std::uint32_t>(trailer.boundaries.size()),
      static_cast<std::uint32_t>(trailer.provenance.size()), trailer.content.data.value(),
      trailer.fingerprint, trailer.file_hash);
  frame.insert(frame.end(), trailer.boundaries.begin(), trailer.boundaries.end());
  put(frame, trailer.provenance);
  frame.insert(frame.end(), trailer.names.begin(), trailer.names.end());
  put_hash(frame);
  const auto most = most_documents(offset + frame.size());
  const auto expect = [&](std::uint64_t n, const char* what) {
    if (n > most)
      core::bad_data(
          "{} {}, nearly all equal, are too many for a shard of this size, which has at most {}; "
          "write several shards",
          n, what, most);
  };
  expect(trailer.content.documents, "documents");
  expect(trailer.marks, "marks");
  return frame;
}

Trailer decode_trailer(std::span<const std::byte> frame, const Header& header, std::uint64_t offset,
    const std::string& name, Content& content) {
  if (frame.size() < kTrailerFixedBytes + kHashBytes) damaged(name, offset, "the trailer");
  check_hash(frame, offset, "the trailer", name);
  if (text_of(frame.subspan(kFrameHeadBytes, kTrailerName.size())) != kTrailerName)
    damaged(name, offset, "the trailer");
  Trailer trailer;
  trailer.elements = get<std::uint64_t>(frame, 16);
  const auto n_documents = get<std::uint64_t>(frame, 24);
  const std::uint64_t boundary_bytes = get<std::uint32_t>(frame, 32);
  const std::uint64_t provenance_bytes = get<std::uint32_t>(frame, 36);
  const Chain data = Chain::from(get_digest(frame, 40));
  trailer.fingerprint = get_digest(frame, 56);
  trailer.file_hash = get_digest(frame, 72);
  const std::uint64_t room = frame.size() - kTrailerFixedBytes - kHashBytes;
  if (boundary_bytes + provenance_bytes > room || trailer.elements > kMaxElements ||
      n_documents > most_documents(offset + frame.size()) || trailer.elements % header.width != 0 ||
      (header.kind == Kind::pairs && n_documents % 2 != 0))
    damaged(name, offset, "the trailer's sizes");

  trailer.documents =
      decode_documents(frame.subspan(kTrailerFixedBytes, boundary_bytes), n_documents,
          trailer.elements, header.marked, most_documents(offset + frame.size()), offset, name);
  content = {};
  std::uint64_t start = 0;
  for (std::size_t i = 0; i < trailer.documents.size(); ++i) {
    const std::uint64_t end = trailer.documents.end[i];
    if (end % header.width != 0) damaged(name, offset, "the document boundaries");
    content.append({}, end - start, trailer.documents.bytes[i], trailer.documents.words[i],
        marks_within(trailer.documents, start, end));
    start = end;
  }
  content.data = data;
  if (fingerprint(header, content) != trailer.fingerprint) damaged(name, offset, "the fingerprint");

  const auto text = text_of(frame.subspan(kTrailerFixedBytes + boundary_bytes, provenance_bytes));
  const auto provenance = core::parse_ordered_json(text, name + ": provenance", 32);
  if (!provenance.is_array()) damaged(name, offset, "the provenance");
  for (const auto& entry : provenance) trailer.provenance.push_back(entry);
  if (const auto names = room - boundary_bytes - provenance_bytes; names > 0)
    trailer.documents.names =
        decode_names(frame.last(names + kHashBytes).first(names), n_documents, offset, name);
  return trailer;
}

core::Bytes encode_seek_table(std::span<const FrameSize> frames) {
  if (frames.size() > 0x8000000) core::bad_data("too many elements for one shard; write several");
  core::Bytes table;
  const auto n = static_cast<std::uint32_t>(frames.size());
  put_all(table, kSeekTableMagic, static_cast<std::uint32_t>(n * 8 + kSeekFooterBytes));
  for (const auto& frame : frames) put_all(table, frame.compressed, frame.raw);
  put_all(table, n, std::uint8_t{0}, kSeekFooterMagic);
  return table;
}

std::vector<FrameSize> decode_seek_table(
    std::span<const std::byte> table, std::uint64_t offset, const std::string& name) {
  std::vector<FrameSize> frames;
  if (table.size() >= kFrameHeadBytes + kSeekFooterBytes) {
    frames.resize((table.size() - kFrameHeadBytes - kSeekFooterBytes) / 8);
    for (std::size_t i = 0; i < frames.size(); ++i)
      frames[i] = {get<std::uint32_t>(table, kFrameHeadBytes + 8 * i),
          get<std::uint32_t>(table, kFrameHeadBytes + 8 * i + 4)};
  }
  const auto expected = encode_seek_table(frames);
  if (!std::ranges::equal(expected, table)) damaged(name, offset, "the seek table");
  return frames;
}

void cut_short(const std::string& name, std::uint64_t offset, std::string_view where) {
  core::bad_data(
      "{}: cut short: it ends at byte {}, within {}; write or copy it again", name, offset, where);
}

void damaged(const std::string& name, std::uint64_t offset, std::string_view what) {
  core::bad_data("{}: corrupt at byte {}: checksum mismatch of {}", name, offset, what);
}

}  // namespace shard::layout
