#include "model/safetensors.h"

#include <fmt/format.h>

#include "folder_of_test.h"

namespace {

using model::NamedTensors;
using model::SafetensorsReader;

core::Bytes written(const NamedTensors& tensors, const model::Metadata& metadata = {}) {
  core::MemorySink sink;
  model::write_safetensors(sink, tensors, metadata);
  return sink.bytes;
}

SafetensorsReader reader_of(core::Bytes bytes) {
  return SafetensorsReader(std::make_unique<OwnedMemory>(std::move(bytes)));
}

/// Returns a file with this header and `data` zero bytes.
core::Bytes file_of(const std::string& header, std::size_t data) {
  core::MemorySink sink;
  const std::uint64_t length = header.size();
  sink.write(std::as_bytes(std::span(&length, 1)));
  sink.write(header);
  sink.write(core::Bytes(data));
  return sink.bytes;
}

NamedTensors some_tensors() {
  torch::manual_seed(1);
  return {{"b", torch::randn({2, 3})}, {"a.weight", torch::randn({3, 2}).t()},  // not contiguous
      {"bytes", torch::arange(7, torch::kUInt8)}, {"scalar", torch::tensor(3.5)},
      {"none", torch::empty({0, 4}, torch::kInt64)},
      {"half", torch::randn({3}).to(torch::kBFloat16)}, {"yes", torch::tensor({true, false, true})},
      {"d", torch::randn({2}, torch::kFloat64)}};
}

bool same(const torch::Tensor& a, const torch::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() && a.equal(b);
}

}  // namespace

DOCTEST_TEST_CASE("tensors come back as they were written, in equal bytes") {
  const auto tensors = some_tensors();
  const auto bytes = written(tensors, {{"note", "x"}});
  DOCTEST_CHECK((bytes == written(tensors, {{"note", "x"}})));
  const auto reader = reader_of(bytes);
  reader.verify();
  DOCTEST_CHECK(reader.entries().size() == tensors.size());
  for (const auto& [name, tensor] : tensors)
    DOCTEST_CHECK_MESSAGE(same(reader.read(name), tensor), name);
  DOCTEST_CHECK(reader.metadata().at("format") == "pt");
  DOCTEST_CHECK(reader.metadata().at("note") == "x");
  for (const auto& [name, entry] : reader.entries())
    DOCTEST_CHECK_MESSAGE(entry.begin % c10::elementSize(entry.dtype) == 0,
        name);  // aligned for mmap
  expect_error(core::Code::bad_data, "no tensor x", [&] { reader.read("x"); });
}

DOCTEST_TEST_CASE("a name twice, or none, is a fault of the caller") {
  const auto t = torch::zeros({1});
  expect_error(core::Code::bug, "twice", [&] { written({{"a", t}, {"a", t}}); });
  expect_error(core::Code::bug, "without a name", [&] { written({{"", t}}); });
}

DOCTEST_TEST_CASE("every cut, every added byte and every flipped bit is found") {
  const NamedTensors tensors = {
      {"a", torch::arange(5, torch::kFloat32)}, {"b", torch::ones({2, 2})}};
  const auto bytes = written(tensors);
  const auto read_all = [&](core::Bytes damaged) {
    const auto reader = reader_of(std::move(damaged));
    reader.verify();
    for (const auto& [name, tensor] : tensors)
      if (!same(reader.read(name), tensor)) return false;
    return reader.entries().size() == tensors.size();
  };
  for (std::size_t n = 0; n < bytes.size(); ++n)
    DOCTEST_CHECK_THROWS_AS(read_all(core::Bytes(bytes.begin(), bytes.begin() + n)), core::Error);
  auto longer = bytes;
  longer.push_back(std::byte{0});
  DOCTEST_CHECK_THROWS_AS(read_all(longer), core::Error);
  int harmless = 0;
  for (std::size_t i = 0; i < bytes.size() * 8; ++i) {
    auto flipped = bytes;
    flipped[i / 8] ^= std::byte{1} << (i % 8);
    try {
      const bool unharmed = read_all(flipped);
      DOCTEST_CHECK_MESSAGE(unharmed, "bit " << i);
      ++harmless;
    } catch (const core::Error&) {}
  }
  // Only changes of the metadata's text (its keys and "pt") may go unnoticed.
  DOCTEST_CHECK(harmless < 8 * 20);
}

DOCTEST_TEST_CASE("headers that lie are refused by name") {
  const auto refused = [](const std::string& part, const std::string& header,
                           std::size_t data = 8) {
    expect_error(core::Code::bad_data, part, [&] { reader_of(file_of(header, data)); });
  };
  const auto entry = [](const std::string& dtype, const std::string& shape,
                         const std::string& offsets) {
    return R"({"t":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" +
           offsets + "}}";
  };
  reader_of(file_of(entry("F32", "[2]", "[0,8]") + "   ", 8));
  refused("unknown dtype", entry("F33", "[2]", "[0,8]"));
  refused("its shape needs 12 bytes, but its offsets span 8", entry("F32", "[3]", "[0,8]"));
  const auto larger = entry("F32", "[3]", "[0,12]");
  refused(
      fmt::format("cut short: it ends at byte {} of {}", larger.size() + 16, larger.size() + 20),
      larger);
  refused("the end of tensor t is 18446744073709551615; allowed: its begin, 0, to ",
      entry("F32", "[3]", "[0,18446744073709551615]"));
  refused("the end of tensor t is 0; allowed: its begin, 8, to ", entry("F32", "[2]", "[8,0]"));
  refused("hole", entry("F32", "[1]", "[4,8]"));
  refused("belong to no tensor", entry("F32", "[1]", "[0,4]"));
  refused("is not an integer", entry("F32", "[-2]", "[0,8]"));
  refused("is not an integer", entry("F32", "[2.0]", "[0,8]"));
  refused("is not an integer", entry("F32", "[2]", "[0,\"8\"]"));
  refused("larger than any file", entry("F32", "[4611686018427387904,4]", "[0,8]"));
  refused("larger than any file", entry("F32", "[0,4611686018427387904,4]", "[0,0]"), 0);
  refused("the number of dimensions of tensor t is 33; allowed: 0 to 32",
      entry("F32", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "[0,4]"),
      4);
  refused("not described", R"({"t":{"dtype":"F32","shape":[2]}})");
  refused("not described", R"({"t":3})");
  refused("is not an object", R"({"__metadata__":3})");
  refused("is not a text", R"({"__metadata__":{"a":3}})");
  refused("overlap",
      R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},"b":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})");
  refused("not JSON", "{]");
  refused("no JSON header", "[]");
  refused("nested too deeply", R"({"t":[[[[[[]]]]]]})");
  // Reading takes time in proportion to the bytes, not to their square.
  std::string many = "{";
  for (int i = 0; i < 300'000; ++i)
    many += fmt::format(R"("x{}":{{"dtype":"F32","shape":[0],"data_offsets":[0,0]}},)", i);
  many += R"("t":3})";
  refused("not described", many);
  auto huge = file_of("{}", 0);
  huge[7] = std::byte{0x7f};
  expect_error(core::Code::bad_data, "a header of", [&] { reader_of(huge); });
}
