// A GGUF file of any bytes gives a model and a tokenizer or an Error. Memory follows from its size.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>

#include "core/error.h"
#include "fuzz/target.h"
#include "model/gguf/gguf_tokenizer.h"
#include "model/model_config.h"
#include "model/tensor_files.h"
#include "model/weights.h"
#include "nn/base/torch.h"
#include "text/formats/tokenizer_json.h"
#include "unit/model/counted_memory.h"

namespace {

/// Limits of bytes of tensors: 2-bit numbers become 32-bit, and checks need copies.
constexpr std::int64_t kGgufMostTimes = 64, kGgufAlways = std::int64_t{1} << 20;

void read_model_of(std::span<const std::byte> bytes) {
  auto tensors = std::make_unique<model::GgufTensors>(bytes, "x.gguf");
  const auto config = model::parse_config(model::gguf_config(tensors->file()), "x.gguf");
  const model::TensorFiles files(std::move(tensors));
  model::read_model(config, "x.gguf", files);
}

void read_tokenizer_of(std::span<const std::byte> bytes) {
  const auto json = model::gguf_tokenizer(model::GgufFile(bytes, "x.gguf"));
  if (!json.empty()) text::parse_tokenizer(json, "x.gguf")->json();
}

template <class Read> void expect_named(const Read& read) {
  try {
    read();
  } catch (const core::Error& error) {
    if (error.code() == core::Code::bad_data || error.code() == core::Code::bad_config) return;
    std::fprintf(stderr, "%s\n", error.what());
    std::abort();
  }
}

}  // namespace

FUZZ_TARGET(gguf)(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const CountedMemory memory;
  expect_named([&] { read_model_of(bytes); });
  expect_named([&] { read_tokenizer_of(bytes); });
  if (memory.most() > kGgufMostTimes * static_cast<std::int64_t>(size) + kGgufAlways) {
    std::fprintf(stderr, "%lld bytes of tensors\n", static_cast<long long>(memory.most()));
    std::abort();
  }
}
