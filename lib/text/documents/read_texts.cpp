#include "text/documents/read_texts.h"

#include <fmt/format.h>

#include <memory>

#include "core/unnamed_file.h"
#include "shard/text_reader.h"
#include "text/documents/encode_shard.h"

namespace text {
namespace {

constexpr std::uint64_t kWorthAShard = 100'000'000;  // bytes of text

class TextShards {
 public:
  explicit TextShards(ReadTexts how) : how_(std::move(how)) {}

  std::shared_ptr<const core::RandomSource> operator()(const std::string& path,
                                                       const std::string& name) {
    if (!tokenizer_) tokenizer_ = how_.tokenizer();
    TextOptions options;
    options.invalid = "error";
    const auto format = options.follow({path});
    options.by_content = path != name;
    if (path != name) options.name = name;
    core::UnnamedFile out(name);
    const auto made =
        encode_shard({path}, tokenizer_, options, false, how_.jobs, out, [](std::uint64_t) {});
    if (!format.empty()) how_.note(format);
    for (const auto& line : made.notes) how_.note(line);
    how_.note(fmt::format("{}: is a text, encoded with {} tokenizer: {}", name, how_.whose,
                          made.summary()));
    if (made.totals.source_bytes > kWorthAShard)
      how_.note(fmt::format("{}: encode it once with tokenize to save this time", name));
    return out.contents();
  }

 private:
  ReadTexts how_;
  TokenizerPtr tokenizer_;
};

}  // namespace

void read_texts(ReadTexts how) {
  const auto shards = std::make_shared<TextShards>(std::move(how));
  shard::read_texts_by(
      [shards](const std::string& path, const std::string& name) { return (*shards)(path, name); });
}

}  // namespace text
