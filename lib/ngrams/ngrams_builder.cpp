#include "ngrams/ngrams_builder.h"

#include <divsufsort.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "core/file_text.h"
#include "core/parallel.h"
#include "core/temporary_file.h"
#include "ngrams/sorted_part.h"

namespace ngrams {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBlock = 1 << 16;  // tokens read or written at once

// The suffixes of a text of tokens are sorted by libdivsufsort on the bytes of the tokens, most
// significant byte first, so that bytes compare as tokens do.

// Returns the bytes per token for tokens of [0, types): 1 to 4.
std::size_t sort_width(std::uint64_t types) {
  return types <= 1U << 8 ? 1 : types <= 1U << 16 ? 2 : types <= 1U << 24 ? 3 : 4;
}

// Appends a token to a text for sort_suffixes().
void put_token(std::vector<std::byte>& text, std::uint32_t token, std::size_t width) {
  for (std::size_t i = width; i-- > 0;) text.push_back(static_cast<std::byte>(token >> (8 * i)));
}
// Returns the token at a position of such a text.
std::uint32_t token_at(std::span<const std::byte> text, std::size_t place, std::size_t width) {
  std::uint32_t token = 0;
  for (std::size_t i = 0; i < width; ++i)
    token = token << 8 | std::to_integer<std::uint32_t>(text[place * width + i]);
  return token;
}

// Returns the positions [0, own) of the text (made by put_token()) whose token is not `mark`,
// sorted by the suffixes that begin there. Throws Error{out_of_memory}.
std::vector<std::uint32_t> sort_suffixes(
    std::span<const std::byte> text, std::size_t width, std::uint64_t own, std::uint32_t mark) {
  static_assert(sizeof(saidx_t) == sizeof(std::uint32_t));
  std::vector<std::uint32_t> places(text.size());
  const int failed = divsufsort(reinterpret_cast<const sauchar_t*>(text.data()),
      reinterpret_cast<saidx_t*>(places.data()), static_cast<saidx_t>(text.size()));
  if (failed != 0)
    core::fail(core::Code::out_of_memory, "not enough memory to sort {} bytes; lower --buffer-size",
        text.size());
  std::size_t kept = 0;
  for (const std::uint32_t byte : places) {
    const auto place = static_cast<std::uint32_t>(byte / width);
    if (byte % width == 0 && place < own && token_at(text, place, width) != mark)
      places[kept++] = place;
  }
  places.resize(kept);
  return places;
}

// Returns the text of a part, for sorting.
std::vector<std::byte> read_text(
    const shard::Dataset& data, const PartFacts& facts, std::uint64_t types) {
  const std::size_t width = sort_width(types);
  const auto mark = static_cast<std::uint32_t>(types - 1);
  std::vector<std::byte> text;
  text.reserve(facts.elements() * width);
  std::vector<std::uint32_t> block;
  std::uint64_t at = facts.begin;
  for (std::uint64_t i = 0; i < facts.marks; ++i) {
    const std::uint64_t end = std::min(data.documents().end[facts.document + i], facts.until);
    while (at < end) {
      block.resize(std::min<std::uint64_t>(kBlock, end - at));
      data.read(at, std::span(block));
      for (const std::uint32_t token : block) {
        if (token >= mark)
          core::bad_data("{}: token {} is outside its vocabulary of {}", data.name(), token, mark);
        put_token(text, token, width);
      }
      at += block.size();
    }
    put_token(text, mark, width);
  }
  return text;
}

template <class T>
std::string write_text(
    const std::string& path, std::span<const std::byte> text, std::uint64_t types) {
  const std::size_t width = sort_width(types), n = text.size() / width;
  ArrayWriter out(path, descr_of(types), n);
  std::vector<T> block;
  for (std::size_t begin = 0; begin < n; begin += block.size()) {
    block.resize(std::min(kBlock, n - begin));
    for (std::size_t i = 0; i < block.size(); ++i)
      block[i] = static_cast<T>(token_at(text, begin + i, width));
    out.write(std::span<const T>(block));
  }
  return out.commit();
}

std::string write_text(
    const std::string& path, std::span<const std::byte> text, std::uint64_t types) {
  switch (bytes_of(descr_of(types))) {
    case 1: return write_text<std::uint8_t>(path, text, types);
    case 2: return write_text<std::uint16_t>(path, text, types);
    default: return write_text<std::uint32_t>(path, text, types);
  }
}

template <class T>
std::string write_all(
    const std::string& path, std::string_view descr, const std::vector<T>& elements) {
  ArrayWriter out(path, descr, elements.size());
  out.write(std::span<const T>(elements));
  return out.commit();
}

// Writes the files of a part and returns its facts with their hashes.
PartFacts build_part(
    const shard::Dataset& data, const std::string& folder, std::size_t number, PartFacts facts) {
  const std::uint64_t types = data.header().vocabulary + 1;
  const std::size_t width = sort_width(types);
  const auto text = read_text(data, facts, types);
  std::vector<std::uint32_t> firsts(types);  // [t + 1]: number of suffixes that begin with t
  const auto own_end = [&] {  // end of the positions in the text whose suffixes it has
    std::uint64_t marks = 0;
    for (std::uint64_t i = 0; i < facts.marks; ++i)
      if (data.documents().end[facts.document + i] < facts.end) ++marks;
    return facts.end - facts.begin + marks;
  }();
  const auto places = sort_suffixes(text, width, own_end, static_cast<std::uint32_t>(types - 1));
  for (const std::uint32_t place : places) ++firsts[token_at(text, place, width) + 1];
  for (std::size_t i = 1; i < firsts.size(); ++i) firsts[i] += firsts[i - 1];
  const std::string base = folder + "/";
  const auto text_hash = write_text(base + text_name(number), text, types);
  facts.suffixes_hash = write_all(base + suffixes_name(number), "<u4", places);
  facts.firsts_hash = write_all(base + firsts_name(number), "<u4", firsts);
  facts.text_hash = text_hash;
  return facts;
}

Manifest plan_of(const shard::Dataset& data, const Cut& cut) {
  Manifest plan;
  plan.vocabulary = data.header().vocabulary;
  plan.tokens = data.size();
  plan.documents = data.documents().size();
  plan.data = data.fingerprint().hex();
  const auto& tokenizer = data.header().tokenizer;
  if (!tokenizer.empty()) plan.tokenizer = core::hash128(tokenizer).hex();
  std::vector<std::uint64_t> documents;
  for (const auto& file : data.files()) {
    plan.shards.push_back({file.trailer().fingerprint.hex(), file.size()});
    documents.push_back(file.content().documents);
  }
  plan.parts = plan_parts(data.documents().end, cut, documents);
  return plan;
}

void expect_same_text(const Manifest& there, const Manifest& plan, const std::string& folder,
    const std::string& name) {
  if (there.data != plan.data || there.tokenizer != plan.tokenizer)
    core::bad_usage("{}: indexes another text, {}, than {}, {}; give another folder", folder,
        there.data, name, plan.data);
}

void expect_free(const std::string& folder) {
  core::remove_leftovers(folder, is_index_file);
  for (const auto& entry : fs::directory_iterator(folder))
    if (!is_index_file(entry.path().filename().string()))
      core::fail(core::Code::cannot_create, "{}: contains {}; give an empty or new folder", folder,
          entry.path().filename().string());
}

void remove_file(const std::string& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT)
    core::fail(core::Code::io, "{}: cannot remove: {}", path, core::error_text(errno));
}

}  // namespace

void BuildOptions::fields(core::FieldList& f) {
  f("buffer-size", memory, "memory for sorting in bytes; a larger text is sorted in parts")
      .bytes(1 << 20, 0x1p46);
}

Cut BuildOptions::cut(std::uint64_t vocabulary, std::int64_t jobs) const {
  const std::uint64_t width = sort_width(vocabulary + 1);
  const std::uint64_t bytes = width * (1 + sizeof(saidx_t));  // of a token and its suffixes
  constexpr std::uint64_t kMostSorted = std::numeric_limits<saidx_t>::max();  // bytes
  Cut cut;
  cut.elements = static_cast<std::uint64_t>(memory / std::max<std::int64_t>(1, jobs)) / bytes;
  cut.elements = std::min(cut.elements, kMostSorted / width);
  if (cut.elements < 4 * cut.overlap)
    core::bad_usage("--buffer-size: {} threads need at least {} bytes", jobs,
        static_cast<std::uint64_t>(jobs) * 4 * cut.overlap * bytes);
  return cut;
}

std::vector<PartFacts> plan_parts(const std::vector<std::uint64_t>& ends, const Cut& cut,
    const std::vector<std::uint64_t>& shards) {
  std::vector<PartFacts> parts;
  std::uint64_t begin = 0, last = 0;
  for (const std::uint64_t documents : shards.empty() ? std::vector{ends.size()} : shards) {
    std::uint64_t document = last;
    last += documents;
    const std::uint64_t tokens = last == 0 ? 0 : ends[last - 1];
    while (begin < tokens) {
      PartFacts part;
      part.begin = part.end = begin;
      part.document = document;
      while (document < last &&
             ends[document] - begin + (document - part.document) + 1 <= cut.elements)
        part.end = ends[document++];
      part.until = part.end;
      part.marks = document - part.document;
      if (part.end == begin) {  // even the next document does not fit
        part.document = document;
        part.end = begin + (cut.elements - cut.overlap - 1);
        part.until = part.end + cut.overlap;
        part.marks = 1;
      }
      begin = part.end;
      parts.push_back(part);
    }
  }
  return parts;
}

Built build(const shard::Dataset& data, const std::string& folder, const Cut& cut,
    std::int64_t jobs, const BuildWatch& watch) {
  shard::expect_kind(data.header(), {shard::Kind::tokens}, data.name());
  if (data.size() == 0) core::bad_data("{}: has no tokens", data.name());
  Manifest plan = plan_of(data, cut);
  const core::FolderLock lock(folder, core::FolderLock::kHeld, core::FolderLock::Absent::made);
  const std::string base = folder + "/", building = base + kBuildingName;
  expect_free(folder);
  if (fs::exists(base + kManifestName)) {
    Manifest there = read_manifest(folder);
    expect_same_text(there, plan, folder, data.name());
    remove_file(building);
    return {std::move(there), true};
  }
  if (fs::exists(building)) {
    Manifest begun = manifest_from(core::read_json(building), building, /*complete=*/false);
    expect_same_text(begun, plan, folder, data.name());
    plan = std::move(begun);
  }
  std::mutex mutex;
  std::uint64_t done = 0;
  const auto say = [&](const PartFacts& part) {
    done += part.end - part.begin;
    if (watch) watch(done);
  };
  core::write_file(building, core::dump(to_json(plan)) + "\n");
  std::vector<std::size_t> missing;
  for (std::size_t i = 0; i < plan.parts.size(); ++i)
    if (plan.parts[i].done()) {
      say(plan.parts[i]);
    } else {
      missing.push_back(i);
    }
  if (watch) watch(done);
  core::parallel_for(static_cast<int>(jobs), missing.size(), [&] {
    return [&](std::uint64_t i) {
      const std::size_t number = missing[i];
      const PartFacts made = build_part(data, folder, number, plan.parts[number]);
      const std::lock_guard guard(mutex);
      plan.parts[number] = made;
      core::write_file(building, core::dump(to_json(plan)) + "\n");
      say(made);
    };
  });
  if (const auto& tokenizer = data.header().tokenizer; !tokenizer.empty())
    core::write_file(base + kTokenizerName, tokenizer);
  plan.documents_hash = write_all(base + kDocumentsName, "<u8", data.documents().end);
  if (const auto& names = data.documents().names; !names.empty())
    plan.names_hash = shard::write_names(base + kNamesName, names);
  core::write_file(base + kManifestName, core::dump_pretty(to_json(plan)) + "\n");
  remove_file(building);
  core::sync_folder(folder);
  return {std::move(plan), false};
}

core::OrderedJson describe(const std::string& folder, const Manifest& manifest) {
  return {{"ngrams", folder}, {"tokens", manifest.tokens}, {"documents", manifest.documents},
      {"vocabulary", manifest.vocabulary}, {"parts", manifest.parts.size()},
      {"tokenizer", manifest.tokenizer}, {"data", manifest.data}};
}

}  // namespace ngrams
