#pragma once
// Shards of bytes for the tests, in a folder that goes with them.

#include <cstdlib>
#include <filesystem>
#include <string>

#include "core/io.h"
#include "core/rng.h"
#include "text/documents/encode_shard.h"
#include "unit/text/texts.h"

namespace sample {

struct Shard {
  std::filesystem::path folder;
  std::string path;
  explicit Shard(const std::string& text, const std::string& format = "lines") {
    std::string name = std::filesystem::temp_directory_path() / "shard-test.XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    folder = name;
    path = folder / "x.shard.zst";
    core::write_file((folder / "text").string(), text);
    text::TextOptions options;
    options.format = format;
    core::Output out(path);
    text::encode_shard({folder / "text"}, tokenizer("bytes"), options, false, 1, out,
                       [](std::uint64_t) {});
    out.commit();
  }
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;
  ~Shard() { std::filesystem::remove_all(folder); }
};

/// So many words, of which some are frequent.
inline std::string words(int n, int seed) {
  core::Rng rng(static_cast<std::uint64_t>(seed));
  std::string text;
  for (int i = 0; i < n; ++i) {
    const double share = rng.uniform();
    text += (i > 0 ? " w" : "w") + std::to_string(static_cast<int>(60 * share * share * share));
  }
  return text;
}

}  // namespace sample
