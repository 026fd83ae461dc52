#include "forecast/series.h"

#include <span>

#include "core/error.h"
#include "forecast/forecast_kernels.h"
#include "shard/dataset.h"

namespace forecast {

Series read_series(const std::vector<std::string>& shards) {
  const shard::Dataset data(shards);
  shard::expect_kind(data.header(), {shard::Kind::vectors}, data.name());
  Series series;
  series.name = data.name();
  series.fingerprint = data.fingerprint().hex();
  series.width = static_cast<std::int64_t>(data.header().width);
  if (series.width % 2 != 0 || series.width > 2 * kMostPoints)
    core::fail(core::Code::bad_data,
               "{}: rows of {} numbers cannot be points in the plane; they need an even number",
               series.name, series.width);
  series.numbers.resize(data.size());
  data.read(0, std::span<float>(series.numbers));
  std::int64_t begin = 0;
  for (const auto element : data.documents().end) {
    const auto end = static_cast<std::int64_t>(element) / series.width;
    series.documents.push_back({begin, end});
    begin = end;
  }
  if (series.documents.empty()) core::fail(core::Code::bad_data, "{}: has no rows", series.name);
  return series;
}

}  // namespace forecast
