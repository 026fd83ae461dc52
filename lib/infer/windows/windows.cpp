#include "infer/windows/windows.h"

#include "text/documents/decode_documents.h"
#include "text/formats/tokenizer_json.h"

namespace infer {
namespace {

// Pairs are sorted within this number of batches: enough for little padding, few enough for bounded
// memory. (With stores, the search takes most of the time.)
constexpr std::int64_t kSortedBatches = 16;

std::uint64_t length_of(const std::vector<Span>& stream) {
  return stream.back().target + static_cast<std::uint64_t>(stream.back().length) -
         stream.front().target;
}

constexpr std::int64_t kBoundless = std::int64_t{1} << 30;  // a window that no target fills

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
    const bool marked = plan_.marked && plan_.layout.without_mark && end > begin;
    target_ = begun ? begin : begin + 1;
    done_ = in_stream_ = 0;
    inputs_ =
        static_cast<std::int64_t>(end - (marked ? 1 : 0)) - static_cast<std::int64_t>(target_);
    if (inputs_ > 0) return true;
  }
  return false;
}

// Sets the stream's next window, if there is one: inputs [begin, end) of the stream.
bool Windows::lay(Span& span) const {
  const WindowLayout& layout = plan_.layout;
  const std::int64_t inputs = plan_.inputs();
  std::int64_t end = (layout.grows ? plan_.stride : inputs) + in_stream_ * plan_.stride;
  std::int64_t begin = plan_.carried ? done_ : std::max<std::int64_t>(0, end - inputs);
  if (end > inputs_ && (done_ == inputs_ || layout.whole_only)) return false;
  end = std::min(end, inputs_);
  if (layout.last_full) begin = std::max<std::int64_t>(0, end - inputs);
  span.length = end - begin;
  span.first_new = std::max<std::int64_t>(0, done_ - begin);
  span.first_scored = std::max(span.first_new, plan_.unscored());
  if (span.first_scored >= span.length) return false;
  span.counted = span.length - span.first_scored;
  if (layout.one_less && in_stream_ > 0 && begin <= done_) --span.counted;
  span.target = target_ + static_cast<std::uint64_t>(begin);
  span.stream = stream_;
  span.number = number_;
  span.fresh = in_stream_ == 0;
  span.begins = begin == 0;
  return true;
}

std::optional<Span> Windows::next() {
  Span span{};
  while (stream_ < 0 || !lay(span))
    if (!next_stream()) return std::nullopt;
  done_ = static_cast<std::int64_t>(span.target - target_) + span.length;
  ++in_stream_;
  ++number_;
  return span;
}

std::vector<double> scored_shares(
    const WindowPlan& plan, const shard::Documents& documents, std::uint64_t elements) {
  std::vector<double> counted(documents.size());
  const auto tokens = [&](std::uint64_t begin, std::uint64_t end) {
    if (!plan.learned) return static_cast<double>(end - begin);
    const auto marks = shard::marks_within(documents, begin, end);
    return static_cast<double>(
        core::sum_of(marks, [](const auto& mark) { return mark.end - mark.begin; }));
  };
  Windows windows(plan, documents, elements);
  std::size_t document = 0;
  while (const auto span = windows.next()) {
    std::uint64_t at = span->target + static_cast<std::uint64_t>(span->first_scored);
    const std::uint64_t end = span->target + static_cast<std::uint64_t>(span->length);
    const double weight = static_cast<double>(span->counted) / static_cast<double>(end - at);
    while (at < end && document < documents.size()) {
      const std::uint64_t to = std::min(end, documents.end[document]);
      if (to > at) counted[document] += weight * tokens(at, to);
      at = std::max(at, to);
      if (documents.end[document] <= at) ++document;
    }
  }
  std::uint64_t begin = 0;
  for (std::size_t i = 0; i < counted.size(); begin = documents.end[i++]) {
    const bool closes = plan.by_document || i + 1 == counted.size();
    const bool marked = closes && plan.marked && plan.layout.without_mark;
    const auto n = static_cast<double>(documents.end[i] - begin) - (marked ? 1 : 0);
    const bool source = plan.pairs && i % 2 == 0;
    counted[i] = n > 0 ? counted[i] / n : source ? 0 : 1;
  }
  return counted;
}

nn::Batch batch_of(const std::vector<Span>& spans, const shard::Dataset& data,
    const WindowPlan& plan, std::int64_t vocabulary) {
  std::vector<batch::Row> rows;
  std::vector<std::int64_t> pairs;
  for (const Span& span : spans) {
    rows.push_back({span.target - 1, span.length, span.stream, span.number, span.fresh,
        span.first_scored, span.begins ? plan.beginning : plan.window_token});
    pairs.push_back(span.stream / 2);
  }
  nn::Batch made = batch::read_rows(data, rows, vocabulary);
  if (data.header().kind == shard::Kind::pairs)
    made.source = batch::read_sources(data, pairs, vocabulary);
  return made;
}

nn::Batch context_batch(const std::vector<std::int64_t>& tokens, std::int64_t begin,
    std::int64_t end, std::int64_t number) {
  auto batch = nn::Batch::padding(1, end - begin);
  batch.inputs[0].copy_(torch::tensor(tokens).slice(0, begin, end));
  batch.fresh.fill_(number == 0);
  batch.place.run.fill_(0), batch.place.segment.fill_(number);
  batch.place.position[0].copy_(torch::arange(begin, end));
  return batch;
}

void learn_window(DynamicWeights& learner, nn::Model& model,
    const std::vector<std::int64_t>& tokens, const Span& span, std::int64_t window_token) {
  const auto first = tokens.begin() + static_cast<std::ptrdiff_t>(span.target) - 1;
  std::vector<std::int64_t> inputs(first, first + span.length);
  if (span.target > 1 && window_token >= 0) inputs[0] = window_token;
  nn::Batch text = context_batch(inputs, 0, span.length, span.number);
  text.targets[0].copy_(torch::tensor(std::vector(first + 1, first + 1 + span.length)));
  text.weight[0].slice(0, span.first_scored).fill_(1);
  text = text.to(model.head->weights()[0].device());
  learner.learn(text, [&] { return model.architecture->forward(text, nullptr); });
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

WindowBatches::WindowBatches(const WindowPlan& plan, const shard::Dataset& data, bool sorted)
    : plan_(plan), windows_(plan, data.documents(), data.size()), sorted_(sorted) {
  fill();
}

std::optional<WindowBatch> WindowBatches::next() {
  if (ahead_.empty()) return std::nullopt;
  WindowBatch batch;
  std::int64_t longest = 0;
  while (!ahead_.empty()) {
    longest = std::max(longest, ahead_.front().length);
    const auto tokens = longest * static_cast<std::int64_t>(batch.spans.size() + 1);
    if (!batch.spans.empty() && (plan_.carried || tokens > plan_.batch_tokens)) break;
    batch.spans.push_back(ahead_.front());
    ahead_.pop_front();
    if (!sorted_) fill();
  }
  batch.last = ahead_.empty();
  if (!sorted_ && (!plan_.carried || batch.spans[0].fresh)) ++group_;
  batch.group = group_;
  if (sorted_ && batch.last) fill();
  return batch;
}

void WindowBatches::fill() {
  if (sorted_) {
    sort_some();
  } else if (const auto span = windows_.next()) {
    ahead_.push_back(*span);
  }
}

// Sorts streams within a few batches, so that streams of similar length share a forward pass.
void WindowBatches::sort_some() {
  std::vector<std::vector<Span>> streams;
  std::int64_t tokens = 0;
  ++group_;
  for (; more_; more_ = (waiting_ = windows_.next()).has_value()) {
    if (waiting_) {
      if (waiting_->fresh) {
        if (tokens >= kSortedBatches * plan_.batch_tokens) break;
        streams.emplace_back();
      }
      streams.back().push_back(*waiting_);
      tokens += waiting_->length;
    }
  }
  std::ranges::stable_sort(streams, {}, [](const auto& stream) { return length_of(stream); });
  for (const auto& stream : streams) ahead_.insert(ahead_.end(), stream.begin(), stream.end());
}

void check_pairs(const shard::Dataset& data, const nn::Model& model) {
  batch::check_pairs(data);
  if (!nn::arch_facts(model.options.arch).reads_source)
    core::bad_data("{}: contains sentence pairs, but a model of architecture {} reads tokens",
        data.name(), model.options.arch);
}

WindowPlan pair_windows(
    const shard::Dataset& data, const nn::Model& model, std::int64_t batch_tokens) {
  check_pairs(data, model);
  WindowPlan windows;
  windows.pairs = true;
  windows.beginning = batch::last_token(data, batch::target_of(data.documents(), 0));
  windows.window = windows.stride = model.architecture->context().value_or(kBoundless);
  windows.by_document = true;
  windows.batch_tokens = batch_tokens;
  return windows;
}

}  // namespace infer
