#include "nn/base/memory_rule.h"

#include "core/units.h"

namespace nn {

Entries Entries::of(const torch::Tensor& g, const Batch& batch) {
  return {g.flatten(0, 1), batch.targets.flatten(), batch.place.flatten()};
}

Entries Entries::concatenate(const std::vector<Entries>& parts) {
  std::vector<torch::Tensor> keys, labels;
  std::vector<TokenPositions> places;
  const Entries* only = nullptr;
  for (const auto& part : parts) {
    if (part.size() == 0) continue;
    only = &part;
    keys.push_back(keys.empty() ? part.keys : part.keys.to(keys[0].dtype()));
    labels.push_back(part.labels);
    places.push_back(part.place);
  }
  if (keys.size() > 1)
    return {torch::cat(keys), torch::cat(labels), TokenPositions::concatenate(places)};
  return only != nullptr ? *only : Entries{};
}

MemoryRule MemoryRule::parse(const std::string& names) {
  MemoryRule rule;
  if (names == "none") return rule;
  for (const auto& name : core::pieces(names, ',')) {
    if (name == "local") {
      rule.local = true;
    } else if (name == "long") {
      rule.far = true;
    } else if (name == "ext") {
      rule.ext = true;
    } else {
      core::bad_usage(
          "--memory: takes none, or local, long and ext joined by commas, not '{}'", names);
    }
  }
  return rule;
}

std::string MemoryRule::name() const {
  std::vector<std::string_view> names;
  if (local) names.push_back("local");
  if (far) names.push_back("long");
  if (ext) names.push_back("ext");
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ","));
}

}  // namespace nn
