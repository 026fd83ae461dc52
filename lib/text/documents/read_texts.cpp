#include "text/documents/read_texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "core/error.h"
#include "core/unnamed_file.h"
#include "shard/text_reader.h"
#include "text/documents/documents.h"
#include "text/documents/encode_shard.h"

namespace text {
namespace {

constexpr std::uint64_t kWorthAShard = 100'000'000;  // bytes of text

// `files` under the name that messages have of them.
struct NamedText {
  std::string path, name;

  std::string renamed(std::string line) const {
    if (const auto at = line.find(path); path != name && at != std::string::npos)
      line.replace(at, path.size(), name);
    return line;
  }
};

class TextShards {
 public:
  explicit TextShards(ReadTexts how) : how_(std::move(how)) {}

  std::shared_ptr<const core::RandomSource> operator()(const NamedText& text) {
    if (!tokenizer_) tokenizer_ = how_.tokenizer();
    TextOptions options;
    options.invalid = "error";
    if (const auto line = options.follow({text.path}); !line.empty()) how_.note(text.renamed(line));
    options.by_content = text.path != text.name;
    core::UnnamedFile out(text.name);
    try {
      const auto made = encode_shard({text.path}, tokenizer_, options, false, how_.jobs, out,
                                     [](std::uint64_t) {});
      for (const auto& line : made.notes) how_.note(text.renamed(line));
      how_.note(fmt::format("{}: a text, read with {} tokenizer: {}", text.name, how_.whose,
                            made.summary()));
      if (made.totals.source_bytes > kWorthAShard)
        how_.note(fmt::format("{}: tokenize makes a shard of it, which is read at once each time",
                              text.name));
    } catch (const core::Error& error) {
      throw core::Error(error.code(), text.renamed(error.what()));
    }
    return out.contents();
  }

 private:
  ReadTexts how_;
  TokenizerPtr tokenizer_;
};

}  // namespace

void read_texts(ReadTexts how) {
  const auto encoder = std::make_shared<TextShards>(std::move(how));
  shard::read_texts_by([encoder](const std::string& path, const std::string& name) {
    return (*encoder)({path, name});
  });
}

}  // namespace text
