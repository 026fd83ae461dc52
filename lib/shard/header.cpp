#include "shard/header.h"

#include "core/build_info.h"
#include "shard/layout.h"

namespace shard {
namespace {

constexpr std::array<std::string_view, 4> kKinds = {"tokens", "order", "vectors", "pairs"};
constexpr std::array<std::string_view, 5> kDtypes = {"u8", "u16", "u32", "u64", "f32"};
constexpr std::array<std::size_t, 5> kSizes = {1, 2, 4, 8, 4};
constexpr std::array<std::string_view, 3> kUnits = {"segment", "document", "pair"};

template <class Names>
std::size_t index_of(
    const Names& names, const std::string& text, const char* what, const std::string& name) {
  const auto found = std::ranges::find(names, text);
  if (found == names.end())
    core::bad_data("{}: {} \"{}\" in the header is not known", name, what, text.substr(0, 40));
  return static_cast<std::size_t>(found - names.begin());
}

const char* contradiction(const Header& header) {
  const bool ids = header.kind == Kind::tokens || header.kind == Kind::pairs;
  const bool order = header.kind == Kind::order;
  if (ids && (header.vocabulary == 0 || header.vocabulary > std::uint64_t{1} << 32))
    return "a vocabulary of 1 to 2^32 types is needed";
  if (ids && header.dtype != dtype_for(header.vocabulary))
    return "dtype does not fit the vocabulary";
  if (order && header.dtype != Dtype::u32 && header.dtype != Dtype::u64)
    return "an order is u32 or u64";
  if (order && std::ranges::find(kUnits, header.unit) == kUnits.end())
    return "unit is none of segment, document, pair";
  if (order && (header.unit == "segment") != (header.unit_length > 0))
    return "unit_length belongs to an order of segments";
  if (!order &&
      (!header.unit.empty() || header.unit_length > 0 || !header.data_fingerprint.empty()))
    return "unit and data_fingerprint belong to an order";
  if (header.marked && header.kind != Kind::tokens) return "marks belong to tokens";
  if (header.kind == Kind::vectors && (header.dtype != Dtype::f32 || header.vocabulary != 0))
    return "vectors are f32 without a vocabulary";
  if (header.kind == Kind::vectors ? header.width < 1 || header.width > (1u << 24)
                                   : header.width != 1)
    return "width must be 1 to 2^24 for vectors, 1 otherwise";
  return nullptr;
}

__extension__ typedef unsigned __int128 U128;

constexpr U128 kPrime = (U128{1} << 127) - 1;
// Any large generic number would do; this is the first 126 bits of pi's fraction.
constexpr U128 kBase = (U128{0x090fdaa22168c234u} << 64) | 0xc4c6628b80dc1cd1u;

U128 reduce(U128 x) {
  x = (x & kPrime) + (x >> 127);
  return x >= kPrime ? x - kPrime : x;
}

// Multiplies a, b < 2^127 - 1. The product has 254 bits: high * 2^128 + low, and 2^128 = 2 modulo
// the prime.
U128 multiply(U128 a, U128 b) {
  const std::uint64_t a1 = static_cast<std::uint64_t>(a >> 64), a0 = static_cast<std::uint64_t>(a);
  const std::uint64_t b1 = static_cast<std::uint64_t>(b >> 64), b0 = static_cast<std::uint64_t>(b);
  const U128 middle = U128{a1} * b0 + U128{a0} * b1;  // < 2^128, because a1, b1 < 2^63
  U128 high = U128{a1} * b1 + (middle >> 64);
  const U128 low0 = U128{a0} * b0;
  const U128 low = low0 + (middle << 64);
  if (low < low0) ++high;
  return reduce(reduce(low) + reduce(high << 1));
}

U128 power(U128 base, std::uint64_t n) {
  U128 result = 1;
  for (; n > 0; n >>= 1, base = multiply(base, base))
    if (n & 1) result = multiply(result, base);
  return result;
}

U128 number(const core::Digest& d) { return reduce((U128{d.high} << 64) | d.low); }
core::Digest digest(U128 x) {
  return {static_cast<std::uint64_t>(x >> 64), static_cast<std::uint64_t>(x)};
}
// Adds two numbers below the prime; the sum fits in 128 bits.
core::Digest sum(U128 a, U128 b) { return digest(reduce(a + b)); }

}  // namespace

std::string_view name_of(Kind kind) { return kKinds[static_cast<std::size_t>(kind)]; }
std::string_view name_of(Dtype dtype) { return kDtypes[static_cast<std::size_t>(dtype)]; }
std::size_t size_of(Dtype dtype) { return kSizes[static_cast<std::size_t>(dtype)]; }

Dtype dtype_for(std::uint64_t vocabulary) {
  return vocabulary <= 256 ? Dtype::u8 : vocabulary <= 65'536 ? Dtype::u16 : Dtype::u32;
}

std::vector<Span> marks_within(const Documents& documents, std::uint64_t begin, std::uint64_t end) {
  std::vector<Span> within;
  auto mark = std::ranges::upper_bound(documents.marks, begin, {}, &Span::end);
  for (; mark != documents.marks.end() && mark->begin < end; ++mark)
    within.push_back({std::max(mark->begin, begin) - begin, std::min(mark->end, end) - begin});
  return within;
}

core::OrderedJson provenance_entry(
    std::string_view program, core::OrderedJson options, const std::vector<core::Digest>& inputs) {
  core::OrderedJson entry{{"program", program}, {"version", core::build::kVersion},
      {"options", std::move(options)}, {"inputs", core::OrderedJson::array()}};
  for (const auto& input : inputs) entry["inputs"].push_back(input.hex());
  return entry;
}

void expect_kind(const Header& header, const std::vector<Kind>& kinds, const std::string& name) {
  if (std::ranges::find(kinds, header.kind) != kinds.end()) return;
  std::string wanted;
  for (const Kind kind : kinds) wanted.append(wanted.empty() ? "" : " or ").append(name_of(kind));
  const auto described = [](const std::string& kind) {
    return kind == name_of(Kind::order) ? "an order" : "a shard of " + kind;
  };
  core::bad_data("{}: is {}; expected {}", name, described(std::string(name_of(header.kind))),
      described(wanted));
}

void check_header(const Header& header, const std::string& name) {
  if (const char* what = contradiction(header)) core::bad_data("{}: bad header: {}", name, what);
  if (!header.data_fingerprint.empty()) core::Digest::from_hex(header.data_fingerprint);
}

std::string header_json(const Header& header) {
  core::Json json = {{"kind", name_of(header.kind)}, {"dtype", name_of(header.dtype)},
      {"width", header.width}, {"vocabulary", header.vocabulary}};
  if (header.marked) json["marked"] = true;
  if (header.kind == Kind::order)
    json.update({{"unit", header.unit}, {"unit_length", header.unit_length},
        {"data_fingerprint", header.data_fingerprint}});
  return core::dump(json);
}

Header header_from_json(std::string_view text, const std::string& name) {
  const core::Json json = core::parse_json(text, name + ": header", 4);
  Header header;
  header.kind = Kind(index_of(kKinds, core::get<std::string>(json, "kind", name), "kind", name));
  header.dtype =
      Dtype(index_of(kDtypes, core::get<std::string>(json, "dtype", name), "dtype", name));
  const auto width = core::get<std::uint64_t>(json, "width", name);
  header.width = static_cast<std::uint32_t>(std::min<std::uint64_t>(width, UINT32_MAX));
  header.vocabulary = core::get<std::uint64_t>(json, "vocabulary", name);
  header.marked = json.contains("marked");  // must be true; any other value is not canonical
  if (header.kind == Kind::order) {
    header.unit = core::get<std::string>(json, "unit", name);
    header.unit_length = core::get<std::uint64_t>(json, "unit_length", name);
    header.data_fingerprint = core::get<std::string>(json, "data_fingerprint", name);
  }
  check_header(header, name);
  if (header_json(header) != text) core::bad_data("{}: bad header: not in canonical form", name);
  return header;
}

void Chain::append(const core::Digest& digest) {
  value_ = sum(multiply(number(value_), kBase), number(digest));
}

void Chain::append_chain(const Chain& next, std::uint64_t n) {
  value_ = sum(multiply(number(value_), power(kBase, n)), number(next.value_));
}

Chain Chain::from(const core::Digest& value) {
  Chain chain;
  chain.value_ = value;
  return chain;
}

Chain Chain::read(const core::Json& json, const std::string& origin) {
  const auto hex = core::get<std::string>(json, "digest", origin);
  try {
    return from(core::Digest::from_hex(hex));
  } catch (const core::Error& error) {
    core::fail(error.code(), "{}: \"digest\": {}", origin, error.what());
  }
}

void Content::append(const core::Digest& document_data, std::uint64_t n_elements,
    std::uint64_t source_bytes, std::uint64_t source_words, std::span<const Span> marks) {
  std::vector<std::uint64_t> numbers = {n_elements, source_bytes, source_words};
  for (const auto& mark : marks) numbers.insert(numbers.end(), {mark.begin, mark.end});
  ++documents;
  elements += n_elements;
  boundaries.append(core::hash128(std::as_bytes(std::span(numbers))));
  data.append(document_data);
}

void Content::append(const Content& next) {
  documents += next.documents;
  elements += next.elements;
  boundaries.append_chain(next.boundaries, next.documents);
  data.append_chain(next.data, next.documents);
}

core::Digest fingerprint(const Header& header, const Content& content) {
  core::Bytes bytes;
  layout::put_all(bytes, core::hash128(header_json(header)), core::hash128(header.tokenizer),
      content.documents, content.boundaries.value(), content.elements, content.data.value());
  return core::hash128(bytes);
}

}  // namespace shard
