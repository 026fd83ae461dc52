#include "ngrams/ngram_index.h"

#include "core/file_text.h"

namespace ngrams {
namespace {

std::string read_tokenizer(const std::string& folder, const Manifest& manifest) {
  if (manifest.tokenizer.empty()) return {};
  const std::string path = folder + "/" + kTokenizerName;
  auto text = core::read_file(path);
  if (core::hash128(text).hex() != manifest.tokenizer)
    core::bad_data("{}: corrupt file: checksum mismatch", path);
  return text;
}

bool share_text(const Manifest& a, const Manifest& b) {
  shard::Fingerprints texts = {a.data};
  for (const auto& shard : a.shards)
    if (shard.tokens > 0) texts.insert(shard.data);
  const auto in_a = [&](const auto& one) { return one.tokens > 0 && texts.contains(one.data); };
  return in_a(b) || std::ranges::any_of(b.shards, in_a);
}

}  // namespace

Folder::Folder(const std::string& path)
    : name_(path), manifest_(read_manifest(path)), tokenizer_(read_tokenizer(path, manifest_)),
      documents_(path + "/" + kDocumentsName, "<u8", manifest_.documents),
      ends_(documents_.values<std::uint64_t>()) {
  if (!std::ranges::is_sorted(ends_) || ends_.back() != manifest_.tokens)
    core::bad_data("{}: damaged: not the ends of documents", documents_.name());
  if (const auto& hash = manifest_.names_hash; !hash.empty())
    names_ = shard::read_names(path + "/" + kNamesName, manifest_.documents, hash);
  for (std::size_t i = 0; i < manifest_.parts.size(); ++i)
    parts_.emplace_back(path, i, manifest_.parts[i], manifest_.vocabulary);
}

std::uint64_t Folder::begin_of(std::uint64_t document) const {
  return document == 0 ? 0 : ends_[document - 1];
}

std::uint64_t Folder::begin_in(const SortedPart& part, std::uint64_t document) const {
  const auto& facts = part.facts();
  const auto begin = std::clamp(begin_of(document), facts.begin, facts.until);
  return begin - facts.begin + (document - facts.document);
}

std::uint64_t Folder::document_of(const SortedPart& part, std::uint64_t place) const {
  const auto& facts = part.facts();
  std::uint64_t low = facts.document, high = facts.document + facts.marks;
  while (high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    (begin_in(part, middle) <= place ? low : high) = middle;
  }
  return low;
}

bool Folder::is_of(const SortedPart& part, const shard::Fingerprints& texts) const {
  if (texts.contains(manifest_.data)) return true;
  std::uint64_t end = 0;
  for (const auto& shard : manifest_.shards)
    if ((end += shard.tokens) > part.facts().begin) return texts.contains(shard.data);
  return false;
}

void Folder::verify() const {
  documents_.expect(manifest_.documents_hash);
  for (const auto& part : parts_) part.verify();
}

Index::Index(const std::vector<std::string>& folders)
    : Index(core::mapped(
          folders, [](const auto& folder) { return std::make_shared<const Folder>(folder); })) {}

Index::Index(std::vector<std::shared_ptr<const Folder>> folders) : folders_(std::move(folders)) {
  for (std::size_t i = 0; i < folders_.size(); ++i) {
    const Manifest& own = folders_[i]->manifest();
    for (std::size_t j = 0; j < i; ++j) {
      const Manifest& other = folders_[j]->manifest();
      if (own.tokenizer != other.tokenizer || own.vocabulary != other.vocabulary)
        core::bad_data("{} has tokenizer '{}' with {} tokens, but {} has '{}' with {}",
            folders_[j]->name(), other.tokenizer, other.vocabulary, folders_[i]->name(),
            own.tokenizer, own.vocabulary);
      if (share_text(own, other))
        core::bad_usage(
            "{} and {} contain the same text {}, which would count twice; leave one out",
            folders_[j]->name(), folders_[i]->name(), own.data);
    }
    for (const auto& part : folders_[i]->parts()) {
      parts_.push_back(&part);
      folder_of_.push_back(i);
    }
  }
}

std::uint64_t Index::vocabulary() const {
  return folders_.empty() ? 0 : folders_[0]->manifest().vocabulary;
}

std::uint64_t Index::tokens() const {
  return core::sum_of(
      parts_, [](const auto* part) { return part->facts().end - part->facts().begin; });
}

Match Index::find(std::span<const std::uint32_t> tokens) const {
  return {tokens.size(), core::mapped(parts_, [&](auto* part) { return part->find(tokens); })};
}

std::uint64_t Index::count(const Match& match) {
  return core::sum_of(match.ranks, [](const auto& ranks) { return ranks.size(); });
}

Followers Index::followers(const Match& match) const {
  Followers all;
  std::uint32_t token = 0;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const Ranks ranks = match.ranks[i];
    const std::uint64_t n = parts_[i]->followers(ranks, match.length);
    if (n == 0) continue;
    const std::uint32_t first = parts_[i]->token_of(ranks.begin, match.length);
    const bool one = first == parts_[i]->token_of(ranks.begin + n - 1, match.length);
    all.one = one && (all.count == 0 || (all.one && first == token));
    token = first;
    all.count += n;
  }
  return all;
}

std::uint64_t Index::count(const Match& match, std::uint32_t token) const {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < parts_.size(); ++i)
    sum += parts_[i]->extend(match.ranks[i], match.length, token).size();
  return sum;
}

Index::Occurrence Index::nth(const Match& match, std::uint64_t n) const {
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (n < match.ranks[i].size()) return {i, match.ranks[i].begin + n};
    n -= match.ranks[i].size();
  }
  core::bug("a match has no place {} more", n);
}

SuffixPosition Index::place(const Match& match, std::uint64_t n) const {
  const auto [i, rank] = nth(match, n);
  const SortedPart& part = *parts_[i];
  const Folder& folder = *folders_[folder_of_[i]];
  const std::uint64_t at = std::min(part.place(rank), part.text_size() - 1);
  SuffixPosition place;
  place.folder = folder_of_[i];
  place.document = folder.document_of(part, at);
  const std::uint64_t begin = folder.begin_of(place.document);
  place.element =
      std::max(begin, part.facts().begin) + (at - folder.begin_in(part, place.document));
  place.offset = place.element - begin;
  return place;
}

std::vector<std::uint32_t> Index::around(
    const Match& match, std::uint64_t n, std::int64_t from, std::int64_t to) const {
  const auto [i, rank] = nth(match, n);
  const SortedPart& part = *parts_[i];
  const std::uint64_t at = part.place(rank);
  std::vector<std::uint32_t> tokens;
  for (std::uint64_t before = 1;
       from < 0 && before <= std::min(static_cast<std::uint64_t>(-from), at); ++before) {
    const auto token = part.token(at - before);
    if (token == part.mark()) break;
    tokens.push_back(token);
  }
  std::ranges::reverse(tokens);
  for (std::int64_t ahead = std::max<std::int64_t>(from, 0); ahead < to; ++ahead) {
    const auto token = part.token(at + static_cast<std::uint64_t>(ahead));
    if (token == part.mark()) break;
    tokens.push_back(token);
  }
  return tokens;
}

bool Index::holds(const shard::Fingerprints& texts) const {
  for (std::size_t i = 0; i < parts_.size(); ++i)
    if (folders_[folder_of_[i]]->is_of(*parts_[i], texts)) return true;
  return false;
}

std::shared_ptr<const Index> Index::without(const shard::Fingerprints& texts) const {
  auto others = std::make_shared<Index>(*this);
  others->parts_.clear(), others->folder_of_.clear();
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (folders_[folder_of_[i]]->is_of(*parts_[i], texts)) continue;
    others->parts_.push_back(parts_[i]);
    others->folder_of_.push_back(folder_of_[i]);
  }
  return others;
}

std::string Index::signature() const {
  const auto names = core::mapped(
      folders_, [](const auto& folder) { return folder->manifest().data.substr(0, 12); });
  return fmt::format("{}", fmt::join(names, "+"));
}

}  // namespace ngrams
