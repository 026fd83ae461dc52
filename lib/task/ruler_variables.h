#pragma once
// RULER's variable tracking: which names got a value, some of them by way of others.

#include "task/ruler.h"

namespace task {

/// Chains of `hops` + 1 names: the first is set to a number, each other to the one before it, in
/// the order of the text. The number of the first chain is asked for; all its names are answers.
class VariableTask : public RulerTask {
 public:
  VariableTask(std::int64_t chains, std::int64_t hops) : chains_(chains), hops_(hops) {}
  RulerProblem draw(std::uint64_t seed, std::uint64_t number, std::int64_t filling) const override;

 private:
  std::int64_t chains_, hops_;
};

}  // namespace task
