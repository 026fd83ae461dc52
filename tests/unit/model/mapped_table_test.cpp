// Tables of n-grams stay in model.safetensors: values, fingerprint, and what of them is in memory.

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

#include "folder_of_test.h"
#include "model/folder.h"
#include "small_models.h"

namespace {

nn::ModelOptions with_ngrams(std::int64_t rows) {
  auto options = small_gpt2();
  options.transformer.positions = "rope";
  options.memory_layer.kind = "ngram";
  options.memory_layer.layers = {1, 2}, options.memory_layer.heads = 2;
  options.memory_layer.rows = rows;
  return options;
}

constexpr const char* kTable = "transformer.h.1.ngram.tables";

torch::Tensor weight_of(const nn::Model& model, const std::string& name) {
  for (const auto& [key, weight] : model.named_weights())
    if (key == name) return weight;
  return {};
}

// Resident memory that is no file's: how many pages of a file a touched one brings along is the
// system's choice.
std::int64_t own_bytes() {
  long whole = 0, resident = 0, of_files = 0;
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  const bool read =
      file != nullptr && std::fscanf(file, "%ld %ld %ld", &whole, &resident, &of_files) == 3;
  if (file != nullptr) std::fclose(file);
  return read ? (resident - of_files) * ::sysconf(_SC_PAGESIZE) : -1;
}

}  // namespace

DOCTEST_TEST_CASE(
    "a table of n-grams that stays in its file has all values, and is never written") {
  const TemporaryFolder folder;
  const auto model = random_model(with_ngrams(300));
  model::save(folder.path, *model, core::OrderedJson::object(), "");
  const auto path = folder / "model.safetensors";
  const auto bytes = core::hash128(core::read_text(path)).hex();
  const auto loaded = model::load(folder.path);
  const auto expected = model->named_weights();
  for (const auto& [name, weight] : expected)
    DOCTEST_CHECK_MESSAGE(weight_of(*loaded.model, name).equal(weight), name);
  DOCTEST_CHECK(loss_of(*loaded.model, some_ids()) == loss_of(*model, some_ids()));
  DOCTEST_CHECK((loaded.fingerprint == model::fingerprint(*model)));
  // Training goes on with private pages.
  {
    const torch::NoGradGuard no_grad;
    weight_of(*loaded.model, kTable).add_(1);
    DOCTEST_CHECK(weight_of(*loaded.model, kTable).equal(weight_of(*model, kTable) + 1));
  }
  DOCTEST_CHECK(core::hash128(core::read_text(path)).hex() == bytes);
  // Another type of number is converted, and so not left there.
  const auto narrow = model::load(folder.path, torch::kCPU, torch::kBFloat16);
  DOCTEST_CHECK(
      weight_of(*narrow.model, kTable).equal(weight_of(*model, kTable).to(torch::kBFloat16)));
}

DOCTEST_TEST_CASE("a table of n-grams that holds a value which is not finite is refused by name") {
  const TemporaryFolder folder;
  const auto model = random_model(with_ngrams(300));
  {
    const torch::NoGradGuard no_grad;
    weight_of(*model, kTable)[7][3] = std::numeric_limits<float>::infinity();
  }
  model::save(folder.path, *model, core::OrderedJson::object(), "");
  expect_error(core::Code::bad_data, kTable, [&] { model::load(folder.path); });
}

DOCTEST_TEST_CASE("a large table of n-grams takes no memory but the pages of its file") {
  constexpr std::int64_t kRows = 1 << 21, kBytes = 2 * 2 * kRows * 8 * 4;  // 256 MiB
  const TemporaryFolder folder;
  const auto model = random_model(with_ngrams(16));
  model::save(folder.path, *model, core::OrderedJson::object(), "");
  auto config = core::parse_json(core::read_text(folder / "config.json"), "config.json");
  config["tessera"]["model"]["memory_layer_rows"] = kRows;
  config["tessera"]["model"]["memory_layers"] = core::Json::array({2});
  overwrite(folder / "config.json", core::dump(config));
  // The other tensors, and behind them a table that is a hole but for its last row.
  auto tensors = model::read_safetensors(folder / "model.safetensors");
  for (auto it = tensors.begin(); it != tensors.end();)
    it = it->first.find("h.0.ngram") != std::string::npos || it->first == kTable ? tensors.erase(it)
                                                                                 : std::next(it);
  auto header = core::OrderedJson::object();
  std::string data;
  for (const auto& [name, tensor] : tensors) {
    header[name] = {{"dtype", "F32"}, {"shape", tensor.sizes().vec()},
        {"data_offsets", {data.size(), data.size() + tensor.nbytes()}}};
    data.append(static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes());
  }
  header[kTable] = {{"dtype", "F32"}, {"shape", {kBytes / 32, 8}},
      {"data_offsets", {data.size(), data.size() + kBytes}}};
  std::string text = core::dump(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = text.size();
  std::string file(reinterpret_cast<const char*>(&length), sizeof length);
  file += text + data;
  overwrite(folder / "model.safetensors", file);
  const auto size = static_cast<off_t>(file.size() + kBytes);
  DOCTEST_REQUIRE(::truncate((folder / "model.safetensors").c_str(), size) == 0);

  const auto before = own_bytes();
  const auto loaded = model::load(folder.path);
  const auto after_load = own_bytes();
  const auto loss = loss_of(*loaded.model, some_ids());
  const auto after_use = own_bytes();
  if (before < 0) {
    DOCTEST_MESSAGE("SKIP: no /proc/self/statm");
    return;
  }
  DOCTEST_CHECK(loss > 0);
  DOCTEST_CHECK(after_load - before < kBytes / 4);
  DOCTEST_CHECK(after_use - before < kBytes / 4);
  // The pages are the file's.
  const auto table = weight_of(*loaded.model, kTable);
  DOCTEST_REQUIRE(table.numel() * 4 == kBytes);
  const int out = ::open((folder / "model.safetensors").c_str(), O_WRONLY | O_CLOEXEC);
  const float last = 3;
  DOCTEST_CHECK(::pwrite(out, &last, sizeof last, size - 4) == sizeof last);
  ::close(out);
  DOCTEST_CHECK(table[-1][7].item<float>() == 3);
}
