#pragma once
// Values by their type: what kinds of sources keep among options and in a plan.

#include <any>
#include <map>
#include <typeindex>

namespace infer {

/// One value of each type, made when it is first asked for; copied with all it holds. A reference
/// stays valid as long as the Slots.
class Slots {
 public:
  template <class T>
  T& of() {
    std::any& held = held_[typeid(T)];
    if (!held.has_value()) held = T{};
    return *std::any_cast<T>(&held);
  }
  /// As T{} where there is none.
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
