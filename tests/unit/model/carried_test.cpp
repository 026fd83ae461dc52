// The export of a model's folder preserves ids of tokens, files of other programs and the weights'
// numbers.

#include "folder_of_test.h"
#include "model/export_model.h"
#include "small_models.h"

namespace {

using core::Code;
namespace fs = std::filesystem;

const std::map<std::string, std::string> kFiles = {
    {"generation_config.json", "{\"eos_token_id\": [2, 3]}"},
    {"chat_template.jinja", "{{ messages }}\r\n\xFF"},
    {"tokenizer_config.json", "{\"eos_token\":\"<|im_end|>\"}\n"},
    {"special_tokens_map.json", "{}"}, {"added_tokens.json", "{\"<|im_end|>\": 2}"}};

// The golden Llama with bfloat16 weights, files of other programs and ids.
struct Source : TemporaryFolder {
  Source() {
    for (const auto& file : fs::directory_iterator("tests/golden/families/llama"))
      fs::copy_file(file.path(), path / file.path().filename());
    change([](auto& c) {
      c["eos_token_id"] = {2, 3}, c["bos_token_id"] = 1, c["pad_token_id"] = 2;
    });
    for (const auto& [name, bytes] : kFiles) overwrite(*this / name, bytes);
    overwrite(*this / "README.md", "not carried");
  }
  template <class Change> void change(const Change& change) const {
    auto config = core::parse_json(core::read_text(*this / "config.json"), "config.json");
    change(config);
    overwrite(*this / "config.json", core::dump(config));
  }
};

core::Json config_in(const std::string& folder) {
  return core::parse_json(core::read_text(folder + "/config.json"), folder);
}

bool exported(const std::string& from, const std::string& to, const std::string& dtype = "auto") {
  model::ExportOptions options;
  options.dtype = dtype;
  return model::export_model(model::load(from), options, to).was_there;
}

torch::Dtype type_in(const std::string& folder) {
  return model::stored_type(model::TensorFiles(folder), nullptr);
}

}  // namespace

DOCTEST_TEST_CASE("an exported folder has the source's ids, files and numbers, again and again") {
  const Source source;
  const TemporaryFolder folder;
  const std::string out = folder / "out";
  DOCTEST_CHECK(!exported(source.path, out));
  for (const auto& [name, bytes] : kFiles)
    DOCTEST_CHECK_MESSAGE(core::read_text(out + "/" + name) == bytes, name);
  DOCTEST_CHECK(core::read_text(out + "/README.md").starts_with("---\n# Written by model export."));
  const auto before = config_in(source.path), after = config_in(out);
  for (const char* key : {"bos_token_id", "eos_token_id", "pad_token_id", "dtype", "torch_dtype"})
    DOCTEST_CHECK_MESSAGE(after.value(key, core::Json()) == before.value(key, core::Json()), key);
  DOCTEST_CHECK((type_in(out) == torch::kBFloat16));
  const auto loaded = model::load(out), original = model::load(source.path);
  DOCTEST_CHECK((loaded.fingerprint == original.fingerprint));
  DOCTEST_CHECK(loss_of(*loaded.model, some_ids()) == loss_of(*original.model, some_ids()));
  // Exporting again writes nothing, also from the export itself. Anything else is refused.
  DOCTEST_CHECK(exported(source.path, out));
  DOCTEST_CHECK(!exported(out, folder / "third"));
  DOCTEST_CHECK(core::read_text(folder / "third/generation_config.json") ==
                kFiles.at("generation_config.json"));
  overwrite(out + "/chat_template.jinja", "other");
  expect_error(
      Code::cannot_create, "already contains a model", [&] { exported(source.path, out); });
  // An interrupted export is redone, and what another source left is removed.
  fs::remove(out + "/model.safetensors");
  overwrite(out + "/added_tokens.json", "stale");
  fs::remove(source / "added_tokens.json");
  DOCTEST_CHECK(!exported(source.path, out));
  DOCTEST_CHECK(!core::exists(out + "/added_tokens.json"));
  DOCTEST_CHECK(core::read_text(out + "/chat_template.jinja") == kFiles.at("chat_template.jinja"));
  DOCTEST_CHECK(exported(source.path, out));
  // A README.md that another program wrote stays.
  fs::create_directory(folder / "described");
  overwrite(folder / "described/README.md", "own words");
  DOCTEST_CHECK(!exported(source.path, folder / "described"));
  DOCTEST_CHECK(core::read_text(folder / "described/README.md") == "own words");
  // A user's file is not a file of the export.
  fs::create_directory(folder / "mine");
  overwrite(folder / "mine/generation_config.json", "{}");
  expect_error(Code::cannot_create, "already contains generation_config.json",
      [&] { exported(source.path, folder / "mine"); });
}

DOCTEST_TEST_CASE("an id that the source leaves to its family stays left to it") {
  const Source source;
  source.change([](auto& c) { c.erase("eos_token_id"), c.erase("pad_token_id"); });
  const TemporaryFolder folder;
  exported(source.path, folder / "out");
  const auto config = config_in(folder / "out");
  DOCTEST_CHECK(!config.contains("eos_token_id"));
  DOCTEST_CHECK(!config.contains("pad_token_id"));
  DOCTEST_CHECK(config["bos_token_id"] == 1);
}

DOCTEST_TEST_CASE("--dtype: the weights are the numbers that are asked for") {
  const Source source;
  const TemporaryFolder folder;
  exported(source.path, folder / "float32", "float32");
  DOCTEST_CHECK((type_in(folder / "float32") == torch::kFloat32));
  DOCTEST_CHECK(config_in(folder / "float32").dump().find("bfloat16") == std::string::npos);
  const auto original = model::load(source.path);
  DOCTEST_CHECK((model::load(folder / "float32").fingerprint == original.fingerprint));
  exported(source.path, folder / "float16", "float16");
  DOCTEST_CHECK((type_in(folder / "float16") == torch::kHalf));
  const double near = loss_of(*model::load(folder / "float16").model, some_ids());
  DOCTEST_CHECK(near == doctest::Approx(loss_of(*original.model, some_ids())).epsilon(1e-3));
  // float16 goes to float16.
  DOCTEST_CHECK(!exported(folder / "float16", folder / "again"));
  DOCTEST_CHECK((type_in(folder / "again") == torch::kHalf));
  // A weight that float16 cannot hold is refused, not made infinite.
  const auto model = random_model(small_gpt2());
  {
    const torch::NoGradGuard no_grad;
    torch::Tensor(model->named_weights()[0].second).flatten()[0].fill_(1e6);
  }
  model::save(folder / "large", *model, {}, "");
  expect_error(Code::bad_data, "transformer.wte.weight",
      [&] { exported(folder / "large", folder / "small", "float16"); });
  DOCTEST_CHECK(!core::exists(folder / "small/model.safetensors"));
}
