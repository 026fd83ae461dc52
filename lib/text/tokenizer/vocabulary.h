#pragma once
// Maps tokens to ids and back.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace text {

/// A Vocabulary holds distinct tokens of any bytes. Ids may have gaps. Const calls are thread safe.
class Vocabulary {
 public:
  /// Returns the highest id + 1.
  std::size_t size() const { return tokens_.size(); }
  /// Returns the number of tokens, not counting gaps and nameless tokens.
  std::size_t count() const { return count_; }
  bool has(std::uint32_t id) const { return id < size() && tokens_[id].offset != kGap; }
  /// Returns the token of an id; empty for a gap.
  std::string_view token(std::uint32_t id) const;
  std::optional<std::uint32_t> id_of(std::string_view token) const;

  /// Assigns `id` to `token`. Returns false if either is already in use.
  bool set(std::uint32_t id, std::string_view token);
  /// Behaves like set(), but accepts a token that may have the bytes of another token, and hides it
  /// from id_of().
  bool set_nameless(std::uint32_t id, std::string_view token);
  bool is_nameless(std::uint32_t id) const { return id < nameless_.size() && nameless_[id]; }
  /// Returns the id of `token`; adds it with id size() if it is new.
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
  std::vector<std::uint32_t> slots_;  // ids by hash, open addressing; kGap means free
  std::size_t count_ = 0;
  std::vector<bool> nameless_;  // by id; may be shorter than tokens_
};

}  // namespace text
