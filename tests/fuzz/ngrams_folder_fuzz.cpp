// A whole index of n-grams, its files concatenated, is opened and queried, or gives an Error for
// the user.

#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/hash.h"
#include "core/json.h"
#include "fuzz/packed_folder.h"
#include "fuzz/target.h"
#include "ngrams/next_tokens.h"
#include "ngrams/ngram_overlap.h"

namespace {

PackedFiles index_files(std::string_view text) { return unpack(text, ngrams::is_index_file); }

// Calls all queries. Answers may be wrong if suffixes are damaged, but they must be answers.
void ask_ngrams(const std::shared_ptr<const ngrams::Index>& index) {
  const auto folder = index->folders()[0];
  const auto types = static_cast<std::uint32_t>(folder->manifest().vocabulary);
  ngrams::SuffixFollower follower(index);
  ngrams::NextTokens next(index, 100);
  std::vector<std::uint32_t> text;
  for (std::uint32_t i = 0; i < 40; ++i) text.push_back(i % 7 == 6 ? types + i : 97 + i * i % 9);
  for (const std::uint32_t token : text) {
    follower.push(token);
    const auto match = follower.match();
    const auto followers = index->followers(match);
    index->count(match, token);
    if (types < 1 << 20) next.of(match);
    const auto n = std::min<std::uint64_t>(ngrams::Index::count(match), 3);
    for (std::uint64_t i = 0; i < n; ++i) {
      if (index->place(match, i).document >= folder->manifest().documents) std::abort();
      if (index->around(match, i, -5, 5).size() > 10) std::abort();
    }
    if (followers.count > ngrams::Index::count(match)) std::abort();
  }
  ngrams::spans_of(index, text, 2);
  folder->verify();
}

}  // namespace

// Repairs ngrams.json's hash of itself, and the hashes of the arrays and the tokenizer.
FUZZ_REPAIR(ngrams_folder)(std::vector<std::byte>& bytes) {
  PackedFiles files = index_files({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  auto json = core::parse_json(files["ngrams.json"], "");
  if (!json.is_object()) return;
  constexpr std::size_t kHeader = 128;
  const auto hash_of = [&](const std::string& name) {
    return core::hash128(
        std::string_view(files[name]).substr(std::min(files[name].size(), kHeader)))
        .hex();
  };
  json["documents_hash"] = hash_of("documents.npy");
  if (files.count("tokenizer.json"))
    json["tokenizer"] = core::hash128(files["tokenizer.json"]).hex();
  std::size_t part = 0;
  if (json.contains("parts") && json["parts"].is_array())
    for (auto& facts : json["parts"]) {
      if (!facts.is_object()) return;
      facts["text_hash"] = hash_of(ngrams::text_name(part));
      facts["suffixes_hash"] = hash_of(ngrams::suffixes_name(part));
      facts["firsts_hash"] = hash_of(ngrams::firsts_name(part++));
    }
  json.erase("hash");
  json["hash"] = core::hash128(core::dump(json)).hex();
  files["ngrams.json"] = core::dump(json);
  pack(files, bytes);
}

FUZZ_TARGET(ngrams_folder)(const std::uint8_t* data, std::size_t size) {
  static const FuzzedFolder folder;
  folder.hold(index_files({reinterpret_cast<const char*>(data), size}));
  try {
    ask_ngrams(std::make_shared<const ngrams::Index>(std::vector<std::string>{folder.path}));
  } catch (const core::Error& error) {
    if (error.code() != core::Code::bad_data && error.code() != core::Code::no_input) std::abort();
  }
  try {  // the index may be incomplete
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    ngrams::manifest_from(core::parse_json(text, "fuzz"), "fuzz", /*complete=*/false);
  } catch (const core::Error& error) {
    if (error.code() != core::Code::bad_data) std::abort();
  }
}
