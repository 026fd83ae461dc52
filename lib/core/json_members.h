#pragma once
// Lists the members of a JSON object once, for reading and for writing.

#include "core/json.h"

namespace core {

/// A function members(const Members&, T&), in T's namespace, lists the members of a T in the order
/// of the file.
class Members {
 public:
  /// Reads the members of an object. `origin` names its document in messages.
  Members(const Json& from, const std::string& origin) : from_(&from), origin_(origin) {}
  /// Writes them.
  explicit Members(OrderedJson& to) : to_(&to) {}

  const Json* from() const { return from_; }  ///< null: the members are written
  const std::string& origin() const { return origin_; }
  /// Returns whether the object has a member, or, if it is written, whether it is to have it.
  bool has(const char* key, bool written) const {
    return from_ != nullptr ? from_->contains(key) : written;
  }
  /// A member that get() reads, with its errors.
  template <class T> void operator()(const char* key, T& value) const {
    if (from_ != nullptr) value = get<T>(*from_, key, origin_);
    else put(key, value);
  }
  /// A count from `least` to `most`, as get_at_most() reads it.
  void count(
      const char* key, std::uint64_t& value, std::uint64_t most, std::uint64_t least = 0) const {
    if (from_ != nullptr) value = get_at_most(*from_, key, most, origin_, least);
    else put(key, value);
  }
  /// Returns the members of the object under `key`. Such an object has none with members.
  Members in(const char* key) const {
    auto inner = *this;
    if (from_ == nullptr) return inner.within_ = key, inner;
    get<Json>(*from_, key, origin_);
    inner.from_ = &from_->at(key);
    return inner;
  }
  /// A list of objects, each with the members of a T.
  template <class T> void list(const char* key, std::vector<T>& values) const {
    if (from_ != nullptr) {
      for (const auto& entry : get<std::vector<Json>>(*from_, key, origin_))
        members(Members(entry, origin_), values.emplace_back());
      return;
    }
    auto& list = (*to_)[key] = OrderedJson::array();
    for (T& value : values) members(Members(list.emplace_back(OrderedJson::object())), value);
  }

 private:
  template <class T> void put(const char* key, const T& value) const {
    (within_ == nullptr ? *to_ : (*to_)[within_])[key] = value;
  }

  const Json* from_ = nullptr;
  OrderedJson* to_ = nullptr;
  const char* within_ = nullptr;
  std::string origin_;
};

/// Returns an object with the members of `value` after those that it has.
template <class T> OrderedJson written_members(T value, OrderedJson json = OrderedJson::object()) {
  members(Members(json), value);
  return json;
}

}  // namespace core
