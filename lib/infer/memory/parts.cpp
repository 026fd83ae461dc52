#include "infer/memory/parts.h"

#include <algorithm>
#include <cmath>

#include "nn/memory/joint_loss.h"

namespace infer {
namespace {

using torch::Tensor;

Tensor pick(Tensor tensor, const std::vector<std::size_t>& axes,
            const std::vector<std::size_t>& places) {
  if (!tensor.defined()) return tensor;
  for (const std::size_t axis : axes) {
    const auto place = static_cast<std::int64_t>(axis < places.size() ? places[axis] : 0);
    tensor = tensor.select(0, std::min(place, tensor.size(0) - 1));
  }
  return tensor;
}

}  // namespace

Components Parts::at(const MemoryPlan& plan, const std::vector<std::size_t>& places,
                     const std::vector<bool>* kept) const {
  Components at;
  nn::Masses seen, own;  // of all parts, and of the parts trained with the model
  at.gates.confidence = confidence;
  const auto kinds = plan.kinds();
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const SourceScores& source = sources[i];
    const auto here = [&](const Tensor& tensor) { return pick(tensor, source.axes, places); };
    if (kept != nullptr && !(*kept)[i]) {
      for (std::size_t j = 0; j < source.own.size(); ++j)
        at.own.push_back(torch::full_like(head, NAN));
      if (source.bucket.defined()) at.gates.bucket = torch::full_like(source.bucket, -1);
      continue;
    }
    const auto parts = plan.joint(*kinds[i]);
    for (std::size_t j = 0; j < source.joined.size(); ++j) {
      const nn::Masses more{biased(here(source.joined[j].all), parts[j].bias),
                            biased(here(source.joined[j].positive), parts[j].bias)};
      seen.add(more);
      if (plan.online && parts[j].trained) own.add(more);
    }
    for (const auto& own : source.own) at.own.push_back(here(own));
    if (source.bucket.defined()) at.gates.bucket = source.bucket;
    if (source.features.defined()) at.gates.own[kinds[i]->name()] = here(source.features);
  }
  const auto joined = [&](const nn::Masses& masses) {
    return masses.all.defined() ? nn::join({head, log_z, masses.all, masses.positive}) : head;
  };
  at.joint = joined(seen);
  if (seen.all.defined()) at.head = joined(own);
  return at;
}

const Neighbours* Parts::found() const {
  for (const auto& source : sources)
    if (source.found) return source.found.get();
  return nullptr;
}

std::vector<Parts::Member> Parts::members() {
  std::vector<Member> all{{&head, false}, {&log_z, false}, {&confidence, true}};
  for (auto& source : sources) {
    for (auto& [seen, hit] : source.joined)
      all.push_back({&seen, false}), all.push_back({&hit, false});
    for (auto& own : source.own) all.push_back({&own, false});
    all.push_back({&source.bucket, false});
    all.push_back({&source.features, true});
  }
  all.push_back({&weight, false});
  return all;
}

}  // namespace infer
