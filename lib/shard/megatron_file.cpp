#include "shard/megatron_file.h"

#include <filesystem>

#include "core/path_kind.h"
#include "shard/layout.h"

namespace shard {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kMegatronMagic = "MMIDIDX\0\0"sv;
constexpr std::uint64_t kMegatronVersion = 1;
constexpr std::size_t kMegatronHeader = 34;
constexpr std::size_t kMegatronPiece = 1 << 13;  // numbers

struct MegatronType {
  std::string_view name;
  ArrayReader::Type type;
};
// The types by code; code 0 is invalid.
constexpr std::array<MegatronType, 9> kMegatronTypes = {
    {{}, {"uint8", {1, false, false}}, {"int8", {1, false, true}}, {"int16", {2, false, true}},
        {"int32", {4, false, true}}, {"int64", {8, false, true}}, {"float64", {8, true, false}},
        {"float32", {4, true, false}}, {"uint16", {2, false, false}}}};

core::Digest hash_of(const core::RandomSource& bytes) {
  core::SequentialSource source(bytes);
  core::Hasher hasher;
  core::Bytes piece(kMegatronPiece * 8);
  while (const std::size_t n = source.read(piece)) hasher.update(std::span(piece).first(n));
  return hasher.digest();
}

std::uint8_t megatron_code(const Header& header) {
  if (header.kind != Kind::tokens && header.kind != Kind::pairs)
    core::bad_usage("--output-format megatron: cannot store {}; use npy", name_of(header.kind));
  if (header.vocabulary > std::uint64_t{1} << 31)
    core::bad_usage(
        "--output-format megatron: stores ids below 2^31, not a vocabulary of {}; use npy",
        header.vocabulary);
  return header.dtype == Dtype::u8 ? 1 : header.dtype == Dtype::u16 ? 8 : 4;
}

// Writes numbers to a sink in pieces.
class NumberSink {
 public:
  explicit NumberSink(core::ByteSink& out) : out_(out) {}
  template <std::unsigned_integral T> void put(T number) {
    layout::put(piece_, number);
    if (piece_.size() >= kMegatronPiece * 8) flush();
  }
  void flush() {
    out_.write(piece_);
    piece_.clear();
  }

 private:
  core::ByteSink& out_;
  core::Bytes piece_;
};

// Calls `take` with the ids of each sequence; `ended` is true after each document.
template <class Take, class Ended>
void each_sequence(const Dataset& data, std::uint64_t most, const Take& take, const Ended& ended) {
  std::uint64_t at = 0;
  for (const std::uint64_t end : data.documents().end) {
    for (; at < end; at += std::min(end - at, most)) take(std::min(end - at, most));
    ended();
  }
}

}  // namespace

MegatronFiles megatron_files(const std::string& path) {
  const bool has_end = path.ends_with(".bin") || path.ends_with(".idx");
  const std::string name = has_end ? path.substr(0, path.size() - 4) : path;
  return {name + ".bin", name + ".idx"};
}

std::optional<MegatronFiles> megatron_input(
    const std::string& path, std::optional<ArrayFormat> format) {
  if (format == ArrayFormat::megatron) {
    if (path == "-") core::bad_usage("--format megatron: reads two files, not stdin; name them");
    return megatron_files(path);
  }
  if (format || !core::is_regular_file(path) || !core::begins_with(path, kMegatronMagic))
    return std::nullopt;
  if (!path.ends_with(".idx"))
    core::bad_data("{}: is an index of Megatron; rename it to NAME.idx, beside its NAME.bin", path);
  return megatron_files(path);
}

template <class T> T MegatronIndex::Column<T>::next() {
  if (at_ == piece_.size()) {
    piece_.resize(std::min<std::uint64_t>(left_, kMegatronPiece));
    bytes_->read_at(offset_, std::as_writable_bytes(std::span(piece_)));
    offset_ += piece_.size() * sizeof(T);
    left_ -= piece_.size();
    at_ = 0;
  }
  return piece_.at(at_++);
}

MegatronIndex::MegatronIndex(const core::RandomSource& bytes) : bytes_(bytes) {
  read_header();
  rewind();
  while (const auto n = next_document()) elements_ += *n;
  rewind();
  hash_ = hash_of(bytes);
}

void MegatronIndex::read_header() {
  const std::string& name = bytes_.name();
  std::array<std::byte, kMegatronHeader> header{};
  const std::size_t there = std::min<std::uint64_t>(bytes_.size(), header.size());
  bytes_.read_at(0, std::span(header).first(there));
  const std::string_view text(reinterpret_cast<const char*>(header.data()), there);
  if (!text.starts_with(kMegatronMagic)) core::bad_data("{}: not an index of Megatron", name);
  if (there < header.size()) core::bad_data("{}: cut short in its header", name);
  const auto version = layout::get<std::uint64_t>(header, 9);
  if (version != kMegatronVersion)
    core::bad_data("{}: version {} of Megatron's format is not supported; version {} is", name,
        version, kMegatronVersion);
  const auto code = layout::get<std::uint8_t>(header, 17);
  if (code == 0 || code >= kMegatronTypes.size())
    core::bad_data("{}: ids of unknown type {}; types are 1 to 8", name, code);
  type_ = kMegatronTypes.at(code).type;
  if (type_.is_float)
    core::bad_data("{}: numbers of type {} ({}) cannot be ids; ids are integers", name, code,
        kMegatronTypes.at(code).name);
  sequences_ = layout::get<std::uint64_t>(header, 18);
  boundaries_ = layout::get<std::uint64_t>(header, 26);
  const std::uint64_t rest = bytes_.size() - header.size();
  const bool fits = sequences_ <= rest / 12 && boundaries_ <= (rest - 12 * sequences_) / 8;
  const std::uint64_t behind = fits ? rest - 12 * sequences_ - 8 * boundaries_ : 0;
  if (!fits)
    core::bad_data("{}: cut short: {} bytes are too few for {} sequences and {} boundaries", name,
        bytes_.size(), sequences_, boundaries_);
  if (behind == sequences_ && behind > 0)
    core::bad_data("{}: is multimodal (a mode for each sequence); only text is supported", name);
  if (behind > 0) core::bad_data("{}: has {} bytes after its end", name, behind);
  if (boundaries_ == 0) core::bad_data("{}: lists no documents", name);
}

void MegatronIndex::rewind() {
  lengths_ = {bytes_, kMegatronHeader, sequences_};
  begins_ = {bytes_, kMegatronHeader + 4 * sequences_, sequences_};
  starts_ = {bytes_, kMegatronHeader + 12 * sequences_, boundaries_};
  document_ = sequence_ = byte_ = 0;
  if (const auto first = starts_.next(); first != 0)
    core::bad_data("{}: document 0 begins at sequence {}, not 0", bytes_.name(), first);
}

std::optional<std::uint64_t> MegatronIndex::next_document() {
  const std::string& name = bytes_.name();
  if (document_ == documents()) {
    if (sequence_ != sequences_)
      core::bad_data("{}: sequences {} to {} have no document", name, sequence_, sequences_ - 1);
    return std::nullopt;
  }
  const auto end = static_cast<std::uint64_t>(starts_.next());
  if (end < sequence_ || end > sequences_)
    core::bad_data("{}: document {} ends at sequence {}, not between {} and {}", name, document_,
        static_cast<std::int64_t>(end), sequence_, sequences_);
  std::uint64_t elements = 0;
  for (; sequence_ < end; ++sequence_) {
    const std::int32_t length = lengths_.next();
    if (length < 0)
      core::bad_value(
          name, fmt::format("the length of sequence {}", sequence_), length, "0 and more");
    const std::int64_t begin = begins_.next();
    if (static_cast<std::uint64_t>(begin) != byte_)
      core::bad_data(
          "{}: sequence {} begins at byte {}, not at {}, the end of the previous sequence", name,
          sequence_, begin, byte_);
    const auto ids = static_cast<std::uint64_t>(length);
    byte_ += ids * type_.bytes;
    if (byte_ > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      core::bad_data("{}: sequence {} ends beyond any file", name, sequence_);
    elements += ids;
  }
  ++document_;
  return elements;
}

void write_megatron(const Dataset& data, core::ByteSink& numbers, core::ByteSink& index,
    const std::function<void(std::uint64_t)>& progress, std::uint64_t sequence) {
  const std::uint8_t code = megatron_code(data.header());
  const auto nothing = [] {};
  std::uint64_t sequences = 0;
  each_sequence(
      data, sequence, [&](std::uint64_t) { ++sequences; }, nothing);
  index.write(kMegatronMagic);
  NumberSink out(index);
  out.put(kMegatronVersion);
  out.put(code);
  out.put(sequences);
  out.put(static_cast<std::uint64_t>(data.documents().size() + 1));
  each_sequence(
      data, sequence, [&](std::uint64_t ids) { out.put(static_cast<std::uint32_t>(ids)); },
      nothing);
  std::uint64_t byte = 0;
  each_sequence(
      data, sequence,
      [&](std::uint64_t ids) {
        out.put(byte);
        byte += ids * size_of(data.header().dtype);
      },
      nothing);
  sequences = 0;
  out.put(sequences);
  each_sequence(
      data, sequence, [&](std::uint64_t) { ++sequences; }, [&] { out.put(sequences); });
  out.flush();
  write_elements(data, numbers, progress);
}

void write_megatron(const Dataset& data, const MegatronFiles& files,
    const std::function<void(std::uint64_t)>& progress) {
  megatron_code(data.header());  // refuse before an older pair is modified
  core::Output numbers(files.numbers), index(files.index);
  write_megatron(data, numbers, index, progress);
  std::error_code absent;
  std::filesystem::remove(files.index, absent);
  numbers.commit();
  index.commit();
}

}  // namespace shard
