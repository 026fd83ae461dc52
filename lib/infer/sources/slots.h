#pragma once
// Container of values by type, for data of source kinds among options and in a plan.

#include <any>
#include <map>
#include <typeindex>

namespace infer {

/// Holds one value of each type and creates it on first access. A copy copies all values.
/// References remain valid as long as the Slots.
class Slots {
 public:
  template <class T>
  T& of() {
    std::any& held = held_[typeid(T)];
    if (!held.has_value()) held = T{};
    return *std::any_cast<T>(&held);
  }
  /// Returns the value, or T{} if absent.
  template <class T>
  const T& of() const {
    static const T none{};
    const auto held = held_.find(typeid(T));
    return held == held_.end() ? none : *std::any_cast<T>(&held->second);
  }

 private:
  std::map<std::type_index, std::any> held_;
};

}  // namespace infer
