// Rows of tensors, read in parts.
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>

#include "core/error.h"
#include "core/io.h"
#include "model/safetensors.h"
#include "nn/base/torch.h"

namespace {

void expect_rows(const model::TensorReader& reader) {
  for (const auto& [name, entry] : reader.entries()) {
    const auto whole = reader.read(name);
    if (whole.dim() < 2) continue;
    for (std::int64_t first = 0; first < whole.size(0); first += 3) {
      auto sizes = entry.shape;
      sizes[0] = std::min<std::int64_t>(3, whole.size(0) - first);
      const auto rows = torch::empty(sizes, entry.dtype);
      reader.read_rows_into(name, first, rows);
      DOCTEST_CHECK_MESSAGE(rows.equal(whole.narrow(0, first, sizes[0])), name);
    }
    const auto beyond = torch::empty(entry.shape, entry.dtype);
    DOCTEST_CHECK_THROWS_AS(reader.read_rows_into(name, 1, beyond), core::Error);
    DOCTEST_CHECK_THROWS_AS(reader.read_rows_into(name, -1, beyond), core::Error);
  }
}

}  // namespace

DOCTEST_TEST_CASE("rows that are read in parts are those of the whole tensor") {
  core::MemorySink sink;
  model::write_safetensors(
      sink, {{"half", torch::randn({7, 5}).to(torch::kBFloat16)}, {"wide", torch::randn({4, 3, 2})},
                {"vector", torch::randn({6})}});
  expect_rows(model::SafetensorsReader(
      std::make_unique<core::RandomMemory>(sink.bytes, std::string("x.safetensors"))));
}
