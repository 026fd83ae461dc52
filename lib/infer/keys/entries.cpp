#include "infer/keys/entries.h"

#include <algorithm>

#include "core/error.h"

namespace infer {
namespace {

using core::Code;
using core::fail;
using torch::Tensor;

// Elements at the front of a document without an entry: nothing stands before them.
std::uint64_t silent(const WindowPlan& windows, std::size_t document, std::uint64_t elements) {
  const bool starts = windows.by_document || document == 0;
  return windows.beginning < 0 && starts ? std::min<std::uint64_t>(1, elements) : 0;
}

}  // namespace

EntryWalk::EntryWalk(nn::Model& model) : model_(model), training_(model.is_training()) {
  model_.eval();
}

EntryWalk::~EntryWalk() { model_.train(training_); }

WindowWalk::WindowWalk(nn::Model& model, const shard::Dataset& data, const WindowPlan& windows,
                       torch::Device device)
    : EntryWalk(model),
      data_(data),
      windows_(windows),
      device_(device),
      all_(windows, data.documents(), data.size()) {
  shard::expect_kind(data.header(), {shard::Kind::tokens}, data.name());
  waiting_ = all_.next();
}

// As many windows as share a forward; one if State is carried.
std::vector<Span> WindowWalk::next_spans() {
  std::vector<Span> spans;
  std::int64_t longest = 0;
  while (waiting_) {
    longest = std::max(longest, waiting_->length);
    const auto tokens = longest * static_cast<std::int64_t>(spans.size() + 1);
    if (!spans.empty() && (carried() || tokens > windows_.batch_tokens)) break;
    spans.push_back(*waiting_);
    waiting_ = all_.next();
  }
  return spans;
}

void WindowWalk::go_on(std::uint64_t entries, nn::State state) {
  std::uint64_t passed = 0;
  while (passed < entries) {
    const auto spans = next_spans();
    if (spans.empty()) break;
    for (const Span& span : spans)
      passed += static_cast<std::uint64_t>(span.length - span.first_scored);
  }
  if (passed != entries)
    fail(Code::bad_data, "{}: it cannot go on at entry {}: no window ends there", data_.name(),
         entries);
  state_ = std::move(state);
}

std::optional<EntryBlock> WindowWalk::next() {
  const torch::NoGradGuard no_gradient;
  const auto spans = next_spans();
  if (spans.empty()) return std::nullopt;
  const nn::Batch host = batch_of(spans, data_, windows_.beginning, model_.vocabulary);
  if (carried() && !spans[0].fresh && model_.architecture->carry() == nn::Carry::forget)
    model_.architecture->forget(state_, windows_.window - windows_.stride);
  const Tensor g = model_.architecture->forward(host.to(device_), carried() ? &state_ : nullptr).g;
  std::vector<Tensor> keys, labels;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i);
    keys.push_back(g[row].slice(0, spans[i].first_scored, spans[i].length));
    labels.push_back(host.targets[row].slice(0, spans[i].first_scored, spans[i].length));
  }
  return EntryBlock{torch::cat(keys).to(torch::kCPU, torch::kFloat32).contiguous(),
                    torch::cat(labels).to(torch::kInt32)};
}

std::uint64_t WindowWalk::count() const {
  std::uint64_t entries = data_.size(), begin = 0;
  const auto& end = data_.documents().end;
  for (std::size_t i = 0; i < end.size(); begin = end[i++])
    entries -= silent(windows_, i, end[i] - begin);
  return entries;
}

std::vector<std::int64_t> WindowWalk::first_of_documents() const {
  std::vector<std::int64_t> first;
  std::uint64_t entries = 0, begin = 0;
  const auto& end = data_.documents().end;
  for (std::size_t i = 0; i < end.size(); begin = end[i++]) {
    first.push_back(static_cast<std::int64_t>(entries));
    entries += end[i] - begin - silent(windows_, i, end[i] - begin);
  }
  return first;
}

}  // namespace infer
