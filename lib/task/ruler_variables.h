#pragma once
// Generates RULER's variable tracking: names are assigned a value, some through other names.

#include "task/ruler.h"

namespace task {

/// A VariableTask has chains of `hops` + 1 names. The first name of a chain is set to a number, and
/// each other name to the one before it, in the order of the text. The prompt asks for the number
/// of the first chain; all names of that chain are answers.
class VariableTask : public RulerTask {
 public:
  VariableTask(std::int64_t chains, std::int64_t hops) : chains_(chains), hops_(hops) {}
  RulerProblem draw(std::uint64_t seed, std::uint64_t number, std::int64_t filling) const override;

 private:
  std::int64_t chains_, hops_;
};

}  // namespace task
