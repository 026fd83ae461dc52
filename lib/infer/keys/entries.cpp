#include "infer/keys/entries.h"

#include "infer/windows/head_rows.h"
#include "infer/windows/windows.h"

namespace infer {
namespace {

// Returns the number of elements without an entry at the front of a document: no token precedes
// them. The stream's first element may be in a later document if the first is empty. `begin` is the
// number of elements in earlier documents.
std::uint64_t silent(const WindowPlan& windows, std::uint64_t begin, std::uint64_t elements) {
  const bool starts = windows.by_document || begin == 0;
  return windows.beginning < 0 && starts ? std::min<std::uint64_t>(1, elements) : 0;
}

std::uint64_t entries_in(const std::vector<Span>& spans) {
  return core::sum_of(spans,
      [](const Span& span) { return static_cast<std::uint64_t>(span.length - span.first_scored); });
}

constexpr std::int64_t kForwards = 4;  // forward passes per block: enough to group pairs by length

std::int64_t length_of(const shard::Documents& documents, std::int64_t pair) {
  return batch::target_of(documents, pair).length;
}

void expect_vocabulary(const nn::Batch& batch, std::int64_t vocabulary, const std::string& name) {
  const auto largest =
      std::max(batch.targets.max().item<std::int64_t>(), batch.source.max().item<std::int64_t>());
  if (largest >= vocabulary)
    core::bad_data(
        "{}: has token {}, but the model's vocabulary has {} tokens", name, largest, vocabulary);
}

/// Walks the windows of a token stream as Scorer does. A position gets its key from the window that
/// would score its target. Every token with at least one predecessor has an entry. A block is one
/// forward pass.
class WindowWalk : public EntryWalk {
 public:
  /// Model and data must outlive the walk. Throws Error{bad_data} for data that are not tokens.
  WindowWalk(
      nn::Model& model, const shard::Dataset& data, const WindowPlan& windows, torch::Device device)
      : EntryWalk(model), data_(data), windows_(windows), device_(device),
        batches_(windows_, data) {
    shard::expect_kind(data.header(), {shard::Kind::tokens}, data.name());
  }
  std::optional<EntryBlock> next() override {
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
  void resume(std::uint64_t entries, nn::State state) override {
    std::uint64_t passed = 0;
    while (passed < entries) {
      const auto batch = batches_.next();
      if (!batch) break;
      passed += entries_in(batch->spans);
    }
    if (passed != entries)
      core::bad_data("{}: cannot resume at entry {}: no window ends there", data_.name(), entries);
    state_ = std::move(state);
  }
  /// Returns whether windows depend on a carried State.
  bool carried() const override { return windows_.carried; }
  std::vector<std::int64_t> bounds() const override {
    std::vector<std::int64_t> first;
    std::uint64_t entries = 0, begin = 0;
    const auto& end = data_.documents().end;
    for (std::size_t i = 0; i < end.size(); begin = end[i++]) {
      first.push_back(static_cast<std::int64_t>(entries));
      entries += end[i] - begin - silent(windows_, begin, end[i] - begin);
    }
    first.push_back(static_cast<std::int64_t>(entries));
    return first;
  }

 private:
  std::vector<std::uint64_t> group_sizes() const override {
    std::vector<std::uint64_t> sizes;
    WindowBatches all(windows_, data_);
    while (const auto batch = all.next()) {
      sizes.resize(static_cast<std::size_t>(batch->group) + 1);
      sizes.back() += entries_in(batch->spans);
    }
    return sizes;
  }
  const shard::Dataset& data_;
  WindowPlan windows_;
  torch::Device device_;
  WindowBatches batches_;
};

/// A PairWalk yields an entry for each token of each target, including its end-of-document token,
/// in the order of the shard. Each pair is a document of the store, with the pair's number. Pairs
/// of similar length share a forward pass of at most `batch_tokens` target tokens including
/// padding; a block contains the pairs of about four forward passes.
class PairWalk : public EntryWalk {
 public:
  /// `data` must outlive the walk. Throws the errors of check_pairs().
  PairWalk(
      nn::Model& model, const shard::Dataset& data, std::int64_t batch_tokens, torch::Device device)
      : EntryWalk(model), data_(data), batch_tokens_(batch_tokens), device_(device) {
    check_pairs(data, model);
  }
  std::optional<EntryBlock> next() override {
    const torch::NoGradGuard no_gradient;
    std::vector<std::int64_t> pairs(static_cast<std::size_t>(block_end(next_pair_) - next_pair_));
    if (pairs.empty()) return std::nullopt;
    std::iota(pairs.begin(), pairs.end(), next_pair_);
    next_pair_ += std::ssize(pairs);
    const auto& documents = data_.documents();
    auto by_length = pairs;
    std::ranges::stable_sort(
        by_length, {}, [&](std::int64_t pair) { return length_of(documents, pair); });
    std::vector<Tensor> keys(pairs.size()), labels(pairs.size()),
        known(pairs.size());  // of each pair
    for (const auto& group : batch::group_pairs(documents, by_length, batch_tokens_)) {
      const nn::Batch batch = batch::read_pairs(data_, group);
      expect_vocabulary(batch, model_.vocabulary, data_.name());
      const nn::Hidden hidden = model_.architecture->forward(batch.to(device_), nullptr);
      for (std::size_t i = 0; i < group.size(); ++i) {
        const auto row = static_cast<std::int64_t>(i), n = length_of(documents, group[i]);
        const auto at = static_cast<std::size_t>(group[i] - pairs[0]);
        keys[at] = hidden.key[row].narrow(0, 0, n);
        labels[at] = batch.targets[row].narrow(0, 0, n);
        if (asks_log_probs_) known[at] = head_of(hidden.output[row].narrow(0, 0, n), labels[at]);
      }
    }
    return EntryBlock(torch::cat(labels).to(torch::kInt32), torch::cat(keys),
        asks_log_probs_ ? torch::cat(known, 1) : Tensor());
  }
  void resume(std::uint64_t entries, nn::State /*state*/) override {
    std::uint64_t passed = 0;
    while (passed < entries) {
      const auto first = std::exchange(next_pair_, block_end(next_pair_));
      if (first == next_pair_) break;
      passed += entries_in(first, next_pair_);
    }
    if (passed != entries)
      core::bad_data(
          "{}: cannot resume at entry {}: no block of pairs ends there", data_.name(), entries);
  }
  std::vector<std::int64_t> bounds() const override {
    std::vector<std::int64_t> first;
    std::int64_t entries = 0;
    const auto& documents = data_.documents();
    for (std::size_t pair = 0; pair < documents.size() / 2; ++pair) {
      first.push_back(entries);
      entries += length_of(documents, static_cast<std::int64_t>(pair));
    }
    first.push_back(entries);
    return first;
  }

 private:
  std::vector<std::uint64_t> group_sizes() const override {
    std::vector<std::uint64_t> sizes;
    for (std::int64_t first = 0, end = 0; (end = block_end(first)) > first; first = end)
      sizes.push_back(entries_in(first, end));
    return sizes;
  }
  // Returns the end of the block of pairs that begins with `first`.
  std::int64_t block_end(std::int64_t first) const {
    const auto& documents = data_.documents();
    const auto count = static_cast<std::int64_t>(documents.size() / 2);
    std::int64_t end = first;
    for (std::int64_t tokens = 0; end < count && tokens < kForwards * batch_tokens_; ++end)
      tokens += length_of(documents, end);
    return end;
  }
  std::uint64_t entries_in(std::int64_t first, std::int64_t end) const {
    std::uint64_t entries = 0;
    for (auto pair = first; pair < end; ++pair)
      entries += static_cast<std::uint64_t>(length_of(data_.documents(), pair));
    return entries;
  }
  const shard::Dataset& data_;
  std::int64_t batch_tokens_;
  torch::Device device_;
  std::int64_t next_pair_ = 0;
};

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

std::vector<std::int64_t> EntryWalk::first_of_documents() const {
  auto first = bounds();
  first.pop_back();
  return first;
}

std::unique_ptr<EntryWalk> make_walk(
    nn::Model& model, const shard::Dataset& data, const WindowPlan& windows, torch::Device device) {
  if (windows.pairs) return std::make_unique<PairWalk>(model, data, windows.batch_tokens, device);
  return std::make_unique<WindowWalk>(model, data, windows, device);
}

}  // namespace infer
