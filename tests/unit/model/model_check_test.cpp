// What a folder says about itself, all its faults at once, and a model as one of a family.

#include "model/model_report.h"

#include "folder_of_test.h"
#include "model/export_model.h"
#include "model/folder.h"
#include "small_models.h"

namespace {

using core::Code;

/// Tessera's defaults: a scaled and shared embedding.
nn::ModelOptions usual() {
  auto options = small_gpt2();
  options.vocabulary.scale_embedding = true;
  return options;
}

double loss_in(const std::string& folder) {
  return loss_of(*model::load(folder, torch::kCPU, torch::kFloat64).model, some_ids());
}

}  // namespace

DOCTEST_TEST_CASE("a report's parts are the model's parameters, whatever its architecture") {
  for (const auto& arch : nn::architecture_names()) {
    if (nn::arch_facts(arch).reads_source) continue;
    DOCTEST_CAPTURE(arch);
    auto options = usual();
    options.arch = arch;
    const TemporaryFolder folder;
    const auto model = random_model(options);
    model::save(folder.path, *model, {{"memory", "long"}, {"segment", 8}}, "");
    const auto report = model::describe_model(folder.path);
    std::int64_t sum = 0;
    for (const auto& [part, count] : report["parts"].items()) sum += count.get<std::int64_t>();
    DOCTEST_CHECK(sum == model->parameter_count());
    DOCTEST_CHECK(report["parameters"] == model->parameter_count());
    DOCTEST_CHECK(report["types"]["F32"] == model->parameter_count());
    DOCTEST_CHECK(report["fingerprint"] == model::fingerprint(*model).hex());
    DOCTEST_CHECK(report["trained"]["memory"] == "long");
    DOCTEST_CHECK(!report.contains("tokenizer"));
    DOCTEST_CHECK(model::flattened(report)["trained.segment"] == 8);
    const auto verdict = model::check_model(folder.path);
    DOCTEST_CHECK_MESSAGE(verdict.ok(), verdict.lines());
    DOCTEST_CHECK((verdict.fingerprint == model::fingerprint(*model)));
    DOCTEST_CHECK(verdict.parameters == model->parameter_count());
  }
}

DOCTEST_TEST_CASE("weights read one at a time have the fingerprint of the whole model") {
  for (const std::string family : {"llama", "gpt_neox", "opt", "phi3"}) {
    const std::string path = "tests/golden/families/" + family;
    const auto loaded = model::load(path);
    DOCTEST_CHECK((model::check_model(path).fingerprint == loaded.fingerprint));
    DOCTEST_CHECK(model::describe_model(path)["fingerprint"] == loaded.fingerprint.hex());
  }
}

DOCTEST_TEST_CASE("all faults are told, and what does not depend on one is still looked at") {
  const TemporaryFolder folder;
  model::save(folder.path, *random_model(small_gpt2()), {{"memory", "none"}}, "");
  auto tensors = model::read_safetensors(folder / "model.safetensors");
  tensors["transformer.h.0.ln_1.weight"][3] = std::numeric_limits<float>::quiet_NaN();
  tensors["transformer.wpe.weight"][0][0] = std::numeric_limits<float>::infinity();
  tensors["transformer.h.1.ln_2.bias"] = torch::zeros(5);
  tensors["more"] = torch::zeros(2);
  tensors.erase("transformer.ln_f.bias");
  core::Output out(folder / "model.safetensors");
  model::write_safetensors(out, {tensors.begin(), tensors.end()});
  out.commit();
  overwrite(folder / "tokenizer.json", "[]");
  std::filesystem::create_directory(folder / "step-7");
  const auto verdict = model::check_model(folder.path);
  for (const char* part : {"tokenizer.json", "has no tensor transformer.ln_f.bias (16)",
           "transformer.h.1.ln_2.bias has shape (5), but config.json requires (16)",
           "tensor more (2) matches no part", "ln_1.weight has a value that is not finite",
           "wpe.weight has a value that is not finite", "step-7"})
    DOCTEST_CHECK_MESSAGE(
        verdict.lines().find(part) != std::string::npos, part << " in " << verdict.lines());
  DOCTEST_CHECK(verdict.faults.size() == 7);
  DOCTEST_CHECK(verdict.json()["faults"].size() == 7);
  const auto wrong = model::check_models({folder.path}, [](const auto&) {});
  DOCTEST_CHECK(wrong.find("(and 6 more)") != std::string::npos);
  // A configuration that differs from the saved one although all tensors fit.
  const TemporaryFolder other;
  model::save(other.path, *random_model(small_gpt2()), {{"memory", "none"}}, "");
  auto config = core::parse_json(core::read_text(other / "config.json"), "config.json");
  config["n_head"] = 4;
  config["tessera"]["model"]["heads"] = 4;
  overwrite(other / "config.json", core::dump(config));
  const auto changed = model::check_model(other.path);
  DOCTEST_REQUIRE(changed.faults.size() == 1);
  DOCTEST_CHECK(
      changed.faults[0].find("not the configuration that was saved") != std::string::npos);
  expect_error(Code::no_input, "does not exist", [&] { model::check_model(folder / "nothing"); });
}

DOCTEST_TEST_CASE(
    "a model goes to a family with the same function, or what stands against it is named") {
  const auto exported = [](const nn::ModelOptions& options, const std::string& family) {
    const TemporaryFolder folder;
    const auto model = random_model(options);
    model::save(folder / "a", *model, {{"memory", "local"}, {"segment", 8}}, "");
    model::ExportOptions asked;
    asked.family = family;
    const auto loaded = model::load(folder / "a");
    DOCTEST_CHECK(model::export_model(loaded, asked, folder / "b").family == family);
    const auto again = model::load(folder / "b");
    DOCTEST_CHECK(again.family == family);
    DOCTEST_CHECK(again.facts.memory == "local");
    DOCTEST_CHECK(again.facts.segment == 8);
    DOCTEST_CHECK(std::abs(loss_in(folder / "a") - loss_in(folder / "b")) < 1e-6);
    return again.model->options;
  };
  DOCTEST_CHECK(exported(small_gpt2(), "gpt2").vocabulary.tied);
  DOCTEST_CHECK(!exported(usual(), "gpt2").vocabulary.tied);
  auto untied = usual();
  untied.vocabulary.tied = false;
  untied.transformer.bias = false;
  DOCTEST_CHECK(exported(untied, "gpt2").transformer.has_bias("norm"));
  auto some = usual();
  some.transformer.bias_of = {"output", "norm"};
  DOCTEST_CHECK(exported(some, "opt").transformer.has_bias("qkv"));
  auto llama = usual();
  llama.transformer.positions = "rope", llama.transformer.norm_kind = "rms";
  llama.transformer.feed_forward = "gated", llama.transformer.activation = "silu";
  llama.transformer.bias_of = {"feed-forward"};
  DOCTEST_CHECK(exported(llama, "llama").transformer.has_bias("feed-forward"));
  DOCTEST_CHECK(!exported(llama, "llama").transformer.has_bias("qkv"));
  for (const std::string arch : {"mamba", "mamba2", "rwkv7"})
    for (const bool tied : {true, false})
      for (const bool scaled : {true, false}) {
        nn::ModelOptions options;
        options.arch = arch, options.shape.layers = 2;
        options.shape.d_model = arch == "rwkv7" ? 64 : 24;
        options.shape.heads = arch == "rwkv7" ? 1 : 4;
        options.vocabulary.tied = tied, options.vocabulary.scale_embedding = scaled;
        DOCTEST_CHECK(exported(options, arch).vocabulary.tied == (tied && !scaled));
      }

  const auto refused = [](const nn::ModelOptions& options, const std::string& family,
                           const std::string& part) {
    expect_error(Code::bad_config, part, [&] {
      model::in_shape_of(model::family_named(family, ""), random_model(options), "mine");
    });
  };
  refused(usual(), "llama",
      "mine: cannot be exported as llama: positions is \"learned\", not \"rope\"");
  refused(llama, "gpt2", "norm_kind is \"rms\", not \"layer\"");
  refused(small_adaptive(), "gpt2", "cutoffs is not empty");
  auto lstm = usual();
  lstm.arch = "lstm";
  refused(lstm, "gpt2", "arch is lstm, not transformer");
  auto bounded = usual();
  auto narrow = usual();
  narrow.arch = "rwkv7";
  refused(narrow, "rwkv7", "\"norm_eps\": 1e-05 with heads of 8 channels is not supported");
  bounded.arch = "mamba2", bounded.vocabulary.logit_softcap = 5;
  refused(bounded, "mamba2", "cannot be exported as mamba2: logit_softcap is 5.0, not 0.0");
}
