#include "text/documents/encode_documents.h"

#include "core/parallel.h"
#include "text/documents/wikitext.h"
#include "text/tokenizer/utf8.h"

namespace text {
namespace {

const core::OrderedJson& member(
    const core::OrderedJson& of, const char* name, const std::string& origin) {
  const auto found = of.is_object() ? of.find(name) : of.end();
  if (!of.is_object() || found == of.end()) core::bad_data("{}: has no \"{}\"", origin, name);
  return *found;
}

std::string text_member(const core::OrderedJson& of, const char* name, const std::string& origin) {
  const auto& value = member(of, name, origin);
  if (!value.is_string()) core::bad_data("{}: \"{}\" is not a string", origin, name);
  return value.get<std::string>();
}

constexpr int kDeepest = 64;  // nesting limit of lists and objects in a line

// Holds the ids of one batch and the ends of its documents.
struct Encoded {
  struct Part {
    std::size_t end;  // index in ids
    std::uint64_t bytes, words;
    bool closes;
    std::vector<shard::Span> marks = {};  // relative to the document's first token
  };
  std::vector<std::uint32_t> ids;
  std::vector<Part> parts;
  std::string name;  // name of the documents
  std::uint64_t source_bytes = 0;
  LineFlaws flaws;
  std::string special;  // the first text of a special token found
};

// Each thread needs its own.
class BatchEncoder {
 public:
  BatchEncoder(const TokenizerPtr& tokenizer, const EncodeOptions& options)
      : tokenizer_(tokenizer), options_(options), encoder_(tokenizer->encoder()),
        texts_(options.field, options.bad_lines) {}

  void operator()(Batch& batch, Encoded& out) {
    out.ids.clear();
    out.parts.clear();
    out.source_bytes = batch.source_bytes;
    out.special.clear();
    out.name = batch.name;
    if (options_.pieces) {
      out.flaws = {};
      for (const auto& part : batch.parts) encode_pieces(batch, part, out);
      return;
    }
    out.flaws = texts_.each(batch, [&](const Batch::Part& part, std::string_view text) {
      const std::size_t start = out.ids.size();
      look_for_special(text, out);
      encoder_->encode(text, out.ids, part.continues);
      const bool page = batch.format == Format::wikitext;
      const std::string_view source = page ? batch.piece(part) : text;
      const std::uint64_t words =
          page ? wikitext_words(source) : count(text, part.in_word, out.ids.size() - start);
      if (part.closes && options_.end_of_document) out.ids.push_back(*options_.end_of_document);
      out.parts.push_back({out.ids.size(), source.size(), words, part.closes});
    });
  }

 private:
  void look_for_special(std::string_view text, Encoded& out) {
    if (options_.special == nullptr || found_) return;
    out.special = options_.special->find(text);
    found_ = !out.special.empty();
  }

  // Encodes a line, which is a document.
  void encode_pieces(const Batch& batch, const Batch::Part& part, Encoded& out) {
    const std::string origin = fmt::format("{}:{}", batch.source, part.line);
    const std::string_view line = batch.piece(part);
    const auto pieces = options_.pieces(core::parse_ordered_json(line, origin, kDeepest), origin);
    const std::size_t start = out.ids.size();
    Encoded::Part made{0, 0, 0, true};
    std::string whole;
    const auto mark = [&](std::size_t from) {
      if (from == out.ids.size()) return;
      if (!made.marks.empty() && made.marks.back().end == from - start)
        made.marks.back().end = out.ids.size() - start;
      else made.marks.push_back({from - start, out.ids.size() - start});
    };
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const std::size_t from = out.ids.size();
      encoder_->encode(pieces[i].text, out.ids, i > 0);
      if (pieces[i].learned) mark(from);
      whole += pieces[i].text;
    }
    look_for_special(whole, out);
    made.bytes = whole.size();
    made.words = count(whole, false, out.ids.size() - start);
    if (options_.end_of_document) {
      out.ids.push_back(*options_.end_of_document);
      if (!pieces.empty() && pieces.back().learned) mark(out.ids.size() - 1);
    }
    made.end = out.ids.size();
    out.parts.push_back(std::move(made));
  }

  std::uint64_t count(std::string_view text, bool in_word, std::size_t n_ids) const {
    if (tokenizer_->counts_newlines()) return n_ids;
    std::uint64_t words = count_words(text, in_word);
    if (options_.count_newlines)
      words += static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n'));
    return words;
  }

  TokenizerPtr tokenizer_;
  const EncodeOptions& options_;
  std::unique_ptr<Encoder> encoder_;
  PartTexts texts_;
  bool found_ = false;  // stop looking after the first
};

}  // namespace

LinePieces completion_pieces() {
  return [](const core::OrderedJson& line, const std::string& origin) {
    return std::vector<Piece>{{text_member(line, "prompt", origin), false},
        {text_member(line, "completion", origin), true}};
  };
}

LinePieces segment_pieces() {
  return [](const core::OrderedJson& line, const std::string& origin) {
    const auto& segments = member(line, "segments", origin);
    if (!segments.is_array()) core::bad_data("{}: \"segments\" is not a list", origin);
    std::vector<Piece> pieces;
    for (const auto& segment : segments) {
      const auto& label = member(segment, "label", origin + ": segments");
      if (!label.is_boolean())
        core::bad_data("{}: segments: \"label\" is neither true nor false", origin);
      pieces.push_back({text_member(segment, "text", origin + ": segments"), label.get<bool>()});
    }
    return pieces;
  };
}

EncodeTotals encode_documents(DocumentReader& reader, const TokenizerPtr& tokenizer,
    const EncodeOptions& options, shard::Writer& writer,
    const std::function<void(std::uint64_t)>& progress) {
  EncodeTotals totals;
  std::uint64_t bytes = 0, words = 0;  // of the unfinished document
  core::work_in_order<Batch, Encoded>(
      options.jobs, [&](Batch& batch) { return reader.next(batch); },
      [&]() -> std::function<void(Batch&, Encoded&)> {
        auto encoder = std::make_shared<BatchEncoder>(tokenizer, options);
        return [encoder](Batch& batch, Encoded& out) { (*encoder)(batch, out); };
      },
      [&](Encoded& encoded) {
        std::size_t begin = 0;
        for (const auto& part : encoded.parts) {
          writer.write(std::span(encoded.ids).subspan(begin, part.end - begin));
          begin = part.end;
          bytes += part.bytes;
          words += part.words;
          if (!part.closes) continue;
          writer.end_document(bytes, words, encoded.name, part.marks);
          for (const auto& mark : part.marks) totals.marked += mark.end - mark.begin;
          ++totals.documents;
          totals.source_bytes += bytes;
          totals.source_words += words;
          bytes = words = 0;
        }
        totals.tokens += encoded.ids.size();
        totals.flaws.add(encoded.flaws);
        if (totals.special.empty()) totals.special = encoded.special;
        progress(encoded.source_bytes);
      });
  return totals;
}

std::optional<std::uint32_t> end_of_document_id(
    const Tokenizer& tokenizer, const std::string& name) {
  if (name.empty()) return tokenizer.end_of_document();
  if (name == "none") return std::nullopt;
  const auto id = tokenizer.id_of(name);
  if (!id)
    core::bad_usage(
        "--end-of-document: the tokenizer has no token {}; give another, or none", name);
  return id;
}

}  // namespace text
