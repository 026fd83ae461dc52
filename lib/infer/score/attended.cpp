#include "infer/score/attended.h"

#include "core/rng.h"
#include "infer/windows/windows.h"
#include "nn/layers/attention.h"

namespace infer {
namespace {

constexpr std::int64_t kPiece = 128;  // tokens of each row per forward pass

nn::WatchedAttention& watched(nn::Model& model) {
  auto* const attention = dynamic_cast<nn::WatchedAttention*>(model.architecture.get());
  if (attention == nullptr)
    core::bad_usage("the attention of {} cannot be observed; give a transformer or a mosaic",
        model.options.arch);
  return *attention;
}

void check(const nn::Model& model, const shard::Dataset& data, const AttendedOptions& options) {
  if (options.window < 2) core::bad_usage("--window: takes at least 2 tokens");
  const auto context = model.architecture->context();
  if (context && options.window > *context)
    core::bad_usage("--window {}: the model has only {} positions", options.window, *context);
  if (data.size() <= static_cast<std::uint64_t>(options.window))
    core::bad_data("{}: has {} tokens; a sequence and its target need {}", data.name(), data.size(),
        options.window + 1);
}

/// Returns columns [begin, end) of a batch.
nn::Batch columns(const nn::Batch& batch, std::int64_t begin, std::int64_t end) {
  const auto cut = [&](const Tensor& x) { return x.slice(1, begin, end); };
  return {cut(batch.inputs), cut(batch.targets), cut(batch.weight),
      {cut(batch.place.run), cut(batch.place.segment), cut(batch.place.position)},
      torch::full({batch.rows()}, begin == 0, torch::kBool), {}};
}

/// Returns the attention of the last token, summed over the batch's rows: (layers, heads, window).
Tensor attended(nn::Model& model, const nn::Batch& batch, torch::Device device) {
  const auto window = batch.steps();
  auto& attention = watched(model);
  std::vector<Tensor> layers;
  nn::State state;
  for (std::int64_t begin = 0; begin < window; begin += kPiece) {
    const auto end = std::min(window, begin + kPiece);
    if (end == window) {
      attention.watch([&](const Tensor& weights) {
        const auto sum = weights.to(torch::kCPU, torch::kFloat64).sum(0);  // (heads, S)
        layers.push_back(torch::constant_pad_nd(sum, {0, window - sum.size(1)}));
      });
    }
    model.architecture->forward(columns(batch, begin, end).to(device), &state);
  }
  attention.watch({});
  return torch::stack(layers);
}

}  // namespace

void AttendedOptions::fields(core::FieldList& f) {
  f("window", window, "tokens per sequence; auto: the segment that the model was trained with")
      .auto_or(1, 16e6);
  f("sequences", sequences, "number of sequences, each from a random start").between(1, 1e9);
  f("batch-tokens", batch_tokens, "maximum tokens per forward pass").between(1, 1e9);
}

void AttendedOptions::settle(const model::TrainingFacts& facts) {
  if (window == 0) window = facts.segment;
  if (window == 0) core::bad_usage("--window is missing; the model does not say its segment");
}

Tensor mean_attention(nn::Model& model, const shard::Dataset& data, const AttendedOptions& options,
    torch::Device device) {
  shard::expect_kind(data.header(), {shard::Kind::tokens}, data.name());
  watched(model);
  check(model, data, options);
  const torch::NoGradGuard no_gradient;
  model.eval();
  core::Rng rng(options.seed, 0);
  const auto together = std::max<std::int64_t>(1, options.batch_tokens / options.window);
  const auto starts = data.size() - static_cast<std::uint64_t>(options.window);
  Tensor total;
  std::vector<Span> spans;
  for (std::int64_t i = 0; i < options.sequences; ++i) {
    spans.push_back({rng.below(starts) + 1, options.window, 0, 0, i, true});
    if (static_cast<std::int64_t>(spans.size()) < together && i + 1 < options.sequences) continue;
    const auto sum = attended(model, batch_of(spans, data, {}, model.vocabulary), device);
    total = total.defined() ? total + sum : sum;
    spans.clear();
  }
  return total / static_cast<double>(options.sequences);
}

}  // namespace infer
