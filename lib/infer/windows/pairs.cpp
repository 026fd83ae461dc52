#include "infer/windows/pairs.h"

#include "infer/windows/windows.h"
#include "text/documents/decode_documents.h"
#include "text/formats/tokenizer_json.h"

namespace infer {
namespace {

constexpr std::int64_t kBoundless = std::int64_t{1} << 30;  // a window that no target fills

Side document_of(const shard::Documents& documents, std::size_t document) {
  const auto begin = document == 0 ? 0 : documents.end[document - 1];
  return {begin, static_cast<std::int64_t>(documents.end[document] - begin)};
}

std::vector<std::uint32_t> read(const shard::Dataset& data, const Side& side) {
  std::vector<std::uint32_t> tokens(static_cast<std::size_t>(side.length));
  data.read(side.begin, std::span(tokens));
  return tokens;
}

}  // namespace

Side source_of(const shard::Documents& documents, std::int64_t pair) {
  return document_of(documents, 2 * static_cast<std::size_t>(pair));
}

Side target_of(const shard::Documents& documents, std::int64_t pair) {
  return document_of(documents, 2 * static_cast<std::size_t>(pair) + 1);
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
  if (!mark || read(data, document_of(documents, 0)).back() != *mark)
    core::bad_data(
        "{}: its sentences do not end with an end-of-document token; "
        "use a tokenizer that has one",
        data.name());
}

void check_pairs(const shard::Dataset& data, const nn::Model& model) {
  check_pairs(data);
  if (!nn::arch_facts(model.options.arch).reads_source)
    core::bad_data("{}: contains sentence pairs, but a model of architecture {} reads tokens",
        data.name(), model.options.arch);
}

WindowPlan pair_windows(
    const shard::Dataset& data, const nn::Model& model, std::int64_t batch_tokens) {
  check_pairs(data, model);
  WindowPlan windows;
  windows.pairs = true;
  windows.beginning = read(data, target_of(data.documents(), 0)).back();
  windows.window = windows.stride = model.architecture->context().value_or(kBoundless);
  windows.by_document = true;
  windows.batch_tokens = batch_tokens;
  return windows;
}

nn::Batch read_pairs(const shard::Dataset& data, const std::vector<std::int64_t>& pairs) {
  const auto& documents = data.documents();
  const auto rows = static_cast<std::int64_t>(pairs.size());
  std::int64_t steps = 0, places = 0;
  for (const auto pair : pairs) {
    steps = std::max(steps, target_of(documents, pair).length);
    places = std::max(places, source_of(documents, pair).length);
  }
  nn::Batch batch = nn::Batch::padding(rows, steps);
  batch.source = torch::full({rows, places}, -1, torch::kInt64);
  batch.fresh.fill_(true);
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto pair = pairs[static_cast<std::size_t>(row)];
    const Side side = target_of(documents, pair);
    const auto source = read(data, source_of(documents, pair)), target = read(data, side);
    if (source.back() != target.back())
      core::bad_data("{}: pair {} does not end with the end-of-document token", data.name(), pair);
    auto* const inputs = batch.inputs[row].data_ptr<std::int64_t>();
    inputs[0] = target.back();
    std::copy(target.begin(), target.end() - 1, inputs + 1);
    std::copy(target.begin(), target.end(), batch.targets[row].data_ptr<std::int64_t>());
    std::copy(source.begin(), source.end(), batch.source[row].data_ptr<std::int64_t>());
    const auto n = side.length, offset = static_cast<std::int64_t>(side.begin);
    batch.weight[row].narrow(0, 0, n).fill_(1);
    batch.place.run[row].narrow(0, 0, n).fill_(pair);
    batch.place.segment[row].narrow(0, 0, n).fill_(pair);
    batch.place.position[row].narrow(0, 0, n).copy_(torch::arange(offset, offset + n));
  }
  return batch;
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

}  // namespace infer
