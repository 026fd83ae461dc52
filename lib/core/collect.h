#pragma once
// Short forms of common loops over a range. `of` is a function or a member of an element.
// Sets a variable for the duration of a scope. base.h includes this header after those of the
// standard library that it uses.

#include <utility>

namespace core {

/// Returns of(x) for each element x of `range`, in its order, as values of type T; by default, of
/// the type that `of` returns.
template <class T = void, class Range, class Of> auto mapped(Range&& range, Of of) {
  using Given = std::decay_t<std::invoke_result_t<Of&, decltype(*std::begin(range))>>;
  std::vector<std::conditional_t<std::is_void_v<T>, Given, T>> all;
  all.reserve(static_cast<std::size_t>(std::distance(std::begin(range), std::end(range))));
  for (auto&& one : range) all.emplace_back(std::invoke(of, one));
  return all;
}

/// Returns of(0), ..., of(n - 1).
template <class N, class Of> auto generated(N n, Of of) {
  std::vector<std::decay_t<std::invoke_result_t<Of&, N>>> all;
  all.reserve(static_cast<std::size_t>(n));
  for (N i = 0; i < n; ++i) all.push_back(of(i));
  return all;
}

/// Returns the elements x of `range` for which holds(x) is true, in its order.
template <class Range, class Holds> auto kept(const Range& range, Holds holds) {
  std::vector<std::decay_t<decltype(*std::begin(range))>> some;
  for (const auto& one : range)
    if (std::invoke(holds, one)) some.push_back(one);
  return some;
}

/// Returns the keys of a map, or the first values of pairs.
template <class Pairs> auto keys_of(const Pairs& pairs) {
  return mapped(pairs, [](const auto& pair) { return pair.first; });
}

/// Returns whether an element of `range` equals `value`.
template <class Range, class Value> bool contains(const Range& range, const Value& value) {
  return std::ranges::find(range, value) != std::ranges::end(range);
}

/// Returns the first element x of `range` with of(x) == value, or nullptr.
template <class Range, class Value, class Of>
auto find_by(const Range& range, const Value& value, Of of) -> decltype(&*std::begin(range)) {
  for (const auto& one : range)
    if (std::invoke(of, one) == value) return &one;
  return nullptr;
}

/// Returns the sum of of(x) over the elements x of `range`, added in its order.
template <class Range, class Of> auto sum_of(const Range& range, Of of) {
  std::decay_t<std::invoke_result_t<Of&, decltype(*std::begin(range))>> sum{};
  for (const auto& one : range) sum += std::invoke(of, one);
  return sum;
}

/// Returns the largest of `least` and of(x) over the elements x of `range`.
template <class Range, class Of>
auto max_of(const Range& range, Of of,
    std::decay_t<std::invoke_result_t<Of&, decltype(*std::begin(range))>> least = {}) {
  for (const auto& one : range) least = std::max(least, std::invoke(of, one));
  return least;
}

/// While the object exists, `variable` has `value`; its destructor restores the previous value.
template <class T> class [[nodiscard]] ScopedValue {
 public:
  ScopedValue(T& variable, T value)
      : variable_(variable), before_(std::exchange(variable, std::move(value))) {}
  ~ScopedValue() { variable_ = std::move(before_); }
  ScopedValue(ScopedValue&&) = delete;

 private:
  T& variable_;
  T before_;
};

}  // namespace core
