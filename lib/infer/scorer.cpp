#include "infer/scorer.h"

#include <chrono>
#include <cmath>

#include "core/error.h"
#include "infer/windows.h"

namespace infer {
namespace {

using core::Code;
using core::fail;
using torch::Tensor;

// Evaluation mode and no gradient while it lives. (Not InferenceMode: tables that a model makes on
// first use must serve training afterwards.)
class Evaluating {
 public:
  explicit Evaluating(nn::Model& model) : model_(model), training_(model.is_training()) {
    model_.eval();
  }
  ~Evaluating() { model_.train(training_); }
  Evaluating(const Evaluating&) = delete;
  Evaluating& operator=(const Evaluating&) = delete;

 private:
  nn::Model& model_;
  bool training_;
  torch::NoGradGuard no_gradient_;
};

// Source bytes and words of what is scored; see Totals.
void count_text(Totals& totals, const shard::Documents& documents, const WindowOptions& windows) {
  std::uint64_t begin = 0;
  bool first = true;  // of a stream
  for (std::size_t i = 0; i < documents.size(); ++i) {
    const auto n = static_cast<double>(documents.end[i] - begin);
    begin = documents.end[i];
    double share = 1;
    if (n > 0) {
      if (windows.beginning < 0 && (first || windows.by_document())) share = (n - 1) / n;
      first = false;
    }
    totals.bytes += share * static_cast<double>(documents.bytes[i]);
    totals.words += share * static_cast<double>(documents.words[i]);
  }
}

class Walk {
 public:
  Walk(nn::Model& model, const shard::Dataset& data, const WindowOptions& windows,
       const MemoryOptions& options, const MemoryGrid& grid, torch::Device device,
       const Watch& watch, bool mixed)
      : model_(model),
        data_(data),
        windows_(windows),
        options_(options),
        device_(device),
        watch_(watch),
        mixed_(mixed),
        carried_(windows.carry == "on"),
        memory_(options, windows.window, carried_, model, device, 1, grid) {}

  Totals run() {
    const auto start = std::chrono::steady_clock::now();
    Windows all(windows_, data_.documents(), data_.size());
    std::vector<Span> batch;
    std::int64_t longest = 0;
    while (const auto span = all.next()) {
      longest = std::max(longest, span->length);
      const auto tokens = longest * static_cast<std::int64_t>(batch.size() + 1);
      if (!batch.empty() && (carried_ || tokens > windows_.batch_tokens)) {
        score(batch);
        batch.clear();
        longest = span->length;
      }
      batch.push_back(*span);
    }
    if (!batch.empty()) score(batch);
    count_text(totals_, data_.documents(), windows_);
    totals_.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return totals_;
  }

 private:
  nn::Hidden encode(const nn::Batch& batch, const Span& first) {
    if (!carried_) return model_.architecture->forward(batch, nullptr);
    if (!first.fresh && model_.architecture->carry() == nn::Carry::forget)
      model_.architecture->forget(state_, windows_.window - windows_.stride);
    return model_.architecture->forward(batch, &state_);
  }

  // One forward for all windows and one call of the head; then the memories, in the order of the
  // stream.
  void score(const std::vector<Span>& spans) {
    const nn::Batch host = batch_of(spans, data_, windows_.beginning, model_.vocabulary);
    const nn::Batch batch = host.to(device_);
    const nn::Hidden hidden = encode(batch, spans[0]);
    std::vector<Tensor> f, targets;
    for (std::size_t i = 0; i < spans.size(); ++i) {
      const auto row = static_cast<std::int64_t>(i);
      f.push_back(hidden.f[row].slice(0, spans[i].first_scored, spans[i].length));
      targets.push_back(batch.targets[row].slice(0, spans[i].first_scored, spans[i].length));
    }
    const bool one = spans.size() == 1;
    const HeadRows head =
        head_rows(*model_.head, one ? f[0] : torch::cat(f), one ? targets[0] : torch::cat(targets));
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < spans.size(); ++i) {
      const std::int64_t end = begin + spans[i].length - spans[i].first_scored;
      score(spans[i], static_cast<std::int64_t>(i), host, batch, hidden,
            {head.log_prob.slice(0, begin, end), head.log_z.slice(0, begin, end)});
      begin = end;
    }
    if (watch_.progress) watch_.progress(totals_.tokens);
  }

  void score(const Span& span, std::int64_t row, const nn::Batch& host, const nn::Batch& batch,
             const nn::Hidden& hidden, const HeadRows& head) {
    if (span.fresh) memory_.clear();
    Window window;
    window.f = hidden.f[row].slice(0, 0, span.length);
    window.g = hidden.g[row].slice(0, 0, span.length);
    window.targets = batch.targets[row].slice(0, 0, span.length);
    const nn::Place& place = host.place;
    window.place =
        nn::Place{place.run[row], place.segment[row], place.position[row]}.slice(0, span.length);
    window.first_scored = span.first_scored;
    Scored scored;
    scored.first = span.target + static_cast<std::uint64_t>(span.first_scored);
    scored.parts = memory_.score(head, window);
    const std::int64_t tokens = span.length - span.first_scored;
    totals_.tokens += static_cast<std::uint64_t>(tokens);
    if (mixed_) {
      scored.log_prob = mix(scored.parts, options_);
      totals_.nats -= scored.log_prob.sum().item<double>();
    }
    if (watch_.scored) {
      scored.targets = host.targets[row].slice(0, span.first_scored, span.length);
      watch_.scored(scored);
    }
  }

  nn::Model& model_;
  const shard::Dataset& data_;
  const WindowOptions& windows_;
  const MemoryOptions& options_;
  torch::Device device_;
  const Watch& watch_;
  bool mixed_, carried_;
  TestMemory memory_;
  nn::State state_;
  Totals totals_;
};

Totals run(nn::Model& model, const shard::Dataset& data, WindowOptions windows,
           MemoryOptions memory, const MemoryGrid& grid, torch::Device device, const Watch& watch,
           bool mixed) {
  shard::expect_kind(data.header(), {shard::Kind::tokens}, data.name());
  resolve(windows, memory, model);
  const Evaluating evaluating(model);
  Totals totals = Walk(model, data, windows, memory, grid, device, watch, mixed).run();
  if (totals.tokens == 0)
    fail(Code::bad_data, "{}: nothing to score; it takes two tokens of one {} at least",
         data.name(), windows.by_document() ? "document" : "text");
  if (mixed && !std::isfinite(totals.nats))
    fail(Code::bad_data, "{}: the loss is not finite; the model's weights may be damaged",
         data.name());
  return totals;
}

}  // namespace

Totals score(nn::Model& model, const shard::Dataset& data, WindowOptions windows,
             MemoryOptions memory, torch::Device device, const Watch& watch) {
  return run(model, data, std::move(windows), std::move(memory), {}, device, watch, true);
}

Totals walk(nn::Model& model, const shard::Dataset& data, WindowOptions windows,
            MemoryOptions memory, const MemoryGrid& grid, torch::Device device,
            const Watch& watch) {
  return run(model, data, std::move(windows), std::move(memory), grid, device, watch, false);
}

}  // namespace infer
