// Models as GGUF files: packed numbers, families, tokenizers, and what the format cannot express.

#include "core/file_text.h"
#include "folder_of_test.h"
#include "model/export_model.h"
#include "model/gguf/gguf_keys.h"
#include "model/gguf/gguf_tokenizer.h"
#include "model/tokenizer_file.h"
#include "nll_of.h"
#include "small_models.h"
#include "text/formats/tokenizer_json.h"

namespace {

using core::Code;

const std::string kFamilyFolder = "tests/golden/families/";
const std::string kPipelines = "tests/golden/tokenizers/pipelines/";

nn::ModelOptions llama_options() {
  auto options = model::load(kFamilyFolder + "llama").model->options;
  options.transformer.context = 24;
  options.transformer.rope = {};
  options.shape.d_model = 64, options.shape.d_ff = 96, options.shape.heads = 2;
  options.transformer.kv_heads = 0, options.transformer.d_head = 0;
  return options;
}

/// Reads the metadata that a tokenizer writes.
text::TokenizerPtr read_back(const std::string& json, std::int64_t rows, std::string& remark,
    const model::GgufIds& ids = {}) {
  core::MemorySink sink;
  model::write_gguf(sink, model::gguf_tokenizer_keys(json, rows, ids, remark), {}, nullptr);
  const model::GgufFile file(sink.bytes, "x.gguf");
  return text::parse_tokenizer(model::gguf_tokenizer(file), "x.gguf");
}

}  // namespace

DOCTEST_TEST_CASE("numbers are packed as llama.cpp's package packs them") {
  const model::GgufFile file("tests/golden/gguf/packed.gguf");
  const auto& from = file.tensors().at("numbers");
  std::vector<float> numbers(from.bytes / sizeof(float));
  model::gguf_unpack(*from.type, file.bytes_of(from), numbers.data());
  for (const char* name : {"F16", "BF16", "Q8_0", "Q4_0", "Q4_1"}) {
    DOCTEST_CAPTURE(name);
    const auto expected = file.bytes_of(file.tensors().at(name));
    const auto* const type = model::gguf_type_to_write(name);
    std::vector<std::byte> packed(numbers.size() / type->elements * type->bytes);
    model::gguf_pack(*type, numbers, packed.data());
    DOCTEST_REQUIRE(packed.size() == expected.size());
    for (std::size_t i = 0; i < packed.size(); ++i) {
      DOCTEST_CAPTURE(i);
      DOCTEST_CHECK(packed[i] == expected[i]);
    }
  }
}

DOCTEST_TEST_CASE("NaN is packed as NaN and a number that is too large as infinity") {
  const std::vector<float> numbers = {NAN, -NAN, 1e6F, -1e6F};
  for (const char* name : {"F16", "BF16"}) {
    DOCTEST_CAPTURE(name);
    const auto* const type = model::gguf_type_to_write(name);
    std::vector<std::byte> packed(numbers.size() * type->bytes);
    std::vector<float> read(numbers.size());
    model::gguf_pack(*type, numbers, packed.data());
    model::gguf_unpack(*type, packed, read.data());
    DOCTEST_CHECK((std::isnan(read[0]) && std::isnan(read[1])));
    DOCTEST_CHECK(std::isinf(read[2]) == (type->name == "F16"));
    DOCTEST_CHECK(read[3] == -read[2]);
  }
}

DOCTEST_TEST_CASE("a GGUF file is the model that was exported") {
  const TemporaryFolder folder;
  for (const std::string family :
      {"mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_text", "phi3"}) {
    DOCTEST_CAPTURE(family);
    // Qwen 2 without the windows of its golden folder.
    std::filesystem::copy(kFamilyFolder + family, folder / family);
    auto config = core::read_json(folder / (family + "/config.json"));
    const bool scaled = config.contains("query_pre_attn_scalar");
    if (scaled) {
      config["query_pre_attn_scalar"] = config["head_dim"];  // another value has no key
      overwrite(folder / (family + "/config.json"), core::dump(config));
    }
    if (family == "qwen2") {
      expect_error(Code::bad_config, "GGUF cannot express attention_window",
          [&] { model::export_gguf(model::load(folder / family), "", "auto", folder / "x.gguf"); });
      config["use_sliding_window"] = false;
      config.erase("layer_types");
      overwrite(folder / "qwen2/config.json", core::dump(config));
    }
    const auto loaded = model::load(folder / family);
    const auto path = folder / (family + ".gguf");
    const auto written = model::export_gguf(loaded, "", "float32", path);
    DOCTEST_CHECK(written.notes ==
                  std::vector<std::string>{"the model has no tokenizer, so the file has none"});
    const auto again = model::load(path);
    const auto ids = some_ids(loaded.model->vocabulary);
    DOCTEST_CHECK(
        loss_of(*again.model, ids) == doctest::Approx(loss_of(*loaded.model, ids)).epsilon(1e-6));
    // Gemma's norms are written with 1 added. All other numbers are equal.
    if (!family.starts_with("gemma")) DOCTEST_CHECK((again.fingerprint == loaded.fingerprint));
    if (family == "qwen2" || scaled) continue;
    const auto golden = golden_nll(kFamilyFolder + family + "/nll.json");
    DOCTEST_CHECK(nll_gap(*again.model, golden) < 1e-4);
  }
}

DOCTEST_TEST_CASE("a GGUF file has the type of number that was asked for") {
  const TemporaryFolder folder;
  auto options = llama_options();
  model::save(folder / "m", *random_model(options), {{"family", "llama"}}, "");
  const auto loaded = model::load(folder / "m");
  const auto weights = [](const model::Loaded& of) {
    const auto named = of.model->named_weights();
    return model::TensorMap{named.begin(), named.end()};
  };
  const auto exact = weights(loaded);
  for (const auto& [dtype, type] :
      {std::pair("float16", torch::kHalf), std::pair("bfloat16", torch::kBFloat16)}) {
    model::export_gguf(loaded, "", dtype, folder / "x.gguf");
    for (const auto& [name, values] : weights(model::load(folder / "x.gguf"))) {
      DOCTEST_CAPTURE(name);
      const auto& whole = exact.at(name);
      DOCTEST_CHECK(values.equal(whole.dim() == 1 ? whole : whole.to(type).to(torch::kFloat32)));
    }
  }
  const auto half = [](const torch::Tensor& x) { return x.to(torch::kHalf).to(torch::kFloat32); };
  for (const char* dtype : {"q4_0", "q4_1"}) {
    model::export_gguf(loaded, "", dtype, folder / "x.gguf");
    for (const auto& [name, values] : weights(model::load(folder / "x.gguf"))) {
      DOCTEST_CAPTURE(name);
      if (exact.at(name).dim() == 1) {
        DOCTEST_CHECK(values.equal(exact.at(name)));
        continue;
      }
      const auto x = exact.at(name).reshape({-1, 32});
      const auto least = x.amin(1, true), most = x.amax(1, true);
      const auto rounded = [&](const torch::Tensor& d, const torch::Tensor& from, double middle) {
        return ((x - from) * (1 / d) + middle).floor().clamp(0, 15);
      };
      const auto largest = x.gather(1, x.abs().argmax(1, true)), d = largest / -8,
                 step = (most - least) / 15;
      const auto expected = std::string(dtype) == "q4_0"
                                ? half(d) * (rounded(d, torch::zeros({1}), 8.5) - 8)
                                : half(step) * rounded(step, least, 0.5) + half(least);
      DOCTEST_CHECK(values.reshape({-1, 32}).equal(expected));
    }
  }
  const auto written = model::export_gguf(loaded, "", "q8_0", folder / "x.gguf");
  DOCTEST_CHECK(written.notes.size() == 1);  // no tokenizer
  for (const auto& [name, values] : weights(model::load(folder / "x.gguf"))) {
    DOCTEST_CAPTURE(name);
    const auto& whole = exact.at(name);
    if (whole.dim() == 1) continue;
    // Half a step of the block's scale, plus the rounding of the scale.
    const auto blocks = whole.reshape({-1, 32});
    const auto room = blocks.abs().amax(1, true) / 127 * 0.6;
    DOCTEST_CHECK(((values.reshape({-1, 32}) - blocks).abs() <= room).all().item<bool>());
    DOCTEST_CHECK(!values.equal(whole));
  }
  // Rows of 48 numbers have no whole blocks.
  options.shape.d_model = 48, options.shape.heads = 2, options.transformer.kv_heads = 0;
  options.transformer.d_head = 0;
  model::save(folder / "odd", *random_model(options), {{"family", "llama"}}, "");
  for (const char* dtype : {"q8_0", "q4_0", "q4_1"}) {
    const auto notes =
        model::export_gguf(model::load(folder / "odd"), "", dtype, folder / "odd.gguf").notes;
    DOCTEST_CHECK(notes[0].find("their rows are not multiples of 32") != std::string::npos);
    model::load(folder / "odd.gguf");
  }
}

DOCTEST_TEST_CASE("tokenizers of other people go into a GGUF file and come back with equal ids") {
  const std::map<std::string, std::string> without_normalizer = {{"qwen2", "NFC"}};
  // Tekken's merges make all its tokens. It therefore does not matter that llama.cpp ignores merges
  // for a piece that is a token.
  for (const std::string name : {"llama3", "smollm", "qwen2", "o200k", "tekken", "deepseek"}) {
    DOCTEST_CAPTURE(name);
    const auto own = text::load_tokenizer(kPipelines + name + ".json");
    const auto rows = static_cast<std::int64_t>(own->size()) + 5;  // padded
    std::string remark;
    const auto again = read_back(own->json(), rows, remark);
    DOCTEST_CHECK(remark.empty() == (without_normalizer.count(name) == 0));
    DOCTEST_CHECK(again->text_template().begin == own->text_template().begin);
    for (const char* file : {"hard.txt", "sample.txt"}) {
      if (!remark.empty() && file == std::string("hard.txt")) continue;  // it is not normal
      const auto text = core::read_text("tests/golden/tokenizers/" + std::string(file));
      DOCTEST_CHECK(again->encode(text) == own->encode(text));
    }
    for (const auto& token : own->special_tokens())
      DOCTEST_CHECK(again->token(token.id) == token.content);
  }
  // SentencePiece's merges follow from scores in a GGUF file; the format cannot express others.
  {
    const auto own = text::load_tokenizer("tests/golden/sentencepiece/bpe.model");
    std::string remark;
    const auto again = read_back(own->json(), static_cast<std::int64_t>(own->size()) + 5, remark);
    const auto text = core::read_text("tests/golden/tokenizers/hard.txt");
    DOCTEST_CHECK(again->encode(text) == own->encode(text));
    DOCTEST_CHECK(remark == "llama.cpp has other spaces beside the user-defined token <sep>");
    expect_error(Code::bad_config, "cannot express its merges",
        [&] { read_back(text::load_tokenizer(kPipelines + "llama2.json")->json(), 4096, remark); });
  }
  // bytes is a BPE without merges.
  std::string remark;
  const auto bytes = read_back(text::load_tokenizer("bytes")->json(), 256, remark);
  read_back(text::load_tokenizer("bytes")->json(), 256, remark, {-1, -1, {7, 9, 11, 12}});
  DOCTEST_CHECK(remark == "left out 1 of the 4 end-of-text tokens, since GGUF has no key for them");
  DOCTEST_CHECK(bytes->encode("a\xFF b") == std::vector<std::uint32_t>{97, 255, 32, 98});
  // A space before the text although it already has one: no key expresses this.
  expect_error(Code::bad_config, "the splitting of",
      [&] { read_back(text::load_tokenizer(kPipelines + "lower.json")->json(), 4096, remark); });
  // Runs of digits: llama.cpp splits off each digit, or groups of three.
  expect_error(Code::bad_config,
      R"(no name for the pre-tokenizer {"pretokenizers":[{"individual_digits":false)",
      [&] { read_back(text::load_tokenizer(kPipelines + "digits.json")->json(), 4096, remark); });
  // A token that no merges make: it matters whether merges are used.
  {
    auto tekken = core::read_json(kPipelines + "tekken.json");
    tekken["model"]["merges"].erase(tekken["model"]["merges"].size() - 1);
    expect_error(Code::bad_config, "no name for the pre-tokenizer",
        [&] { read_back(core::dump(tekken), 4096, remark); });
  }
  expect_error(Code::bad_config, "a tokenizer of word", [&] {
    read_back(text::load_tokenizer("tests/golden/tokenizers/word.json")->json(), 4096, remark);
  });
  expect_error(Code::bad_config, "of a model of 10 tokens",
      [&] { read_back(text::load_tokenizer(kPipelines + "llama3.json")->json(), 10, remark); });
}

DOCTEST_TEST_CASE("a GGUF file has the chat template and the ends of a text") {
  const TemporaryFolder folder;
  const auto tokenizer = text::load_tokenizer(kPipelines + "llama3.json")->json();
  const auto rows = static_cast<std::int64_t>(text::parse_tokenizer(tokenizer, "")->size());
  model::save(folder / "m", *random_model(llama_options(), rows), {{"family", "llama"}}, tokenizer);
  overwrite(folder / "m/chat_template.jinja", "{{ messages[0].content }}!");
  overwrite(folder / "m/generation_config.json", R"({"eos_token_id": [7, 9, 11]})");
  model::export_gguf(model::load(folder / "m"), "", "auto", folder / "x.gguf");
  const auto again = model::load(folder / "x.gguf");
  DOCTEST_CHECK(model::chat_source_of(folder / "x.gguf") == "{{ messages[0].content }}!");
  const auto ends = model::end_tokens(again.folder, again.config);
  DOCTEST_REQUIRE(ends.size() >= 3);
  DOCTEST_CHECK(std::vector(ends.begin(), ends.begin() + 3) == std::vector<std::int64_t>{7, 9, 11});
  DOCTEST_CHECK(again.tokenizer == tokenizer);
}

DOCTEST_TEST_CASE("what a GGUF file cannot say is refused by name") {
  const TemporaryFolder folder;
  const auto refused = [&](const nn::ModelOptions& options, const std::string& part,
                           const char* dtype = "auto", double times = 1) {
    const auto made = random_model(options);
    const torch::NoGradGuard no_grad;
    for (const auto& [name, weight] : made->named_weights())
      if (weight.dim() == 2) torch::Tensor(weight).mul_(times);
    model::save(folder / "m", *made, {}, "");
    const auto loaded = model::load(folder / "m");
    expect_error(times == 1 ? Code::bad_config : Code::bad_data, part,
        [&] { model::export_gguf(loaded, "", dtype, folder / "x.gguf"); });
    DOCTEST_CHECK(!std::filesystem::exists(folder / "x.gguf"));
  };
  refused(small_gpt2(), "GGUF export of gpt2 is not supported");
  refused(small_adaptive(), "cannot be exported as GGUF");
  auto options = llama_options();
  options.transformer.rope.scaling = "llama3", options.transformer.rope.low = 2;
  refused(options, "GGUF cannot express rope_low_freq_factor");
  refused(llama_options(), "use bfloat16", "float16", 1e9);
  const auto loaded = model::load(kFamilyFolder + "llama");
  expect_error(Code::usage, "--output-format gguf",
      [&] { model::export_model(loaded, {.family = "", .dtype = "q8_0"}, folder / "out"); });
}

DOCTEST_TEST_CASE("numbers of a configuration go into a GGUF file as the nearest float32") {
  const TemporaryFolder folder;
  int number = 0;
  const auto holds = [&](const std::string& family, const nn::ModelOptions& options) {
    const auto name = folder / std::to_string(number++);
    model::save(name, *random_model(options), {{"family", family}}, "");
    const auto loaded = model::load(name);
    model::export_gguf(loaded, "", "auto", name + ".gguf");
    const auto again = model::load(name + ".gguf");
    const auto ids = some_ids();
    DOCTEST_CHECK(std::abs(loss_of(*again.model, ids) - loss_of(*loaded.model, ids)) < 1e-6);
  };
  auto options = llama_options();
  options.transformer.norm_epsilon = 9.999999747378752e-06;  // float32(1e-5), as Python prints it
  holds("llama", options);
  options.transformer.norm_epsilon = 1.0000000001e-5;
  options.transformer.rope.theta = 123456.789012;
  holds("llama", options);
  for (const std::string scaling : {"linear", "llama3", "yarn"}) {
    options = llama_options();
    options.transformer.rope.scaling = scaling;
    options.transformer.rope.factor = 8.300000190734863;
    if (scaling != "linear") options.transformer.rope.trained = scaling == "yarn" ? 24 : 8192;
    holds("llama", options);
    if (scaling != "yarn") continue;
    options.transformer.rope.fast_beta = 16.1, options.transformer.rope.slow_beta = 2;
    holds("llama", options);
  }
  options = model::load(kFamilyFolder + "gemma2").model->options;
  options.transformer.attention_scale = 0;
  options.transformer.attention_softcap = 50.1;
  options.vocabulary.logit_softcap = 30.100000381469727;
  holds("gemma2", options);
  options = model::load(kFamilyFolder + "gemma3_text").model->options;
  options.transformer.attention_scale = 0;
  options.transformer.rope.local_theta = 10000.1;
  holds("gemma3_text", options);
}

DOCTEST_TEST_CASE("scaled angles come back as they were") {
  const TemporaryFolder folder;
  for (const char* scaling : {"linear", "llama3", "yarn"}) {
    DOCTEST_CAPTURE(scaling);
    auto options = llama_options();
    auto& rope = options.transformer.rope;
    rope.scaling = scaling, rope.factor = 8, rope.theta = 5e5;
    if (rope.scaling == "llama3") rope.trained = 8192;
    if (rope.scaling == "yarn") rope.trained = 24;
    model::save(folder / scaling, *random_model(options), {{"family", "llama"}}, "");
    const auto loaded = model::load(folder / scaling);
    model::export_gguf(loaded, "", "auto", folder / "x.gguf");
    DOCTEST_CHECK((model::load(folder / "x.gguf").fingerprint == loaded.fingerprint));
  }
}
