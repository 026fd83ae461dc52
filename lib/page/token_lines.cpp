#include "core/json.h"
#include "page/page_writer.h"

namespace page {
namespace {

core::OrderedJson line_of(std::size_t number, const AnnotatedText& text) {
  const AnnotatedToken& token = text.tokens[number];
  core::OrderedJson line{{"number", number}, {"text", token.text}};
  if (!token.scored()) return line;
  line["nats"] = token.nats;
  if (token.compared()) line["beside"] = token.beside;
  if (token.rank >= 0) line["rank"] = token.rank;
  for (std::size_t i = 0; i < token.shares.size(); ++i)
    line["shares"][text.sources[i]] = token.shares[i];
  for (const auto& [word, p] : token.likely) line["likely"].push_back({{"text", word}, {"p", p}});
  for (const auto& context : token.contexts) {
    line["contexts"].push_back({{"store", context.store},
                                {"document", context.document},
                                {"row", context.row},
                                {"share", context.share},
                                {"context", context.text}});
    if (!context.source.empty()) line["contexts"].back()["source"] = context.source;
  }
  return line;
}

}  // namespace

void write_lines(core::ByteSink& sink, const AnnotatedText& text) {
  for (std::size_t i = 0; i < text.tokens.size(); ++i)
    sink.write(core::dump(line_of(i, text)) + "\n");
}

}  // namespace page
