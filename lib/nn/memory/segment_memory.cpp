#include "nn/memory/segment_memory.h"

#include <string>

namespace nn {
namespace {

std::string name_of(std::int64_t segment, const char* part) {
  return std::to_string(segment) + "." + part;
}

}  // namespace

std::int64_t SegmentMemory::size() const {
  const auto found = state_.counts.find("segments");
  return found == state_.counts.end() ? 0 : found->second;
}

void SegmentMemory::append(const torch::Tensor& g, const Batch& batch) {
  if (most_ == 0) return;
  std::int64_t held = size();
  if (held == most_) {
    --held;
    for (std::int64_t i = 0; i <= held; ++i)
      for (const char* part : {"keys", "labels", "run", "segment", "position"}) {
        auto moved = state_.tensors.extract(name_of(i, part));
        if (i == 0) continue;
        moved.key() = name_of(i - 1, part);
        state_.tensors.insert(std::move(moved));
      }
  }
  state_.tensors[name_of(held, "keys")] = g.detach();
  state_.tensors[name_of(held, "labels")] = batch.targets;
  state_.tensors[name_of(held, "run")] = batch.place.run + 1;
  state_.tensors[name_of(held, "segment")] = batch.place.segment;
  state_.tensors[name_of(held, "position")] = batch.place.position;
  state_.counts["segments"] = held + 1;
}

std::vector<Entries> SegmentMemory::view() const {
  std::vector<Entries> all;
  for (std::int64_t i = 0; i < size(); ++i) {
    const auto flat = [&](const char* part) {
      return state_.tensors.at(name_of(i, part)).flatten(0, 1);
    };
    const auto ids = [&](const char* part) { return flat(part).to(torch::kCPU); };
    all.push_back(
        {flat("keys"), flat("labels"), {ids("run") - 1, ids("segment"), ids("position")}});
  }
  return all;
}

}  // namespace nn
