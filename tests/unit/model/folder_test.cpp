#include "model/folder.h"

#include "counted_memory.h"
#include "folder_of_test.h"
#include "model/safetensors.h"
#include "model/tokenizer_file.h"
#include "small_models.h"
#include "text/tokenizer/word_level.h"

namespace {

using core::Code;

/// Returns the canonical JSON of a tokenizer of a few words.
std::string tokenizer_of(const std::string& word) {
  text::Vocabulary words;
  for (const auto& token : {std::string("<unk>"), std::string("<eos>"), word}) words.add(token);
  return text::WordLevel(std::move(words), {}).json();
}
const std::string kTokenizer = tokenizer_of("castle");

core::OrderedJson facts() {
  return {{"memory", "local,long"}, {"segment", 16}, {"training", {{"steps", 3}}}};
}

/// Reads, changes and writes config.json.
template <class Change> void change_config(const TemporaryFolder& folder, const Change& change) {
  auto json = core::parse_json(core::read_text(folder / "config.json"), "config.json");
  change(json);
  overwrite(folder / "config.json", core::dump(json));
}

/// Rewrites model.safetensors without Tessera's digest or fingerprint, as other programs would.
template <class Change> void change_weights(const TemporaryFolder& folder, const Change& change) {
  model::TensorMap tensors = model::read_safetensors(folder / "model.safetensors");
  change(tensors);
  core::Output out(folder / "model.safetensors");
  model::write_safetensors(out, {tensors.begin(), tensors.end()});
  out.commit();
}

}  // namespace

DOCTEST_TEST_CASE("a folder gives back the model, its tokenizer and facts, whatever its shape") {
  auto untied = small_gpt2();
  untied.vocabulary.tied = false;
  untied.shape.d_ff = 24;
  auto rope = small_gpt2();
  rope.transformer.positions = "rope";
  rope.transformer.bias = false;
  for (const auto& options : {small_gpt2(), small_adaptive(), untied, rope}) {
    const TemporaryFolder folder;
    const auto model = random_model(options);
    model::save(folder.path, *model, facts(), kTokenizer);
    torch::manual_seed(3);
    const auto before = at::globalContext().defaultGenerator(torch::kCPU).get_state();
    const auto loaded = model::load(folder.path);
    DOCTEST_CHECK(at::globalContext().defaultGenerator(torch::kCPU).get_state().equal(before));
    DOCTEST_CHECK(!loaded.model->is_training());
    const auto expected = model->named_weights(), found = loaded.model->named_weights();
    DOCTEST_REQUIRE(found.size() == expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      DOCTEST_CHECK(found[i].first == expected[i].first);
      DOCTEST_CHECK_MESSAGE(found[i].second.equal(expected[i].second), found[i].first);
    }
    DOCTEST_CHECK(loss_of(*loaded.model, some_ids()) == loss_of(*model, some_ids()));
    DOCTEST_CHECK(core::to_json(loaded.model->options) == core::to_json(options));
    DOCTEST_CHECK(loaded.model->vocabulary == 64);
    DOCTEST_CHECK(loaded.facts.memory == "local,long");
    DOCTEST_CHECK(loaded.facts.segment == 16);
    DOCTEST_CHECK(loaded.facts.all["training"]["steps"] == 3);
    DOCTEST_CHECK(
        loaded.facts.tokenizer_fingerprint == model::tokenizer_fingerprint(loaded.tokenizer));
    DOCTEST_CHECK((loaded.fingerprint == model::fingerprint(*model)));
  }
}

DOCTEST_TEST_CASE(
    "equal models give equal bytes; weights and what matters of the options change the fingerprint") {
  const TemporaryFolder a, b;
  const auto model = random_model(small_gpt2());
  model::save(a.path, *model, facts(), "");
  model::save(b.path, *random_model(small_gpt2()), facts(), "");
  for (const char* name : {"config.json", "model.safetensors"})
    DOCTEST_CHECK_MESSAGE(core::read_text(a / name) == core::read_text(b / name), name);
  DOCTEST_CHECK(!std::filesystem::exists(a / "tokenizer.json"));

  const auto fingerprint = model::fingerprint(*model);
  const auto with = [&](auto change) {
    const auto other = random_model(small_gpt2());
    change(*other);
    return model::fingerprint(*other);
  };
  DOCTEST_CHECK((with([](nn::Model& m) { m.options.shape.dropout = .5; }) == fingerprint));
  DOCTEST_CHECK(
      (with([](nn::Model& m) { m.options.shape.d_ff = 64; }) == fingerprint));  // 4 d_model anyway
  DOCTEST_CHECK((with([](nn::Model& m) { m.options.shape.heads = 4; }) != fingerprint));
  DOCTEST_CHECK(
      (with([](nn::Model& m) { m.options.transformer.norm_epsilon = 1e-6; }) != fingerprint));
  DOCTEST_CHECK((with([](nn::Model& m) {
    const torch::NoGradGuard no_grad;
    m.named_weights().back().second.flatten()[0].add_(1e-3);
  }) != fingerprint));
}

DOCTEST_TEST_CASE("half-precision weights are read as float32, and as what is asked for") {
  const TemporaryFolder folder;
  const auto model = random_model(small_gpt2());
  model::save(folder.path, *model, facts(), "");
  change_weights(folder, [](auto& tensors) {
    for (auto& [name, tensor] : tensors)
      tensor = tensor.to(name.find("wte") != name.npos ? torch::kFloat16 : torch::kBFloat16);
  });
  const auto loaded = model::load(folder.path);
  const auto weights = loaded.model->named_weights(), expected = model->named_weights();
  for (std::size_t i = 0; i < weights.size(); ++i) {
    DOCTEST_CHECK((weights[i].second.scalar_type() == torch::kFloat32));
    const auto rounded = expected[i].second.to(
        weights[i].first.find("wte") != std::string::npos ? torch::kFloat16 : torch::kBFloat16);
    DOCTEST_CHECK(weights[i].second.equal(rounded.to(torch::kFloat32)));
  }
  const auto half = model::load(folder.path, torch::kCPU, torch::kBFloat16);
  DOCTEST_CHECK((half.model->named_weights()[0].second.scalar_type() == torch::kBFloat16));
  DOCTEST_CHECK((half.fingerprint == loaded.fingerprint));
}

DOCTEST_TEST_CASE(
    "a model is loaded in the files' type, and beside it there is one weight at a time") {
  auto options = small_gpt2();
  options.shape.layers = 12, options.shape.d_model = 64;
  const TemporaryFolder folder;
  const auto model = random_model(options, 200);
  model::save(folder.path, *model, facts(), "");
  DOCTEST_CHECK((
      model::load(folder.path, torch::kCPU, std::nullopt).model->head->weights()[0].scalar_type() ==
      torch::kFloat32));
  change_weights(folder, [](auto& tensors) {
    for (auto& [name, tensor] : tensors) tensor = tensor.to(torch::kBFloat16);
  });
  std::int64_t largest = 0, bytes = 0;
  for (const auto& [name, weight] : model->named_weights()) {
    largest = std::max(largest, weight.numel());
    bytes += 2 * weight.numel();
  }
  const CountedMemory memory;
  const auto loaded = model::load(folder.path, torch::kCPU, std::nullopt);
  for (const auto& [name, weight] : loaded.model->named_weights())
    DOCTEST_CHECK_MESSAGE((weight.scalar_type() == torch::kBFloat16), name);
  DOCTEST_CHECK(memory.held() >= bytes);
  DOCTEST_CHECK(memory.most() < bytes + 12 * largest);
}

DOCTEST_TEST_CASE("what is missing in a folder is named") {
  const TemporaryFolder folder;
  const auto refused = [&](Code code, const std::string& part) {
    expect_error(code, part, [&] { model::load(folder.path); });
  };
  refused(Code::no_input, "no config.json");
  expect_error(Code::no_input, "does not exist", [&] { model::load(folder / "absent"); });
  model::save(folder.path, *random_model(small_gpt2()), facts(), kTokenizer);
  std::filesystem::rename(folder / "model.safetensors", folder / "pytorch_model.bin");
  refused(Code::no_input, "pytorch_model.bin is not supported");
  std::filesystem::remove(folder / "pytorch_model.bin");
  refused(Code::no_input, "no model.safetensors");
}

DOCTEST_TEST_CASE("a tokenizer that is not the model's is refused") {
  const TemporaryFolder folder;
  model::save(folder.path, *random_model(small_gpt2()), facts(), kTokenizer);
  overwrite(folder / "tokenizer.json", tokenizer_of("tower"));
  expect_error(
      Code::bad_data, "tokenizer.json: is not the tokenizer", [&] { model::load(folder.path); });
}

DOCTEST_TEST_CASE("a tokenizer is given to a model without one, never to one with another") {
  const TemporaryFolder folder;
  model::Loaded loaded;
  loaded.folder = "a-model";
  const auto give = [&](const std::string& tokenizer) {
    overwrite(folder / "given.json", tokenizer);
    model::give_tokenizer(loaded, folder / "given.json");
  };
  model::give_tokenizer(loaded, "");
  DOCTEST_CHECK(loaded.tokenizer.empty());
  give(kTokenizer);
  DOCTEST_CHECK(loaded.tokenizer == kTokenizer);
  give(kTokenizer);
  expect_error(
      Code::bad_data, "a-model: its tokenizer differs from", [&] { give(tokenizer_of("tower")); });
}

DOCTEST_TEST_CASE("shards of another tokenizer are refused, both fingerprints named") {
  const TemporaryFolder folder;
  model::save(folder.path, *random_model(small_gpt2()), facts(), kTokenizer);
  const auto loaded = model::load(folder.path);
  shard::Header header;
  header.tokenizer = loaded.tokenizer;
  header.vocabulary = 64;
  const auto check = [&] { model::check_tokenizer(loaded, header, "x.shard.zst"); };
  check();
  header.vocabulary = 60;  // the model's other rows are padding
  check();
  header.vocabulary = 65;
  expect_error(Code::bad_data, "its vocabulary is 65; allowed: ", check);
  header.vocabulary = 64;
  header.tokenizer += " ";
  expect_error(Code::bad_data, model::tokenizer_fingerprint(header.tokenizer), check);
  expect_error(Code::bad_data, loaded.facts.tokenizer_fingerprint, check);
  header.tokenizer.clear();
  check();
  for (const std::uint64_t other : {63, 65}) {
    header.vocabulary = other;
    expect_error(Code::bad_data, "its vocabulary is " + std::to_string(other), check);
  }
}

DOCTEST_TEST_CASE("weights that do not fit the configuration are named") {
  for (const bool gpt2 : {true, false}) {
    const TemporaryFolder folder;
    const auto refused = [&](const std::string& part, auto change) {
      model::save(folder.path, *random_model(gpt2 ? small_gpt2() : small_adaptive()), facts(), "");
      change_weights(folder, change);
      expect_error(Code::bad_data, part, [&] { model::load(folder.path); });
    };
    const std::string name = "transformer.h.1.mlp.c_fc.weight";
    refused(
        "no tensor " + name + (gpt2 ? " (16, 64)" : " (64, 16)"), [&](auto& t) { t.erase(name); });
    refused("tensor " + name + " has shape (2, 3), but config.json requires (", [&](auto& t) {
      t[name] = torch::zeros({2, 3});
    });
    refused("tensor extra (4) matches no part", [&](auto& t) { t["extra"] = torch::zeros({4}); });
    refused("tensor " + name + " has a value that is not finite",
        [&](auto& t) { t[name][1][1] = NAN; });
    refused("tensor " + name + " has a value that is not finite",
        [&](auto& t) { t[name][1][1] = INFINITY; });
    refused(
        "tensor " + name + " has type Int", [&](auto& t) { t[name] = t[name].to(torch::kInt32); });
    refused("1 tensors for 2 layers", [&](auto& t) { t.erase(std::next(t.begin()), t.end()); });
  }
}

DOCTEST_TEST_CASE(
    "a flipped bit in the weights, or a configuration that was changed under them, is found") {
  const TemporaryFolder folder;
  model::save(folder.path, *random_model(small_adaptive()), facts(), "");
  const std::string path = folder / "model.safetensors", whole = core::read_text(path);
  std::string flipped = whole;
  flipped[whole.size() - 100] = static_cast<char>(flipped[whole.size() - 100] ^ 1);
  overwrite(path, flipped);
  expect_error(Code::bad_data, "corrupt file", [&] { model::load(folder.path); });
  overwrite(path, whole);
  change_config(folder, [](core::Json& c) { c["tessera"]["model"]["heads"] = 4; });
  expect_error(Code::bad_data, "not the configuration", [&] { model::load(folder.path); });
}

DOCTEST_TEST_CASE("vocab.json and merges.txt are GPT-2's, unless their class says another") {
  const TemporaryFolder folder;
  overwrite(folder / "vocab.json", R"({"a":0,"b":1,"ab":2})");
  overwrite(folder / "merges.txt", "#version: 0.2\na b\n");
  const std::string tokenizer = model::read_tokenizer(folder.path);
  DOCTEST_CHECK(!tokenizer.empty());
  for (const char* name : {"GPT2Tokenizer", "GPT2TokenizerFast"}) {
    overwrite(
        folder / "tokenizer_config.json", std::string(R"({"tokenizer_class":")") + name + "\"}");
    DOCTEST_CHECK(model::read_tokenizer(folder.path) == tokenizer);
  }
  overwrite(folder / "tokenizer_config.json", R"({"tokenizer_class":"Qwen2Tokenizer"})");
  expect_error(Code::bad_data, "Qwen2Tokenizer", [&] { model::read_tokenizer(folder.path); });
  // A tokenizer.json is sufficient.
  overwrite(folder / "tokenizer.json", kTokenizer);
  DOCTEST_CHECK(model::read_tokenizer(folder.path) == kTokenizer);
}
