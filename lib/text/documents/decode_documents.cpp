#include "text/documents/decode_documents.h"

#include <algorithm>
#include <span>
#include <utility>

#include "core/error.h"
#include "core/json.h"
#include "text/formats/tokenizer_json.h"

namespace text {

void decode_documents(const shard::Dataset& data, const TokenizerPtr& tokenizer,
                      const DocumentOptions& options, std::optional<std::uint32_t> end_of_document,
                      core::ByteSink& out, const std::function<void(std::uint64_t)>& progress) {
  constexpr std::uint64_t kChunk = std::uint64_t{1} << 18;
  const bool json = options.format == Format::jsonl;
  const bool by_newline = options.format == Format::lines || options.format == Format::wikitext;
  const std::string after = by_newline ? "\n" : options.separator;
  StreamDecoder decoder(tokenizer);
  std::vector<std::uint32_t> ids;
  std::string text;
  const auto& ends = data.documents().end;
  std::uint64_t at = 0, chunk_start = 0;
  for (std::size_t d = 0; d < std::max<std::size_t>(ends.size(), 1); ++d) {
    const std::uint64_t end = d < ends.size() ? ends[d] : data.size();
    decoder.restart();
    for (; at < end; ++at) {
      if (at == chunk_start + ids.size()) {
        chunk_start = at;
        ids.resize(std::min(kChunk, data.size() - at));
        data.read(at, ids);
        progress(at);
      }
      const std::uint32_t id = ids[at - chunk_start];
      if (id != end_of_document) decoder.push(id, text);
      if (!json && text.size() >= kChunk) {
        out.write(text);
        text.clear();
      }
    }
    if (d >= ends.size()) break;
    if (json) {
      core::OrderedJson line;
      line[options.field] = text;
      out.write(core::dump(line));
      out.write("\n");
      text.clear();
    } else {
      text += after;
    }
  }
  out.write(text);
}

TokenizerPtr tokenizer_of(const shard::Dataset& data, const std::string& given) {
  const std::string& stored = data.header().tokenizer;
  if (given.empty()) return parse_tokenizer(stored, data.name() + ": tokenizer");
  auto tokenizer = load_tokenizer(given);
  if (!stored.empty() && tokenizer->json() != stored)
    core::fail(
        core::Code::bad_data,
        "{}: was encoded by another tokenizer (fingerprint {}) than {} ({}); leave -t out to use "
        "its own",
        data.name(), core::hash128(stored).hex(), given, tokenizer->fingerprint().hex());
  return tokenizer;
}

std::optional<std::uint32_t> end_of_document_of(const shard::Dataset& data,
                                                const Tokenizer& tokenizer) {
  for (const auto& entry : data.provenance()) {
    const auto options = entry.find("options");
    if (options == entry.end() || !options->is_object()) continue;
    const auto name = options->find("end_of_document");
    if (name == options->end()) continue;
    return name->is_string() ? tokenizer.id_of(name->get<std::string>()) : std::nullopt;
  }
  return tokenizer.end_of_document();
}

ShardText::ShardText(const std::vector<std::string>& files, const std::string& given,
                     TextOptions options)
    : data_(files), options_(std::move(options)) {
  shard::expect_kind(data_.header(), {shard::Kind::tokens, shard::Kind::pairs}, data_.name());
  tokenizer_ = tokenizer_of(data_, given);
  const auto& name = options_.end_of_document;
  end_of_document_ =
      name.empty() ? end_of_document_of(data_, *tokenizer_) : end_of_document_id(*tokenizer_, name);
}

void ShardText::write(core::ByteSink& out,
                      const std::function<void(std::uint64_t)>& progress) const {
  decode_documents(data_, tokenizer_, options_.documents(), end_of_document_, out, progress);
}

}  // namespace text
