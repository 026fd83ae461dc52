#include "nn/memory/entry_ring.h"

namespace nn {
namespace {

// The ring starts with this number of slots and doubles, because the text may be much shorter than
// the capacity.
constexpr std::int64_t kFirstSlots = 64;

std::string name_of(std::int64_t segment, const char* part) {
  return std::to_string(segment) + "." + part;
}

}  // namespace

EntryRing::EntryRing(std::int64_t capacity) : capacity_(capacity) {
  if (capacity < 1) core::bug("a ring of {} steps", capacity);
}

std::int64_t EntryRing::count(const char* name) const {
  const auto found = state_.counts.find(name);
  return found == state_.counts.end() ? 0 : found->second;
}

std::int64_t EntryRing::slots() const {
  const auto found = state_.tensors.find("labels");
  return found == state_.tensors.end() ? 0 : found->second.size(0);
}

// Moves the stored steps to the front of buffers with `slots` slots.
void EntryRing::resize(std::int64_t slots) {
  const std::int64_t begin = count("begin"), held = size();
  for (auto& [name, tensor] : state_.tensors) {
    auto sizes = tensor.sizes().vec();
    sizes[0] = slots;
    const Tensor wider = torch::zeros(sizes, tensor.options());
    wider.slice(0, 0, held).copy_(tensor.slice(0, begin, begin + held));
    tensor = wider;
  }
  state_.counts["begin"] = 0, state_.counts["end"] = held;
}

void EntryRing::append(const Tensor& keys, const Tensor& labels, const TokenPositions& place) {
  const torch::NoGradGuard no_gradient;
  const std::int64_t given = labels.size(0), steps = std::min(given, capacity_);
  // With this number of slots, steps that move to the front do not overlap their old place.
  const std::int64_t most = 2 * capacity_ - 1;
  const std::vector<std::pair<const char*, Tensor>> parts = {{"keys", keys}, {"labels", labels},
      {"run", place.run + 1}, {"segment", place.segment}, {"position", place.position}};
  if (state_.empty()) {
    for (const auto& [name, from] : parts) {
      auto sizes = from.sizes().vec();
      sizes[0] = 0;
      state_.tensors[name] = torch::empty(sizes, from.options());
      state_.by_step.insert(name);
    }
    state_.counts = {{"begin", 0}, {"end", 0}};
  }
  auto& begin = state_.counts["begin"];
  auto& end = state_.counts["end"];
  if (end + steps > slots() && slots() < most)
    resize(std::min(most, std::max({kFirstSlots, 2 * slots(), end + steps})));
  if (end + steps > slots()) {
    const std::int64_t keep = std::min(size(), capacity_ - steps);
    for (auto& [name, tensor] : state_.tensors)
      tensor.slice(0, 0, keep).copy_(tensor.slice(0, end - keep, end));
    begin = 0, end = keep;
  }
  for (const auto& [name, from] : parts)
    state_.tensors[name].slice(0, end, end + steps).copy_(from.slice(0, given - steps, given));
  end += steps;
  begin = std::max(begin, end - capacity_);
}

Entries EntryRing::view(std::int64_t skip, std::int64_t at_most) const {
  if (state_.empty()) return {};
  const std::int64_t first = count("begin"), last = std::max(first, count("end") - skip),
                     begin = last - std::min(last - first, at_most);
  const auto held = [&](const char* name) { return state_.tensors.at(name).slice(0, begin, last); };
  const auto ids = [&](const char* name) { return held(name).flatten().to(torch::kCPU); };
  return {held("keys").flatten(0, -2), held("labels").flatten(),
      {ids("run") - 1, ids("segment"), ids("position")}};
}

void EntryRing::select(const Tensor& rows) {
  if (state_.empty()) return;
  state_.select(rows);
  number_runs(rows.size(0));
}

void EntryRing::number_runs(std::int64_t rows) {
  Tensor& run = state_.tensors["run"];
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(run.dim()), 1);
  sizes[1] = rows;
  const Tensor own = torch::arange(1, rows + 1, run.options()).view(sizes);
  run = torch::where(run > 0, own.expand_as(run), run);
}

void EntryRing::join(const EntryRing& other, std::int64_t rows, std::int64_t more) {
  if (state_.empty() && other.state_.empty()) return;
  const torch::NoGradGuard no_gradient;
  const std::int64_t held = std::max(size(), other.size());
  State joined;
  for (const auto& [name, like] : (state_.empty() ? other : *this).state_.tensors) {
    const auto padded = [&, &name = name, &like = like](const EntryRing& ring, std::int64_t n) {
      auto sizes = like.sizes().vec();
      sizes[0] = held, sizes[1] = n;
      const Tensor all = torch::zeros(sizes, like.options());
      if (ring.state_.empty()) return all;
      const std::int64_t begin = ring.count("begin"), end = ring.count("end");
      all.slice(0, held - (end - begin)).copy_(ring.state_.tensors.at(name).slice(0, begin, end));
      return all;
    };
    joined.tensors[name] = torch::cat({padded(*this, rows), padded(other, more)}, 1);
    joined.by_step.insert(name);
  }
  joined.counts = {{"begin", 0}, {"end", held}};
  state_ = std::move(joined);
  number_runs(rows + more);
}

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
