#include "infer/keys/pair_entries.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "infer/windows/pairs.h"

namespace infer {
namespace {

using torch::Tensor;

constexpr std::int64_t kForwards = 4;  // forward passes per block: enough to group pairs by length

std::int64_t length_of(const shard::Documents& documents, std::int64_t pair) {
  return target_of(documents, pair).length;
}

void expect_vocabulary(const nn::Batch& batch, std::int64_t vocabulary, const std::string& name) {
  const auto largest =
      std::max(batch.targets.max().item<std::int64_t>(), batch.source.max().item<std::int64_t>());
  if (largest >= vocabulary)
    core::fail(core::Code::bad_data, "{}: has token {}, but the model's vocabulary has {} tokens",
               name, largest, vocabulary);
}

}  // namespace

PairWalk::PairWalk(nn::Model& model, const shard::Dataset& data, std::int64_t batch_tokens,
                   torch::Device device)
    : EntryWalk(model), data_(data), batch_tokens_(batch_tokens), device_(device) {
  check_pairs(data, model);
}

// Returns the end of the block of pairs that begins with `first`.
std::int64_t PairWalk::block_end(std::int64_t first) const {
  const auto& documents = data_.documents();
  const auto count = static_cast<std::int64_t>(documents.size() / 2);
  std::int64_t end = first;
  for (std::int64_t tokens = 0; end < count && tokens < kForwards * batch_tokens_; ++end)
    tokens += length_of(documents, end);
  return end;
}

std::uint64_t PairWalk::entries_in(std::int64_t first, std::int64_t end) const {
  std::uint64_t entries = 0;
  for (auto pair = first; pair < end; ++pair)
    entries += static_cast<std::uint64_t>(length_of(data_.documents(), pair));
  return entries;
}

std::vector<std::uint64_t> PairWalk::group_sizes() const {
  std::vector<std::uint64_t> sizes;
  for (std::int64_t first = 0, end = 0; (end = block_end(first)) > first; first = end)
    sizes.push_back(entries_in(first, end));
  return sizes;
}

void PairWalk::resume(std::uint64_t entries, nn::State /*state*/) {
  std::uint64_t passed = 0;
  while (passed < entries) {
    const auto first = std::exchange(next_pair_, block_end(next_pair_));
    if (first == next_pair_) break;
    passed += entries_in(first, next_pair_);
  }
  if (passed != entries)
    core::fail(core::Code::bad_data, "{}: cannot resume at entry {}: no block of pairs ends there",
               data_.name(), entries);
}

std::optional<EntryBlock> PairWalk::next() {
  const torch::NoGradGuard no_gradient;
  std::vector<std::int64_t> pairs(static_cast<std::size_t>(block_end(next_pair_) - next_pair_));
  if (pairs.empty()) return std::nullopt;
  std::iota(pairs.begin(), pairs.end(), next_pair_);
  next_pair_ += std::ssize(pairs);
  const auto& documents = data_.documents();
  auto by_length = pairs;
  std::stable_sort(by_length.begin(), by_length.end(), [&](std::int64_t a, std::int64_t b) {
    return length_of(documents, a) < length_of(documents, b);
  });
  std::vector<Tensor> keys(pairs.size()), labels(pairs.size()),
      known(pairs.size());  // of each pair
  for (const auto& group : group_pairs(documents, by_length, batch_tokens_)) {
    const nn::Batch batch = read_pairs(data_, group);
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

std::uint64_t PairWalk::count() const {
  return entries_in(0, static_cast<std::int64_t>(data_.documents().size() / 2));
}

std::vector<std::int64_t> PairWalk::first_of_documents() const {
  std::vector<std::int64_t> first;
  std::int64_t entries = 0;
  const auto& documents = data_.documents();
  for (std::size_t pair = 0; pair < documents.size() / 2; ++pair) {
    first.push_back(entries);
    entries += length_of(documents, static_cast<std::int64_t>(pair));
  }
  return first;
}

}  // namespace infer
