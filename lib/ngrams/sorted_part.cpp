#include "ngrams/sorted_part.h"

#include "core/npy_header.h"

namespace ngrams {
namespace {

// Returns the first position in [begin, end) where `holds`, which is monotone, is true; or end.
template <class Holds>
std::uint64_t first_that(std::uint64_t begin, std::uint64_t end, const Holds& holds) {
  while (begin < end) {
    const std::uint64_t middle = begin + (end - begin) / 2;
    if (holds(middle)) {
      end = middle;
    } else {
      begin = middle + 1;
    }
  }
  return begin;
}

// Does likewise if the position is probably near `begin`, by doubling steps.
template <class Holds>
std::uint64_t near_first_that(std::uint64_t begin, std::uint64_t end, const Holds& holds) {
  for (std::uint64_t step = 1; begin < end; step *= 2) {
    const std::uint64_t at = std::min(begin + step, end) - 1;
    if (holds(at)) return first_that(begin, at, holds);
    begin = at + 1;
  }
  return end;
}

}  // namespace

MappedArray::MappedArray(const std::string& path, std::string_view descr, std::uint64_t elements)
    : file_(path) {
  const auto start = file_.bytes().first(std::min(file_.bytes().size(), core::kMaxNpyHeaderBytes));
  const auto header = core::parse_npy_header(start, path);
  offset_ = header.data_offset;
  const std::uint64_t element = bytes_of(descr);
  if (header.descr != descr || header.fortran_order || header.shape.size() != 1 ||
      header.shape[0] != elements || offset_ % element != 0 ||
      (file_.bytes().size() - offset_) / element != elements ||
      (file_.bytes().size() - offset_) % element != 0)
    core::bad_data("{}: damaged: it is not {} elements of type '{}'", path, elements, descr);
}

void MappedArray::expect(const std::string& hash) const {
  if (core::hash128(bytes()).hex() != hash)
    core::bad_data("{}: corrupt file: checksum mismatch", name());
}

ArrayWriter::ArrayWriter(const std::string& path, std::string_view descr, std::uint64_t elements)
    : out_(path) {
  out_.write(core::format_npy_header(descr, std::span(&elements, 1)));
}

void ArrayWriter::write(std::span<const std::byte> elements) {
  hash_.update(elements);
  out_.write(elements);
}

std::string ArrayWriter::commit() {
  out_.commit();
  return hash_.digest().hex();
}

std::string_view descr_of(std::uint64_t types) {
  return types <= 1U << 8 ? "|u1" : types <= 1U << 16 ? "<u2" : "<u4";
}

std::size_t bytes_of(std::string_view descr) { return static_cast<std::size_t>(descr[2] - '0'); }

SortedPart::SortedPart(
    const std::string& folder, std::size_t number, const PartFacts& facts, std::uint64_t vocabulary)
    : facts_(facts), mark_(static_cast<std::uint32_t>(vocabulary)),
      width_(bytes_of(descr_of(vocabulary + 1))),
      text_file_(folder + "/" + text_name(number), descr_of(vocabulary + 1), facts.elements()),
      suffixes_file_(folder + "/" + suffixes_name(number), "<u4", facts.end - facts.begin),
      firsts_file_(folder + "/" + firsts_name(number), "<u4", vocabulary + 1),
      text_(text_file_.bytes().data()), text_size_(facts.elements()),
      suffixes_(suffixes_file_.values<std::uint32_t>()),
      firsts_(firsts_file_.values<std::uint32_t>()) {
  if (!std::ranges::is_sorted(firsts_) || firsts_.front() != 0 ||
      firsts_.back() != suffixes_.size())
    core::bad_data(
        "{}: damaged: not the counts of {} suffixes", firsts_file_.name(), suffixes_.size());
}

Ranks SortedPart::first(std::uint32_t token) const {
  if (token >= mark_) return {};
  return {firsts_[token], firsts_[token + 1]};
}

Ranks SortedPart::find(std::span<const std::uint32_t> tokens) const {
  if (tokens.empty()) return all();
  const Ranks ranks = first(tokens[0]);
  if (tokens.size() == 1 || *std::ranges::max_element(tokens) >= mark_)
    return tokens.size() == 1 ? ranks : Ranks{};
  // Negative: the suffix sorts before those with this prefix; 0: it has the prefix; positive:
  // after.
  const auto order = [&](std::uint64_t rank) {
    const std::uint64_t place = suffixes_[rank];
    for (std::size_t i = 1; i < tokens.size(); ++i)
      if (const auto there = token(place + i); there != tokens[i])
        return there < tokens[i] ? -1 : 1;
    return 0;
  };
  const auto begin =
      first_that(ranks.begin, ranks.end, [&](std::uint64_t rank) { return order(rank) >= 0; });
  if (begin == ranks.end || order(begin) != 0) return {};
  return {begin,
      near_first_that(begin + 1, ranks.end, [&](std::uint64_t rank) { return order(rank) > 0; })};
}

Ranks SortedPart::extend(Ranks ranks, std::uint64_t depth, std::uint32_t token) const {
  if (token >= mark_ || ranks.empty()) return {};
  if (depth == 0) return first(token);
  const auto begin = first_that(
      ranks.begin, ranks.end, [&](std::uint64_t rank) { return token_of(rank, depth) >= token; });
  if (begin == ranks.end || token_of(begin, depth) != token) return {};
  return {begin, run_end({begin, ranks.end}, depth)};
}

std::uint64_t SortedPart::run_end(Ranks ranks, std::uint64_t depth) const {
  const std::uint32_t token = token_of(ranks.begin, depth);
  return near_first_that(ranks.begin + 1, ranks.end,
      [&](std::uint64_t rank) { return token_of(rank, depth) != token; });
}

std::uint64_t SortedPart::followers(Ranks ranks, std::uint64_t depth) const {
  if (ranks.empty() || token_of(ranks.end - 1, depth) != mark_) return ranks.size();
  return first_that(ranks.begin, ranks.end, [&](std::uint64_t rank) {
    return token_of(rank, depth) == mark_;
  }) - ranks.begin;
}

void SortedPart::verify() const {
  text_file_.expect(facts_.text_hash);
  suffixes_file_.expect(facts_.suffixes_hash);
  firsts_file_.expect(facts_.firsts_hash);
}

}  // namespace ngrams
