#include "infer/keys/fill_store.h"

#include <chrono>
#include <cmath>
#include <optional>
#include <span>

#include "model/checkpoint.h"

namespace infer {
namespace {

constexpr const char* kState = "carried";

// Writes the State to disk before the rows that depend on it count. Older States are removed
// afterwards. `entries` is the number of entries walked.
void commit(store::Builder& builder, const EntryWalk& walk, const std::string& folder,
            std::uint64_t entries) {
  core::Json place = entries;
  if (walk.carried()) {
    model::Checkpoint checkpoint;
    checkpoint.put_state(kState, walk.state());
    model::save_checkpoint(folder, static_cast<std::int64_t>(entries), checkpoint);
  }
  builder.commit(std::move(place));
  if (walk.carried()) model::remove_checkpoints(folder, static_cast<std::int64_t>(entries));
}

void add(store::Builder& builder, const torch::Tensor& keys, const torch::Tensor& labels,
         std::span<const std::int64_t> places) {
  builder.add({keys.const_data_ptr<float>(), static_cast<std::size_t>(keys.numel())},
              {labels.const_data_ptr<std::int32_t>(), static_cast<std::size_t>(labels.size(0))},
              places);
}

// Adds the entries of a block whose label has a model probability of at most `most_known`. `first`
// is the number of the block's first entry.
void add_unknown(store::Builder& builder, const EntryBlock& block, std::uint64_t first,
                 double most_known) {
  const torch::Tensor rows =
      (block.log_probs.to(torch::kFloat64) <= std::log(most_known)).nonzero().squeeze(1);
  const torch::Tensor places = rows + static_cast<std::int64_t>(first);
  add(builder, block.keys.index_select(0, rows), block.labels.index_select(0, rows),
      {places.const_data_ptr<std::int64_t>(), static_cast<std::size_t>(places.numel())});
}

}  // namespace

bool fill_store(store::Builder& builder, EntryWalk& walk, const EntryRange& range,
                const std::string& folder, torch::Device device, const FillCallbacks& watch,
                double most_known) {
  using Clock = std::chrono::steady_clock;
  const bool some = most_known < 1;
  if (some) walk.ask_log_probs();
  std::uint64_t entries = builder.place().is_null() ? 0 : builder.place().get<std::uint64_t>();
  std::uint64_t committed = entries;
  nn::State state;
  if (entries > 0 && walk.carried()) {
    const std::string path = folder + "/step-" + std::to_string(entries);
    state = model::load_checkpoint(path).get_state(kState, device);
  }
  if (range.begin + entries > 0) walk.resume(range.begin + entries, std::move(state));
  auto last = Clock::now();
  bool stopped = false;
  std::uint64_t walked = entries;
  std::optional<EntryBlock> coming;
  const auto arrive = [&] {
    if (!coming) return;
    coming->arrive();
    if (some)
      add_unknown(builder, *coming, entries, most_known);
    else
      add(builder, coming->keys, coming->labels, {});
    entries += static_cast<std::uint64_t>(coming->labels.size(0));
    coming.reset();
    if (watch.progress) watch.progress(entries);
  };
  while (!stopped && walked < range.size()) {
    auto block = walk.next();
    if (!block) break;
    walked += static_cast<std::uint64_t>(block->labels.size(0));
    arrive();  // while a device computes this block
    coming = std::move(block);
    if (device.is_cpu()) arrive();
    stopped = watch.stop && watch.stop();
    if (std::chrono::duration<double>(Clock::now() - last).count() > watch.commit_every_s) {
      arrive();  // the walk's State follows that block
      commit(builder, walk, folder, entries);
      committed = entries;
      last = Clock::now();
    }
  }
  arrive();
  if (entries > committed) commit(builder, walk, folder, entries);
  return !stopped;
}

void remove_states(const std::string& folder) {
  model::remove_checkpoints(folder);
  model::remove_leftovers(folder);
}

}  // namespace infer
