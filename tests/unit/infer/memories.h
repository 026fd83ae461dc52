#pragma once
// What a kind of source keeps among the options and in the plan: cache(options).theta,
// cache(plan).theta.

#include "infer/sources/cache_source.h"
#include "infer/sources/context_source.h"
#include "infer/sources/ensemble.h"
#include "infer/sources/ngram_source.h"
#include "infer/sources/store_source.h"

namespace tiny {

template <class Options, class Plan> struct Kept {
  template <class Bag> auto& operator()(Bag&& bag) const {
    constexpr bool of_plan = std::is_same_v<std::remove_cvref_t<Bag>, infer::MemoryPlan>;
    return bag.template of<std::conditional_t<of_plan, Plan, Options>>();
  }
};
inline constexpr Kept<infer::ContextOptions, infer::ContextPlan> context;
inline constexpr Kept<infer::CacheOptions, infer::CachePlan> cache;
inline constexpr Kept<infer::StoreOptions, infer::StorePlan> stores;
inline constexpr Kept<infer::NgramOptions, infer::NgramPlan> ngrams;
inline constexpr Kept<infer::EnsembleOptions, infer::EnsemblePlan> ensemble;

inline infer::OpenMemories opened(std::shared_ptr<const infer::Stores> stores) {
  infer::OpenMemories open;
  open.of<infer::OpenStores>().opened = std::move(stores);
  return open;
}

}  // namespace tiny
