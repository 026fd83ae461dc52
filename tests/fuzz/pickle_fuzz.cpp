// A file of torch.save with any bytes gives values, tensors within the file and perhaps a model's
// weights, or an Error. Nothing in it is run, and memory follows from its size.

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>

#include "core/error.h"
#include "core/io.h"
#include "fuzz/target.h"
#include "model/imports/import_map.h"
#include "model/pickle/torch_file.h"
#include "nn/base/torch.h"

namespace {

// Runs `body`. Returns whether it throws an Error about the input.
template <class Body> bool refuses(const Body& body) {
  try {
    body();
  } catch (const core::Error& error) {
    if (error.code() != core::Code::bad_data && error.code() != core::Code::bad_config)
      std::abort();
    return true;
  }
  return false;
}

void read_all(const model::TorchFile& file, std::size_t size) {
  std::size_t budget = 100;  // tensors; one may occur many times
  file.pickle().each([&](const model::PickleValue& value) {
    if (budget == 0 || !model::TorchFile::is_tensor(value)) return;
    --budget;
    refuses([&] {
      const auto tensor = file.read(value, "w");
      if (tensor.nbytes() > size) std::abort();
    });
  });
  refuses([&] { model::import_map_of(file).read(file); });
}

}  // namespace

FUZZ_TARGET(pickle)(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  refuses([&] {
    const model::TorchFile file(std::make_unique<core::RandomMemory>(bytes));
    read_all(file, size);
  });
}
