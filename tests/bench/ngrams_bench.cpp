// ngrams/next: distributions over what follows a text, token after token, one thread, warm;
// ngrams/word: probabilities of the next token alone; ngrams/build: tokens a second that are
// indexed, one thread. Beside tokengrams and infini-gram, on 100 M tokens (words of the novels in
// examples/, in stretches of some words that follow each other at random).
//
// A peer is given the suffix that this found to be the longest, and looks up its counts alone.
// Its counts are the same, or this ends with 1. KenLM, beside ngrams/word, has a model of five
// words of the first 200,000 tokens.
//
// usage: bench_ngrams [TOKENS]; prints JSON lines. PEERS: a python with numpy and any of
// tokengrams, infini_gram and kenlm

#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "core/io.h"
#include "core/rng.h"
#include "measured.h"
#include "ngrams/next_tokens.h"
#include "ngrams/ngrams_builder.h"
#include "shard/dataset.h"
#include "shard/writer.h"

namespace {

using Tokens = std::vector<std::uint32_t>;
namespace fs = std::filesystem;

constexpr std::size_t kQueries = 20000, kPeerQueries = 2000;
constexpr std::uint64_t kDocument = 5000, kStretch = 16;

struct Words {
  Tokens text;
  std::uint32_t types = 0;
};

Words read_novels() {
  std::FILE* const in = ::popen("zstdcat examples/novels/*.zst", "r");
  if (in == nullptr) std::exit(66);
  std::map<std::string, std::uint32_t> ids;
  Words words;
  std::string word;
  for (int c = 0; c != EOF;) {
    c = std::getc(in);
    if (c != ' ' && c != '\n' && c != EOF) {
      word += static_cast<char>(c);
    } else if (!word.empty()) {
      words.text.push_back(ids.try_emplace(word, ids.size()).first->second);
      word.clear();
    }
  }
  ::pclose(in);
  words.types = static_cast<std::uint32_t>(ids.size());
  if (words.types == 0 || words.types >= 65535) std::exit(65);
  return words;
}

Tokens stretches(const Words& words, std::size_t n, std::uint64_t seed) {
  core::Rng rng(seed);
  Tokens tokens;
  tokens.reserve(n);
  while (tokens.size() < n) {
    const std::uint64_t from = rng.below(words.text.size() - kStretch);
    for (std::uint64_t i = 0, length = 1 + rng.below(kStretch); i < length && tokens.size() < n;
         ++i)
      tokens.push_back(words.text[from + i]);
  }
  return tokens;
}

void write_shard(const std::string& path, const Tokens& tokens, std::uint32_t types) {
  core::Output out(path);
  shard::Header header;
  header.dtype = shard::dtype_for(types);
  header.vocabulary = types;
  shard::Writer writer(out, header);
  for (std::size_t at = 0; at < tokens.size(); at += kDocument) {
    const auto document = std::span(tokens).subspan(at, std::min(kDocument, tokens.size() - at));
    writer.write(document);
    writer.end_document(document.size(), document.size());
  }
  writer.finish();
  out.commit();
}

// Writes 16-bit numbers with a mark after each document.
void write_raw(const std::string& path, const Tokens& tokens, std::uint32_t types) {
  std::ofstream out(path, std::ios::binary);
  std::vector<std::uint16_t> document;
  for (std::size_t at = 0; at < tokens.size(); at += kDocument) {
    document.assign(tokens.begin() + static_cast<std::ptrdiff_t>(at),
        tokens.begin() + static_cast<std::ptrdiff_t>(std::min(at + kDocument, tokens.size())));
    document.push_back(static_cast<std::uint16_t>(types));
    out.write(reinterpret_cast<const char*>(document.data()),
        static_cast<std::streamsize>(2 * document.size()));
  }
}

struct Asked {
  double per_second = 0, words_per_second = 0;
  std::vector<Tokens> suffixes;
  std::vector<std::uint64_t> counts;  // of next tokens
};

// Asks for the whole text. The second run counts.
Asked ask(const std::shared_ptr<const ngrams::Index>& index, const Tokens& text) {
  Asked asked;
  ngrams::NextTokens next(index);
  for (const bool warm : {false, true}) {
    ngrams::SuffixFollower follower(index);
    std::uint64_t sum = 0;
    const double seconds = bench::seconds_of([&] {
      for (const std::uint32_t token : text) {
        follower.push(token);
        sum += next.of(follower.match()).size();
      }
    });
    if (sum == 0) std::exit(70);
    if (warm) asked.per_second = static_cast<double>(text.size()) / seconds;
    follower.clear();
    double p = 0;
    const double of_words = bench::seconds_of([&] {
      for (const std::uint32_t token : text) {
        const auto all = static_cast<double>(index->followers(follower.match()).count);
        p += static_cast<double>(follower.push(token)) / all;
      }
    });
    if (!(p > 0)) std::exit(70);
    asked.words_per_second = static_cast<double>(text.size()) / of_words;
  }
  ngrams::SuffixFollower follower(index);
  for (std::size_t i = 0; i < kPeerQueries; ++i) {
    follower.push(text[i]);
    const auto match = follower.match();
    asked.suffixes.emplace_back(text.begin() + static_cast<std::ptrdiff_t>(i + 1 - match.length),
        text.begin() + static_cast<std::ptrdiff_t>(i + 1));
    asked.counts.push_back(index->followers(match).count);
  }
  return asked;
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t n = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 100'000'000;
  const char* const python = std::getenv("PEERS");
  std::string folder = fs::temp_directory_path() / "ngrams-bench.XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) return 73;
  const Words words = read_novels();
  {
    const Tokens text = stretches(words, n, 1);
    write_shard(folder + "/text.shard.zst", text, words.types);
    write_raw(folder + "/text.bin", text, words.types);
  }
  const shard::Dataset data({folder + "/text.shard.zst"});
  const double built = bench::seconds_of([&] {
    ngrams::BuildOptions options;
    options.memory = std::int64_t{16} << 30;
    ngrams::build(data, folder + "/index", options.cut(words.types, 1), 1);
  });
  const auto index = std::make_shared<const ngrams::Index>(std::vector{folder + "/index"});
  const Asked asked = ask(index, stretches(words, kQueries, 2));
  std::ofstream queries(folder + "/queries");
  for (std::size_t i = 0; i < asked.suffixes.size(); ++i) {
    queries << asked.counts[i];
    for (const std::uint32_t token : asked.suffixes[i]) queries << ' ' << token;
    queries << '\n';
  }
  queries.close();
  const double own_built = static_cast<double>(n) / built;
  int code = 0;
  for (const std::string peer : {"tokengrams", "infini-gram", "kenlm"}) {
    if (python == nullptr) break;
    constexpr int kNotThere = 69;
    const std::string command = "RAYON_NUM_THREADS=1 " + std::string(python) +
                                " tests/bench/ngrams_peer.py " + peer + " " + folder + " " +
                                std::to_string(words.types + 1) + " >/dev/null";
    const int status = std::system(command.c_str());
    if (status != 0) {
      if (WEXITSTATUS(status) != kNotThere) code = 1;
      continue;
    }
    double peer_built = 0, peer_asked = 0;
    std::ifstream(folder + "/peer") >> peer_built >> peer_asked;
    if (peer == "kenlm")
      bench::print("ngrams/word", asked.words_per_second, "words/s", "KenLM 5-gram", peer_asked,
          asked.words_per_second / peer_asked);
    else
      bench::print("ngrams/next", asked.per_second, "distributions/s",
          peer == "infini-gram" ? "infini-gram, of 1,000 occurrences" : peer, peer_asked,
          asked.per_second / peer_asked);
    bench::print("ngrams/build", own_built, "tokens/s",
        peer == "kenlm" ? "5-gram of kneser_ney.py" : peer, peer_built, own_built / peer_built);
  }
  fs::remove_all(folder);
  return code;
}
