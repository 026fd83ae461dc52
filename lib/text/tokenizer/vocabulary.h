#pragma once
// Tokens and their ids, both ways.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace text {

/// Tokens are strings of any bytes, all different; ids may have gaps. Const calls are thread safe.
class Vocabulary {
 public:
  /// Highest id + 1.
  std::size_t size() const { return tokens_.size(); }
  /// Tokens there are, gaps and nameless ones not counted.
  std::size_t count() const { return count_; }
  bool has(std::uint32_t id) const { return id < size() && tokens_[id].offset != kGap; }
  /// Empty for a gap.
  std::string_view token(std::uint32_t id) const;
  std::optional<std::uint32_t> id_of(std::string_view token) const;

  /// Makes `token` number `id`. False if one of the two is taken.
  bool set(std::uint32_t id, std::string_view token);
  /// The same for a token that may have the bytes of another: id_of() does not find it by them.
  bool set_nameless(std::uint32_t id, std::string_view token);
  bool is_nameless(std::uint32_t id) const { return id < nameless_.size() && nameless_[id]; }
  /// The id of `token`, a new one (size()) if it has none.
  std::uint32_t add(std::string_view token);
  void reserve(std::size_t tokens, std::size_t bytes);

 private:
  static constexpr std::uint32_t kGap = 0xFFFFFFFF;
  struct Place {
    std::uint32_t offset = kGap, bytes = 0;
  };
  std::size_t find_slot(std::string_view token) const;
  void grow();
  void put(std::uint32_t id, std::string_view token);

  std::string pool_;
  std::vector<Place> tokens_;
  std::vector<std::uint32_t> slots_;  // ids by hash, open addressing; kGap: free
  std::size_t count_ = 0;
  std::vector<bool> nameless_;  // by id, as far as there are any
};

}  // namespace text
