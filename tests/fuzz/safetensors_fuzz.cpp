// A safetensors file of any bytes gives tensors or an Error{bad_data}. Writing and reading it again
// preserves it.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/io.h"
#include "fuzz/target.h"
#include "model/safetensors.h"
#include "nn/base/torch.h"

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

// Repairs the digest in the metadata for the current tensors.
FUZZ_REPAIR(safetensors)(std::vector<std::byte>& bytes) {
  const model::SafetensorsReader reader(std::make_unique<core::RandomMemory>(bytes));
  const auto digest = reader.metadata().find(model::kDigestKey);
  if (digest == reader.metadata().end()) return;
  model::NamedTensors tensors;
  for (const auto& [name, entry] : reader.entries()) tensors.emplace_back(name, reader.read(name));
  const std::string hex = model::tensors_digest(tensors).hex();
  const auto old = std::as_bytes(std::span(digest->second));
  const auto at = std::search(bytes.begin(), bytes.end(), old.begin(), old.end());
  if (old.size() != hex.size() || at == bytes.end()) return;
  std::copy_n(std::as_bytes(std::span(hex)).data(), hex.size(), at);
}

FUZZ_TARGET(safetensors)(const std::uint8_t* data, std::size_t size) {
  try {
    read_and_write(std::make_unique<core::RandomMemory>(std::as_bytes(std::span(data, size))));
  } catch (const core::Error& error) { expect(error.code() == core::Code::bad_data); }
}
