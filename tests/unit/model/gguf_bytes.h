#pragma once
// GGUF files that a test makes.

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Builds a file; bytes() returns it.
class GgufBytes {
 public:
  void text(std::string_view key, std::string_view value) { pair(key, 8, packed(value)); }
  void whole(std::string_view key, std::uint32_t value) { pair(key, 4, raw(value)); }
  void number(std::string_view key, float value) { pair(key, 6, raw(value)); }
  void truth(std::string_view key, bool value) { pair(key, 7, std::string(1, value ? 1 : 0)); }
  void texts(std::string_view key, const std::vector<std::string>& values) {
    std::string all = raw(std::uint32_t{8}) + raw(std::uint64_t{values.size()});
    for (const auto& value : values) all += packed(value);
    pair(key, 9, all);
  }
  void wholes(std::string_view key, const std::vector<std::int32_t>& values) {
    std::string all = raw(std::uint32_t{5}) + raw(std::uint64_t{values.size()});
    for (const auto value : values) all += raw(value);
    pair(key, 9, all);
  }
  void numbers(std::string_view key, const std::vector<float>& values) {
    std::string all = raw(std::uint32_t{6}) + raw(std::uint64_t{values.size()});
    for (const auto value : values) all += raw(value);
    pair(key, 9, all);
  }
  /// Adds a value as raw bytes.
  void pair(std::string_view key, std::uint32_t type, std::string_view bytes) {
    pairs_ += packed(key) + raw(type) + std::string(bytes);
    ++pair_count;
  }
  /// shape: the outermost dimension first.
  void tensor(std::string_view name, const std::vector<std::int64_t>& shape, std::uint32_t type,
      std::string_view bytes) {
    tensor_at(name, shape, type, data_.size());
    data_ += bytes;
    data_.resize((data_.size() + 31) / 32 * 32);
  }
  /// Adds only its entry.
  void tensor_at(std::string_view name, const std::vector<std::int64_t>& shape, std::uint32_t type,
      std::uint64_t offset) {
    tensors_ += packed(name) + raw(static_cast<std::uint32_t>(shape.size()));
    for (auto n = shape.rbegin(); n != shape.rend(); ++n)
      tensors_ += raw(static_cast<std::uint64_t>(*n));
    tensors_ += raw(type) + raw(offset);
    ++tensor_count;
  }
  void floats(std::string_view name, const std::vector<std::int64_t>& shape,
      const std::vector<float>& values) {
    tensor(name, shape, 0,
        {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
  }

  std::string bytes() const {
    std::string all = "GGUF" + raw(version) + raw(tensor_count) + raw(pair_count);
    all += pairs_ + tensors_;
    all.resize((all.size() + 31) / 32 * 32);
    return all + data_;
  }

  template <class T> static std::string raw(T value) {
    std::string bytes(sizeof value, '\0');
    std::memcpy(bytes.data(), &value, sizeof value);
    return bytes;
  }
  static std::string packed(std::string_view text) {
    return raw(std::uint64_t{text.size()}) + std::string(text);
  }

  std::uint32_t version = 3;
  std::uint64_t tensor_count = 0, pair_count = 0;

 private:
  std::string pairs_, tensors_, data_;
};
