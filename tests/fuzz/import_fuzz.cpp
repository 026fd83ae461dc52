// A checkpoint of another program's trainer with any bytes gives a model or an Error, and memory
// follows from its size. An input that begins with { is a line of config.json, then
// pytorch_model.bin. tests/unit/model/small_checkpoints.h makes the corpus.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <span>
#include <string_view>

#include "core/error.h"
#include "core/io.h"
#include "fuzz/target.h"
#include "model/import_model.h"
#include "model/model_config.h"
#include "nn/base/torch.h"
#include "unit/model/counted_memory.h"
#include "unit/temporary_folder.h"

namespace {

/// Limits of bytes of tensors: a multiple of the file's size and a constant. model/imports allows
/// 16 times the file and 16 MiB for computed tensors; the model copies them, and checks need copies
/// too.
constexpr std::int64_t kImportMostTimes = 64, kImportAlways = std::int64_t{96} << 20;

bool is_of_input(const core::Error& error) {
  return error.code() == core::Code::bad_data || error.code() == core::Code::bad_config;
}

void import_folder(std::string_view bytes) {
  static const TemporaryFolder folder;
  const auto end = std::min(bytes.find('\n'), bytes.size());
  std::ofstream(folder / "config.json", std::ios::binary) << bytes.substr(0, end);
  std::ofstream(folder / "pytorch_model.bin", std::ios::binary)
      << bytes.substr(std::min(end + 1, bytes.size()));
  model::load_pickled(folder.path);
}

// Checks that the configuration that would be written can be read.
void expect_readable(const model::ImportedModel& read) {
  core::OrderedJson facts = {{"memory", "none"}};
  facts.update(read.facts);
  const auto config = core::dump(model::make_config(read.options, read.vocabulary, facts, "", -1));
  try {
    model::parse_config(core::parse_json(config, "config.json"), "config.json");
  } catch (const core::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    std::abort();
  }
}

void import_file(std::span<const std::byte> bytes) {
  const model::TorchFile file(std::make_unique<core::RandomMemory>(bytes));
  const auto read = model::read_checkpoint(file);
  model::made_of(read, "checkpoint");
  expect_readable(read);
}

}  // namespace

FUZZ_TARGET(import)(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const CountedMemory memory;
  try {
    if (text.starts_with('{')) import_folder(text);
    else import_file(std::as_bytes(std::span(data, size)));
  } catch (const core::Error& error) {
    if (!is_of_input(error)) {
      std::fprintf(stderr, "%s\n", error.what());
      std::abort();
    }
  }
  if (memory.most() > kImportMostTimes * static_cast<std::int64_t>(size) + kImportAlways) {
    std::fprintf(stderr, "%lld bytes of tensors\n", static_cast<long long>(memory.most()));
    std::abort();
  }
}
