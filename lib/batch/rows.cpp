#include "batch/rows.h"

#include "text/documents/decode_documents.h"
#include "text/formats/tokenizer_json.h"

namespace batch {
namespace {

void expect_inside(
    const std::vector<std::uint32_t>& tokens, const shard::Dataset& data, std::int64_t vocabulary) {
  const std::uint32_t largest = *std::max_element(tokens.begin(), tokens.end());
  if (largest >= static_cast<std::uint64_t>(vocabulary))
    core::bad_data(
        "{}: token {} is outside the model's vocabulary of {}; "
        "use the tokenizer that the model was trained with",
        data.name(), largest, vocabulary);
}

Side document_of(const shard::Documents& documents, std::size_t document) {
  const auto begin = document == 0 ? 0 : documents.end[document - 1];
  return {begin, static_cast<std::int64_t>(documents.end[document] - begin)};
}

}  // namespace

nn::Batch read_rows(const shard::Dataset& data, const std::vector<Row>& rows,
    std::optional<std::int64_t> vocabulary) {
  const auto steps = core::max_of(rows, &Row::length);
  nn::Batch made = nn::Batch::padding(std::ssize(rows), steps);
  std::vector<std::uint32_t> tokens;
  for (std::int64_t r = 0; r < std::ssize(rows); ++r) {
    const auto& row = rows[static_cast<std::size_t>(r)];
    made.fresh.data_ptr<bool>()[r] = row.fresh;
    if (row.length == 0) continue;
    tokens.resize(static_cast<std::size_t>(row.length) + 1);
    const std::size_t begins = row.first >= 0 ? 1 : 0;
    tokens[0] = static_cast<std::uint32_t>(row.first);
    data.read(row.begin + begins, std::span(tokens).subspan(begins));
    if (vocabulary) expect_inside(tokens, data, *vocabulary);
    const auto row_of = [&](const torch::Tensor& of) {
      return of.data_ptr<std::int64_t>() + r * steps;
    };
    std::copy(tokens.begin(), tokens.end() - 1, row_of(made.inputs));
    std::copy(tokens.begin() + 1, tokens.end(), row_of(made.targets));
    std::fill_n(row_of(made.place.run), row.length, row.run);
    std::fill_n(row_of(made.place.segment), row.length, row.segment);
    auto* const position = row_of(made.place.position);
    std::iota(position, position + row.length, static_cast<std::int64_t>(row.begin));
    made.weight[r].slice(0, row.context, row.length).fill_(1);
  }
  return made;
}

Side source_of(const shard::Documents& documents, std::int64_t pair) {
  return document_of(documents, 2 * static_cast<std::size_t>(pair));
}

Side target_of(const shard::Documents& documents, std::int64_t pair) {
  return document_of(documents, 2 * static_cast<std::size_t>(pair) + 1);
}

std::uint32_t last_token(const shard::Dataset& data, const Side& side) {
  std::uint32_t last = 0;
  data.read(side.begin + static_cast<std::uint64_t>(side.length) - 1, std::span(&last, 1));
  return last;
}

torch::Tensor read_sources(const shard::Dataset& data, const std::vector<std::int64_t>& pairs,
    std::optional<std::int64_t> vocabulary) {
  const auto longest = core::max_of(
      pairs, [&](const auto pair) { return source_of(data.documents(), pair).length; });
  auto ids = torch::full({std::ssize(pairs), longest}, -1, torch::kInt64);
  std::vector<std::uint32_t> source;
  for (std::int64_t row = 0; row < std::ssize(pairs); ++row) {
    const Side side = source_of(data.documents(), pairs[static_cast<std::size_t>(row)]);
    source.resize(static_cast<std::size_t>(side.length));
    data.read(side.begin, std::span(source));
    if (vocabulary) expect_inside(source, data, *vocabulary);
    std::copy(source.begin(), source.end(), ids.data_ptr<std::int64_t>() + row * longest);
  }
  return ids;
}

void check_pairs(const shard::Dataset& data) {
  shard::expect_kind(data.header(), {shard::Kind::pairs}, data.name());
  const auto& documents = data.documents();
  if (documents.size() < 2) core::bad_data("{}: has no sentence pair", data.name());
  for (std::size_t i = 0; i < documents.size(); ++i)
    if (document_of(documents, i).length == 0)
      core::bad_data("{}: pair {} has an empty {}; tokenize with an end-of-document token",
          data.name(), i / 2, i % 2 == 0 ? "source" : "target");
  if (data.header().tokenizer.empty()) return;  // read_pairs checks that all pairs end alike
  const auto tokenizer = text::parse_tokenizer(data.header().tokenizer, data.name());
  const auto mark = text::end_of_document_of(data, *tokenizer);
  if (!mark || last_token(data, document_of(documents, 0)) != *mark)
    core::bad_data(
        "{}: its sentences do not end with an end-of-document token; "
        "use a tokenizer that has one",
        data.name());
}

nn::Batch read_pairs(const shard::Dataset& data, const std::vector<std::int64_t>& pairs) {
  std::vector<Row> rows;
  for (const auto pair : pairs) {
    const Side source = source_of(data.documents(), pair),
               target = target_of(data.documents(), pair);
    const auto mark = last_token(data, target);
    if (last_token(data, source) != mark)
      core::bad_data("{}: pair {} does not end with the end-of-document token", data.name(), pair);
    rows.push_back({target.begin - 1, target.length, pair, pair, true, 0, mark});
  }
  nn::Batch made = read_rows(data, rows);
  made.place.position += made.place.run.ge(0);  // those of the targets
  made.source = read_sources(data, pairs);
  return made;
}

std::vector<std::vector<std::int64_t>> group_pairs(const shard::Documents& documents,
    const std::vector<std::int64_t>& order, std::int64_t batch_tokens) {
  std::vector<std::vector<std::int64_t>> groups;
  std::int64_t longest = 0;
  for (const auto pair : order) {
    const auto length = target_of(documents, pair).length;
    longest = std::max(longest, length);
    if (groups.empty() || longest * (std::ssize(groups.back()) + 1) > batch_tokens) {
      groups.emplace_back();
      longest = length;
    }
    groups.back().push_back(pair);
  }
  return groups;
}

std::optional<std::int64_t> chosen_beginning(
    const std::string& begin, const text::Tokenizer* tokenizer, const std::string& name) {
  if (begin == "none") return -1;
  if (begin == "auto") {
    if (tokenizer == nullptr || tokenizer->text_template().begin.size() != 1) return std::nullopt;
    return tokenizer->text_template().begin[0];
  }
  if (tokenizer == nullptr) core::bad_usage("--bos {}: {} has no tokenizer", begin, name);
  const auto id = tokenizer->id_of(begin);
  if (!id)
    core::bad_usage(
        "--bos {}: not a token of the tokenizer of {}; give auto, none or a token", begin, name);
  return *id;
}

}  // namespace batch
