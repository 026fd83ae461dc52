#include "infer/windows/windows.h"

#include <algorithm>

#include "core/error.h"
#include "infer/windows/pairs.h"
#include "text/documents/decode_documents.h"
#include "text/formats/tokenizer_json.h"

namespace infer {
namespace {

void expect_inside(const std::vector<std::uint32_t>& tokens, const shard::Dataset& data,
                   std::int64_t vocabulary) {
  const std::uint32_t largest = *std::max_element(tokens.begin(), tokens.end());
  if (largest >= static_cast<std::uint64_t>(vocabulary))
    core::fail(core::Code::bad_data,
               "{}: token {} is outside the model's vocabulary of {}; use the tokenizer that the "
               "model was trained with",
               data.name(), largest, vocabulary);
}

// The documents before the spans' own: (rows, S), -1 is padding.
torch::Tensor sources_of(const std::vector<Span>& spans, const shard::Dataset& data,
                         std::int64_t vocabulary) {
  std::vector<std::vector<std::uint32_t>> sources;
  std::size_t longest = 0;
  for (const Span& span : spans) {
    const Side side = source_of(data.documents(), span.stream / 2);
    auto& source = sources.emplace_back(static_cast<std::size_t>(side.length));
    data.read(side.begin, std::span(source));
    expect_inside(source, data, vocabulary);
    longest = std::max(longest, source.size());
  }
  auto ids =
      torch::full({std::ssize(sources), static_cast<std::int64_t>(longest)}, -1, torch::kInt64);
  for (std::size_t row = 0; row < sources.size(); ++row)
    std::copy(sources[row].begin(), sources[row].end(),
              ids.data_ptr<std::int64_t>() + row * longest);
  return ids;
}

}  // namespace

Windows::Windows(const WindowPlan& plan, const shard::Documents& documents, std::uint64_t elements)
    : plan_(plan), documents_(documents), elements_(elements) {}

bool Windows::next_stream() {
  const bool whole = !plan_.by_document;
  const std::size_t streams = whole ? 1 : documents_.size();
  const bool begun = plan_.beginning >= 0;
  while (document_ < streams) {
    const std::uint64_t begin = document_ == 0 ? 0 : documents_.end[document_ - 1];
    const std::uint64_t end = whole ? elements_ : documents_.end[document_];
    stream_ = static_cast<std::int64_t>(document_++);
    if (plan_.pairs && stream_ % 2 == 0) continue;  // a source
    target_ = begun ? begin : begin + 1;
    scored_ = 0;
    if (end > target_) {
      inputs_ = static_cast<std::int64_t>(end - target_);
      return true;
    }
  }
  return false;
}

std::optional<Span> Windows::next() {
  if (scored_ == inputs_ && !next_stream()) return std::nullopt;
  Span span;
  span.fresh = scored_ == 0;
  const std::int64_t size = span.fresh ? plan_.window : plan_.stride;
  const std::int64_t context = span.fresh || plan_.carried ? 0 : plan_.window - plan_.stride;
  const std::int64_t new_tokens = std::min(size, inputs_ - scored_);
  span.target = target_ + static_cast<std::uint64_t>(scored_ - context);
  span.length = context + new_tokens;
  span.first_scored = context;
  span.stream = stream_;
  span.number = number_++;
  scored_ += new_tokens;
  return span;
}

nn::Batch batch_of(const std::vector<Span>& spans, const shard::Dataset& data,
                   const WindowPlan& plan, std::int64_t vocabulary) {
  const auto rows = static_cast<std::int64_t>(spans.size());
  std::int64_t steps = 0;
  for (const Span& span : spans) steps = std::max(steps, span.length);
  nn::Batch batch;
  batch.inputs = torch::zeros({rows, steps}, torch::kInt64);
  batch.targets = torch::zeros({rows, steps}, torch::kInt64);
  batch.weight = torch::zeros({rows, steps});
  batch.fresh = torch::zeros({rows}, torch::kBool);
  batch.place = {torch::full({rows, steps}, -1, torch::kInt64),
                 torch::zeros({rows, steps}, torch::kInt64),
                 torch::zeros({rows, steps}, torch::kInt64)};
  std::vector<std::uint32_t> tokens;
  for (std::int64_t row = 0; row < rows; ++row) {
    const Span& span = spans[static_cast<std::size_t>(row)];
    const auto n = static_cast<std::size_t>(span.length);
    const std::int64_t first = span.fresh ? plan.beginning : plan.window_token;
    const bool begins = first >= 0;
    tokens.resize(n + 1);
    if (begins) tokens[0] = static_cast<std::uint32_t>(first);
    data.read(span.target - (begins ? 0 : 1), std::span(tokens).subspan(begins ? 1 : 0));
    expect_inside(tokens, data, vocabulary);
    std::copy_n(tokens.begin(), n, batch.inputs.data_ptr<std::int64_t>() + row * steps);
    std::copy_n(tokens.begin() + 1, n, batch.targets.data_ptr<std::int64_t>() + row * steps);
    const auto position = static_cast<std::int64_t>(span.target) - 1;
    batch.weight[row].slice(0, span.first_scored, span.length).fill_(1);
    batch.fresh[row].fill_(span.fresh);
    batch.place.run[row].slice(0, 0, span.length).fill_(span.stream);
    batch.place.segment[row].slice(0, 0, span.length).fill_(span.number);
    batch.place.position[row]
        .slice(0, 0, span.length)
        .copy_(torch::arange(position, position + span.length));
  }
  if (data.header().kind == shard::Kind::pairs) batch.source = sources_of(spans, data, vocabulary);
  return batch;
}

std::int64_t beginning_token(const shard::Dataset& data) {
  const auto& documents = data.documents();
  if (data.header().tokenizer.empty() || documents.size() == 0 || documents.end[0] == 0) return -1;
  const auto tokenizer = text::parse_tokenizer(data.header().tokenizer, data.name());
  const auto mark = text::end_of_document_of(data, *tokenizer);
  std::uint32_t last = 0;
  data.read(documents.end[0] - 1, std::span(&last, 1));
  return mark && last == *mark ? static_cast<std::int64_t>(last) : -1;
}

}  // namespace infer
