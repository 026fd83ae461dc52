#pragma once
// Shards of vectors in memory: each document is a series of observations.

#include <cstdint>
#include <string>
#include <vector>

namespace forecast {

struct Series {
  /// Rows [begin, end).
  struct Span {
    std::int64_t begin, end;
    std::int64_t size() const { return end - begin; }
  };
  std::string name;             ///< of the data, for messages
  std::string fingerprint;      ///< hex
  std::int64_t width = 0;       ///< numbers of a row: points of the plane, x before y
  std::vector<float> numbers;   ///< (rows, width)
  std::vector<Span> documents;  ///< empty ones too

  const float* row(std::int64_t number) const { return numbers.data() + number * width; }
};

/// Throws Error{no_input}, Error{bad_data} if the shards hold no vectors, no documents of them, or
/// vectors that are no points of the plane, or more than kMostPoints.
Series read_series(const std::vector<std::string>& shards);

}  // namespace forecast
