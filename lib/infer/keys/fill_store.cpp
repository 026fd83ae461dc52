#include "infer/keys/fill_store.h"

#include <chrono>
#include <span>

#include "core/error.h"
#include "model/checkpoint.h"

namespace infer {
namespace {

constexpr const char* kState = "carried";

// The State is on disk before the rows that depend on it count; older ones go afterwards.
void commit(store::Builder& builder, const EntryWalk& walk, const std::string& folder,
            std::uint64_t rows) {
  core::Json place = rows;
  if (walk.carried()) {
    model::Checkpoint checkpoint;
    checkpoint.put_state(kState, walk.state());
    model::save_checkpoint(folder, static_cast<std::int64_t>(rows), checkpoint);
  }
  builder.commit(std::move(place));
  if (walk.carried()) model::remove_checkpoints(folder, static_cast<std::int64_t>(rows));
}

}  // namespace

bool fill_store(store::Builder& builder, EntryWalk& walk, const EntryRange& range,
                const std::string& folder, torch::Device device, const FillWatch& watch) {
  using Clock = std::chrono::steady_clock;
  std::uint64_t rows = builder.rows();
  nn::State state;
  if (rows > 0 && walk.carried()) {
    const std::string path = folder + "/step-" + std::to_string(rows);
    state = model::load_checkpoint(path).get_state(kState, device);
  }
  if (range.begin + rows > 0) walk.go_on(range.begin + rows, std::move(state));
  auto last = Clock::now();
  bool stopped = false;
  while (!stopped && rows < range.size()) {
    const auto block = walk.next();
    if (!block) break;
    const auto n = static_cast<std::size_t>(block->labels.size(0));
    builder.add(
        {block->keys.const_data_ptr<float>(), static_cast<std::size_t>(block->keys.numel())},
        {block->labels.const_data_ptr<std::int32_t>(), n});
    rows += n;
    if (watch.progress) watch.progress(rows);
    stopped = watch.stop && watch.stop();
    if (std::chrono::duration<double>(Clock::now() - last).count() > watch.commit_every_s) {
      commit(builder, walk, folder, rows);
      last = Clock::now();
    }
  }
  if (rows > builder.rows()) commit(builder, walk, folder, rows);
  return !stopped;
}

void remove_states(const std::string& folder) {
  model::remove_checkpoints(folder);
  model::remove_leftovers(folder);
}

}  // namespace infer
