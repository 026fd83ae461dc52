#include "infer/keys/entries.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "infer/windows/head_rows.h"
#include "infer/windows/window_forward.h"
#include "nn/base/upload.h"

namespace infer {
namespace {

using core::Code;
using core::fail;
using torch::Tensor;

// Returns the number of elements without an entry at the front of a document: no token precedes
// them. The stream's first element may be in a later document if the first is empty. `begin` is the
// number of elements in earlier documents.
std::uint64_t silent(const WindowPlan& windows, std::uint64_t begin, std::uint64_t elements) {
  const bool starts = windows.by_document || begin == 0;
  return windows.beginning < 0 && starts ? std::min<std::uint64_t>(1, elements) : 0;
}

std::uint64_t entries_in(const std::vector<Span>& spans) {
  std::uint64_t entries = 0;
  for (const Span& span : spans)
    entries += static_cast<std::uint64_t>(span.length - span.first_scored);
  return entries;
}

}  // namespace

EntryBlock::EntryBlock(Tensor labels_, const Tensor& keys_, const Tensor& head)
    : labels(std::move(labels_)),
      coming_(head.defined() ? std::vector<Tensor>{keys_, head} : std::vector<Tensor>{keys_},
              torch::kFloat32) {}

void EntryBlock::arrive() {
  const auto come = coming_.get();
  keys = come[0];
  if (come.size() > 1) log_probs = come[1][0], log_z = come[1][1];
}

std::vector<std::int64_t> EntryRange::documents(std::vector<std::int64_t> first) const {
  const auto from = static_cast<std::int64_t>(begin), to = static_cast<std::int64_t>(end);
  for (std::int64_t& entry : first) entry = std::clamp(entry, from, to) - from;
  return first;
}

EntryWalk::EntryWalk(nn::Model& model) : model_(model), training_(model.is_training()) {
  model_.eval();
}

EntryWalk::~EntryWalk() { model_.train(training_); }

EntryRange EntryWalk::range_of(const core::Part& part) const {
  if (part.whole()) return {0, count()};
  const auto sizes = group_sizes();
  const auto before = [&](std::int64_t groups) {
    return std::accumulate(sizes.begin(), sizes.begin() + groups, std::uint64_t{0});
  };
  return {before(part.begin(std::ssize(sizes))), before(part.end(std::ssize(sizes)))};
}

Tensor EntryWalk::head_of(const Tensor& f, const Tensor& labels) const {
  const HeadRows rows = head_rows(*model_.head, f, {nn::upload(labels, f.device()), labels});
  return torch::stack({rows.log_prob, rows.log_z});
}

WindowWalk::WindowWalk(nn::Model& model, const shard::Dataset& data, const WindowPlan& windows,
                       torch::Device device)
    : EntryWalk(model), data_(data), windows_(windows), device_(device), batches_(windows_, data) {
  shard::expect_kind(data.header(), {shard::Kind::tokens}, data.name());
}

std::vector<std::uint64_t> WindowWalk::group_sizes() const {
  std::vector<std::uint64_t> sizes;
  WindowBatches all(windows_, data_);
  while (const auto batch = all.next()) {
    sizes.resize(static_cast<std::size_t>(batch->group) + 1);
    sizes.back() += entries_in(batch->spans);
  }
  return sizes;
}

void WindowWalk::resume(std::uint64_t entries, nn::State state) {
  std::uint64_t passed = 0;
  while (passed < entries) {
    const auto batch = batches_.next();
    if (!batch) break;
    passed += entries_in(batch->spans);
  }
  if (passed != entries)
    fail(Code::bad_data, "{}: cannot resume at entry {}: no window ends there", data_.name(),
         entries);
  state_ = std::move(state);
}

std::optional<EntryBlock> WindowWalk::next() {
  const torch::NoGradGuard no_gradient;
  const auto together = batches_.next();
  if (!together) return std::nullopt;
  const auto& spans = together->spans;
  const nn::Batch host = batch_of(spans, data_, windows_, model_.vocabulary);
  const auto [f, g] = forward_windows(model_, windows_, host.to(device_), spans[0], state_);
  const Tensor labels = scored_rows(host.targets, spans);
  return EntryBlock(labels.to(torch::kInt32), scored_rows(g, spans).contiguous(),
                    asks_log_probs_ ? head_of(scored_rows(f, spans), labels) : Tensor());
}

std::uint64_t WindowWalk::count() const {
  std::uint64_t entries = data_.size(), begin = 0;
  const auto& end = data_.documents().end;
  for (std::size_t i = 0; i < end.size(); begin = end[i++])
    entries -= silent(windows_, begin, end[i] - begin);
  return entries;
}

std::vector<std::int64_t> WindowWalk::first_of_documents() const {
  std::vector<std::int64_t> first;
  std::uint64_t entries = 0, begin = 0;
  const auto& end = data_.documents().end;
  for (std::size_t i = 0; i < end.size(); begin = end[i++]) {
    first.push_back(static_cast<std::int64_t>(entries));
    entries += end[i] - begin - silent(windows_, begin, end[i] - begin);
  }
  return first;
}

}  // namespace infer
