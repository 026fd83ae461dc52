#include "shard/dataset.h"
#include "tessera/inside.h"
#include "tessera/shard.h"
#include "text/documents/encode_shard.h"
#include "text/formats/tokenizer_json.h"
#include "text/tokenizer/utf8.h"

namespace tessera {

Tokenizer::Tokenizer(const std::string& path)
    : tokenizer_(translated([&] { return text::load_tokenizer(path); })) {}
Tokenizer::Tokenizer(std::shared_ptr<const text::Tokenizer> tokenizer)
    : tokenizer_(std::move(tokenizer)) {}

std::size_t Tokenizer::size() const { return tokenizer_->size(); }
std::string Tokenizer::token(std::uint32_t id) const { return std::string(tokenizer_->token(id)); }
std::string Tokenizer::json() const { return tokenizer_->json(); }
std::optional<std::uint32_t> Tokenizer::end_of_document() const {
  return tokenizer_->end_of_document();
}

std::vector<std::uint32_t> Tokenizer::encode(std::string_view text) const {
  return translated([&] { return tokenizer_->encode(text); });
}

std::string Tokenizer::decode(std::span<const std::uint32_t> ids) const {
  return translated([&] { return tokenizer_->decode(ids); });
}

Shard::Shard(const std::vector<std::string>& paths)
    : data_(translated([&] {
        auto data = std::make_shared<const shard::Dataset>(paths);
        shard::expect_kind(data->header(), {shard::Kind::tokens}, data->name());
        return data;
      })) {}

std::uint64_t Shard::size() const { return data_->size(); }
std::uint64_t Shard::vocabulary() const { return data_->header().vocabulary; }
std::vector<std::uint64_t> Shard::document_ends() const { return data_->documents().end; }
std::string Shard::fingerprint() const { return data_->fingerprint().hex(); }

void Shard::read(std::uint64_t first, std::span<std::uint32_t> tokens) const {
  translated([&] { data_->read(first, tokens); });
}

Tokenizer Shard::tokenizer() const {
  return translated([&] {
    const auto& json = data_->header().tokenizer;
    if (json.empty()) core::bad_data("{}: the shard has no tokenizer", data_->name());
    return Tokenizer(text::parse_tokenizer(json, data_->name()));
  });
}

void write_shard(
    const std::string& path, const Tokenizer& tokenizer, const std::vector<std::string>& texts) {
  translated([&] {
    core::Output out(path);
    shard::Writer writer(out, text::header_of(tokenizer.shared()));
    const auto encoder = tokenizer.shared().encoder();
    std::vector<std::uint32_t> ids;
    for (const auto& words : texts) {
      ids.clear();
      encoder->encode(words, ids);
      if (const auto end = tokenizer.end_of_document()) ids.push_back(*end);
      writer.write(std::span<const std::uint32_t>(ids));
      bool in_word = false;
      writer.end_document(words.size(), text::count_words(words, in_word));
    }
    writer.finish();
    out.commit();
  });
}

}  // namespace tessera
