#pragma once
// Makes shards of bytes for the tests, in a temporary folder.

#include <string>

#include "core/io.h"
#include "core/rng.h"
#include "text/documents/encode_shard.h"
#include "unit/temporary_folder.h"
#include "unit/text/texts.h"

namespace sample {

struct Shard {
  TemporaryFolder folder;
  std::string path = folder / "x.shard.zst";
  explicit Shard(const std::string& text, const std::string& format = "lines") {
    core::write_file(folder / "text", text);
    text::TextOptions options;
    options.format = format;
    core::Output out(path);
    text::encode_shard(
        {folder / "text"}, tokenizer("bytes"), options, false, 1, out, [](std::uint64_t) {});
    out.commit();
  }
};

/// Returns a text of the given number of words, some of which are frequent.
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
