// Whatever the bytes are, a safetensors file gives tensors or an Error{bad_data}; what was read and
// written again is the same.

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>

#include "core/error.h"
#include "core/io.h"
#include "model/safetensors.h"
#include "nn/torch.h"

namespace {

void expect(bool what) {
  if (!what) std::abort();
}

void read_and_write(std::unique_ptr<core::RandomSource> source) {
  const model::SafetensorsReader reader(std::move(source));
  model::NamedTensors tensors;
  for (const auto& [name, entry] : reader.entries())
    if (!name.empty()) tensors.emplace_back(name, reader.read(name));
  reader.verify();
  core::MemorySink sink;
  model::write_safetensors(sink, tensors);
  const model::SafetensorsReader again(std::make_unique<core::RandomMemory>(sink.bytes));
  again.verify();
  expect(again.entries().size() == tensors.size());
  model::NamedTensors same;
  for (const auto& [name, tensor] : tensors) same.emplace_back(name, again.read(name));
  expect(model::tensors_digest(same) == model::tensors_digest(tensors));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    read_and_write(std::make_unique<core::RandomMemory>(std::as_bytes(std::span(data, size))));
  } catch (const core::Error& error) {
    expect(error.code() == core::Code::bad_data);
  }
  return 0;
}
