// Paths that a user gives for a model: they are used if they identify a folder, else the message
// names what they are.

#include "model/model_path.h"

#include "folder_of_test.h"
#include "model/folder.h"
#include "model/model_config.h"
#include "model/safetensors.h"
#include "small_models.h"

namespace {

using core::Code;
using namespace std::string_literals;
namespace fs = std::filesystem;

void put(const std::string& path, const std::string& text) {
  fs::create_directories(fs::path(path).parent_path());
  overwrite(path, text);
}

}  // namespace

DOCTEST_TEST_CASE("a file of a model's folder and the root of a hub's cache mean the folder") {
  const TemporaryFolder folder;
  model::save(folder / "m", *random_model(small_gpt2()), {}, "");
  for (const char* name : {"m", "m/config.json", "m/model.safetensors"})
    DOCTEST_CHECK(fs::equivalent(model::load(folder / name).folder, folder / "m"));
  // As huggingface_hub stores it: links into blobs.
  const std::string hub = folder / "models--org--name";
  fs::create_directories(hub + "/snapshots/abc");
  for (const char* name : {"config.json", "model.safetensors"}) {
    put(hub + "/blobs/" + name, core::read_text(folder / "m/"s + name));
    fs::create_symlink("../../blobs/"s + name, hub + "/snapshots/abc/" + name);
  }
  DOCTEST_CHECK(model::load(hub).folder == hub + "/snapshots/abc");
  fs::create_directories(hub + "/snapshots/other");
  expect_error(Code::no_input, "give one of snapshots/", [&] { model::load(hub); });
  put(hub + "/refs/main", "abc\n");
  DOCTEST_CHECK(model::load(hub).folder == hub + "/snapshots/abc");
  expect_error(Code::no_input, "give one of its models--*", [&] { model::load(folder.path); });
}

DOCTEST_TEST_CASE("what is no model's folder is told by name, with the way in") {
  const TemporaryFolder folder;
  const auto refused = [&](Code code, const std::string& path, const std::string& part) {
    DOCTEST_CAPTURE(path);
    expect_error(code, part, [&] { model::load(path); });
  };
  refused(Code::no_input, folder / "absent", "absent: does not exist");
  refused(Code::no_input, "someorg/some-model", "hf download someorg/some-model --local-dir DIR");
  refused(Code::no_input, "someorg/x.safetensors", "does not exist; give a model's folder");
  fs::create_symlink("gone", folder / "link");
  refused(Code::no_input, folder / "link", "is a link to gone, which does not exist");
  put(folder / "book.txt", "It was a bright cold day");
  refused(Code::bad_data, folder / "book.txt", "is a text file");
  put(folder / "x.bin", "GGUF\3\0\0\0"s);
  DOCTEST_CHECK(model::model_folder(folder / "x.bin") == folder / "x.bin");
  put(folder / "ggufs/y.gguf", "GGUF\3\0\0\0"s);
  refused(Code::no_input, folder / "ggufs", "give " + (folder / "ggufs/y.gguf"));
  put(folder / "ckpt/ckpt.pt", "PK\3\4"s);
  refused(Code::no_input, folder / "ckpt", "model import");
  put(folder / "pickle.pt", "\x80\2}"s);
  refused(Code::bad_data, folder / "pickle.pt", "a file of torch.save");
  put(folder / "lora/adapter_config.json", R"({"base_model_name_or_path": "org/base"})");
  refused(Code::bad_data, folder / "lora", "of org/base");
  refused(Code::bad_data, folder / "lora", "give the model and --adapter " + (folder / "lora"));
  // Its trainer may have left a config.json there.
  put(folder / "lora/config.json", R"({"model_type": "llama"})");
  refused(Code::bad_data, folder / "lora", "is an adapter of org/base, not a model");
  put(folder / "store/store.json", "{}");
  refused(Code::no_input, folder / "store", "it is a datastore");
  put(folder / "ngrams/ngrams.json", "{}");
  refused(Code::no_input, folder / "ngrams", "it is an index of n-grams");
  put(folder / "run/checkpoint-500/config.json", "{}");
  refused(Code::no_input, folder / "run", "give " + (folder / "run/checkpoint-500"));
  put(folder / "spm.model", "\x0a\x0e\x0a\x05<unk>\x15"s);
  refused(Code::bad_data, folder / "spm.model", "a sentencepiece model");
  fs::create_directory(folder / "empty");
  refused(Code::no_input, folder / "empty", "not a model's folder");
  put(folder / "bare/config.json", R"({"model_type": "llama"})");
  refused(Code::no_input, folder / "bare", "has no weights");
  model::save(folder / "m", *random_model(small_gpt2()), {}, "");
  put(folder / "m/adapter_config.json", "{}");
  refused(Code::bad_config, folder / "m",
      "adapter_config.json beside config.json: give --adapter " + (folder / "m"));
  fs::remove(folder / "m/adapter_config.json");
  put(folder / "m/model.safetensors", "version https://git-lfs.github.com/spec/v1\noid sha256:1\n");
  refused(Code::bad_data, folder / "m", "git lfs pull");
}

DOCTEST_TEST_CASE("quantized weights are refused by the method's name") {
  const auto refused = [](const core::Json& config, const std::string& part) {
    expect_error(Code::bad_config, part, [&] { model::parse_config(config, "config.json"); });
  };
  for (const char* method : {"gptq", "awq", "bitsandbytes", "fp8", "compressed-tensors", "mxfp4"})
    refused({{"model_type", "llama"}, {"quantization_config", {{"quant_method", method}}}},
        "("s + method + ")");
  refused({{"model_type", "llama"}, {"quantization_config", {{"load_in_4bit", true}}}},
      "(bitsandbytes)");
  refused({{"model_type", "llama"}, {"quantization", {{"bits", 4}, {"group_size", 64}}}}, "(mlx)");
  // null means absent.
  refused({{"model_type", "llama"}, {"quantization_config", nullptr}}, "\"vocab_size\"");
}
