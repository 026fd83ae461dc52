#include "shard/array_file.h"

#include "core/npy_header.h"
#include "shard/layout.h"

namespace shard {
namespace {

constexpr std::array<std::string_view, 4> kFormats = {"llm.c", "nanogpt", "npy", "megatron"};
constexpr std::size_t kLlmcInts = 256, kLlmcBytes = kLlmcInts * 4;
constexpr std::uint64_t kLlmcMost = std::uint64_t{1} << 31;  // llm.c counts ids in an int
constexpr std::size_t kPieceBytes = 1 << 16;

struct LlmcKind {
  std::uint32_t magic, version;
  std::size_t id_bytes;
};
constexpr std::array<LlmcKind, 2> kLlmcKinds = {{{20240520, 1, 2}, {20240801, 7, 4}}};

const LlmcKind* llmc_kind(std::span<const std::byte> start) {
  if (start.size() < 4) return nullptr;
  return core::find_by(kLlmcKinds, layout::get<std::uint32_t>(start, 0), &LlmcKind::magic);
}

// Parses a type of numbers: "<u2", "|i1", ...; '=' is the native byte order, little-endian.
std::optional<ArrayReader::Type> type_of(std::string_view descr) {
  if (descr.size() != 3 || (descr[0] != '<' && descr[0] != '=' && descr[0] != '|')) return {};
  const char kind = descr[1];
  const auto bytes = static_cast<std::size_t>(descr[2] - '0');
  const bool whole = kind == 'u' || kind == 'i';
  if (whole ? !std::has_single_bit(bytes) || bytes > 8 : kind != 'f' || (bytes != 2 && bytes != 4))
    return {};
  if (descr[0] == '|' && bytes != 1) return {};
  return ArrayReader::Type{bytes, !whole, kind == 'i'};
}

// Converts IEEE 754 binary16.
float float_of_half(std::uint16_t half) {
  const int exponent = half >> 10 & 31;
  const float fraction = static_cast<float>(half & 1023);
  const float size = exponent == 31  ? (fraction == 0 ? INFINITY : NAN)
                     : exponent == 0 ? std::ldexp(fraction, -24)
                                     : std::ldexp(fraction + 1024, exponent - 25);
  return half >> 15 ? -size : size;
}

std::string_view descr_of(Dtype dtype) {
  constexpr std::array<std::string_view, 5> kDescr = {"|u1", "<u2", "<u4", "<u8", "<f4"};
  return kDescr[static_cast<std::size_t>(dtype)];
}

// Returns the bytes before the elements.
core::Bytes start_of(const Header& header, ArrayFormat format, std::uint64_t elements) {
  core::Bytes start;
  if (format == ArrayFormat::npy) {
    std::vector<std::uint64_t> shape = {elements / header.width};
    if (header.kind == Kind::vectors) shape.push_back(header.width);
    layout::put(start, core::format_npy_header(descr_of(header.dtype), shape));
    return start;
  }
  const std::size_t bytes = size_of(header.dtype);
  if (header.kind == Kind::vectors || bytes > (format == ArrayFormat::llmc ? 4 : 2))
    core::bad_usage("--output-format {}: cannot store {} of {}; use npy", name_of(format),
        name_of(header.kind), name_of(header.dtype));
  if (format == ArrayFormat::nanogpt) return start;
  if (elements >= kLlmcMost)
    core::bad_usage(
        "--output-format llm.c: stores less than 2^31 ids, not {}; use shard split first",
        elements);
  const LlmcKind& kind = kLlmcKinds[bytes == 4 ? 1 : 0];
  layout::put_all(start, kind.magic, kind.version, static_cast<std::uint32_t>(elements));
  start.resize(kLlmcBytes);
  return start;
}

// Calls `take` with the elements' bytes, piece by piece.
template <class Take>
void each_piece(
    const Dataset& data, const std::function<void(std::uint64_t)>& progress, const Take& take) {
  const std::size_t element_bytes = size_of(data.header().dtype);
  core::Bytes raw;
  for (std::uint64_t at = 0; at < data.size();) {
    raw.resize(std::min<std::uint64_t>(data.size() - at, kPieceBytes) * element_bytes);
    data.read(at, std::span(raw));
    take(std::span<const std::byte>(raw));
    at += raw.size() / element_bytes;
    progress(at);
  }
}

}  // namespace

std::string_view name_of(ArrayFormat format) { return kFormats[static_cast<std::size_t>(format)]; }

ArrayFormat array_format_of(std::string_view name) {
  const auto found = std::ranges::find(kFormats, name);
  if (found == kFormats.end())
    core::bad_usage("--format: takes {}, not '{}'", fmt::join(kFormats, ", "), name);
  return static_cast<ArrayFormat>(found - kFormats.begin());
}

void ArrayOptions::fields(core::FieldList& f) {
  f("output-format", format, "format of the output (megatron: two files)",
      {"llm.c", "nanogpt", "npy", "megatron"});
}

ArrayReader::ArrayReader(core::ByteSource& source, std::optional<ArrayFormat> format)
    : in_(source) {
  const auto start = in_.peek(8);
  if (format) {
    format_ = *format;
  } else if (core::is_npy(start)) {
    format_ = ArrayFormat::npy;
  } else if (llmc_kind(start) != nullptr) {
    format_ = ArrayFormat::llmc;
  } else {
    core::bad_data(
        "{}: neither a file of llm.c nor .npy; for raw u16 ids, give --format nanogpt, {}", name(),
        "for Megatron's .bin and .idx, --format megatron");
  }
  if (format_ == ArrayFormat::llmc) start_llmc();
  if (format_ == ArrayFormat::npy) start_npy();
}

void ArrayReader::start_llmc() {
  const auto start = in_.peek(kLlmcBytes);
  const LlmcKind* kind = llmc_kind(start);
  if (kind == nullptr) core::bad_data("{}: not a file of llm.c", name());
  if (start.size() < kLlmcBytes) core::bad_data("{}: cut short in its header", name());
  const auto version = layout::get<std::uint32_t>(start, 4);
  if (version != kind->version)
    core::bad_data("{}: version {} of llm.c's format is not supported; version {} is", name(),
        version, kind->version);
  announced_ = layout::get<std::uint32_t>(start, 8);
  if (*announced_ >= kLlmcMost)
    core::bad_data("{}: its header announces a negative number of ids", name());
  type_ = {kind->id_bytes, false, false};
  in_.consume(kLlmcBytes);
}

void ArrayReader::start_npy() {
  const auto start = in_.peek(core::kMaxNpyHeaderBytes);
  const auto header =
      core::parse_npy_header(start.first(std::min(start.size(), core::kMaxNpyHeaderBytes)), name());
  const auto type = type_of(header.descr);
  if (!type)
    core::bad_data(
        "{}: elements of type {} are not supported; little-endian integers, float16 and float32 "
        "are {}",
        name(), header.descr.substr(0, 40), "read");
  type_ = *type;
  announced_ = header.elements(type_.bytes, name());
  const std::size_t dimensions = header.shape.size();
  if (dimensions < 1 || dimensions > 2 || (type_.is_float && dimensions != 2))
    core::bad_data(
        "{}: shape ({}) is not supported; ids are (N,) or (N, length), vectors (N, width)", name(),
        fmt::join(header.shape, ", "));
  if (dimensions == 2) {
    if (header.fortran_order)
      core::bad_data("{}: is in Fortran order; save it with numpy.ascontiguousarray", name());
    row_ = header.shape[1];
    if (row_ == 0) core::bad_data("{}: has empty rows", name());
  }
  in_.consume(header.data_offset);
}

template <class T, class Decode> std::size_t ArrayReader::read_as(std::span<T> out, Decode decode) {
  std::size_t n = 0;
  while (n < out.size()) {
    std::size_t want = std::min(out.size() - n, kPieceBytes / type_.bytes);
    if (announced_) want = std::min<std::uint64_t>(want, *announced_ - done_);
    const auto bytes = in_.peek(std::max<std::size_t>(want * type_.bytes, 1));
    if (want == 0 && !bytes.empty())
      core::bad_data(
          "{}: has data after the {} numbers that its header announces", name(), *announced_);
    const std::size_t there = std::min(want, bytes.size() / type_.bytes);
    if (there == 0) {
      if (!bytes.empty() || (announced_ && done_ < *announced_))
        core::bad_data("{}: cut short at byte {}", name(), in_.offset() + bytes.size());
      break;
    }
    for (std::size_t i = 0; i < there; ++i)
      out[n + i] = decode(bytes.data() + i * type_.bytes, done_ + i);
    in_.consume(there * type_.bytes);
    n += there;
    done_ += there;
  }
  return n;
}

std::size_t ArrayReader::read(std::span<std::uint64_t> out) {
  if (is_float()) core::bug("{}: contains vectors, not ids", name());
  return read_as(out, [&](const std::byte* at, std::uint64_t index) {
    std::uint64_t id = 0;
    std::memcpy(&id, at, type_.bytes);
    if (type_.is_signed && id >> (8 * type_.bytes - 1))
      core::bad_data("{}: number {} is negative", name(), index);
    return id;
  });
}

std::size_t ArrayReader::read(std::span<float> out) {
  if (!is_float()) core::bug("{}: contains ids, not vectors", name());
  return read_as(out, [&](const std::byte* at, std::uint64_t index) {
    float x = 0;
    if (type_.bytes == 4) {
      std::memcpy(&x, at, sizeof x);
    } else {
      std::uint16_t half = 0;
      std::memcpy(&half, at, sizeof half);
      x = float_of_half(half);
    }
    if (!std::isfinite(x)) core::bad_data("{}: number {} is not finite", name(), index);
    return x;
  });
}

void write_elements(
    const Dataset& data, core::ByteSink& out, const std::function<void(std::uint64_t)>& progress) {
  each_piece(data, progress, [&](std::span<const std::byte> raw) { out.write(raw); });
}

void write_array(const Dataset& data, ArrayFormat format, core::ByteSink& out,
    const std::function<void(std::uint64_t)>& progress) {
  const Header& header = data.header();
  out.write(start_of(header, format, data.size()));
  if (header.dtype != Dtype::u8 || format == ArrayFormat::npy)
    return write_elements(data, out, progress);
  core::Bytes wide;
  each_piece(data, progress, [&](std::span<const std::byte> raw) {
    wide.assign(raw.size() * 2, std::byte{0});
    for (std::size_t i = 0; i < raw.size(); ++i) wide[2 * i] = raw[i];
    out.write(wide);
  });
}

}  // namespace shard
