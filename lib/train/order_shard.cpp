#include "train/order_shard.h"

#include <span>

#include "core/error.h"

namespace train {

std::vector<std::uint64_t> read_order(const shard::Dataset& order, const shard::Dataset& data,
                                      const std::string& unit) {
  const auto& header = order.header();
  shard::expect_kind(header, {shard::Kind::order}, order.name());
  if (header.data_fingerprint != data.fingerprint().hex())
    core::fail(
        core::Code::bad_data,
        "{}: is an order of data with fingerprint {}, but {} has {}; create the order from these "
        "data",
        order.name(), header.data_fingerprint, data.name(), data.fingerprint().hex());
  if (header.unit != unit)
    core::fail(core::Code::bad_data, "{}: is an order of {}s; give an order of {}s", order.name(),
               header.unit, unit);
  std::vector<std::uint64_t> list(order.size());
  order.read(0, std::span(list));
  return list;
}

}  // namespace train
