// Families of transformers' models: small folders that transformers wrote, in several files, with
// its results; the way back; and refusals. tests/golden/hf_families.py wrote the folders, and
// hf_families.bats runs transformers itself. rwkv7 is of flash-linear-attention: rwkv7.py wrote its
// folder, with the results of a plain reading.

#include "folder_of_test.h"
#include "model/families/family.h"
#include "model/folder.h"
#include "model/tensor_files.h"
#include "nll_of.h"
#include "small_models.h"

namespace {

using core::Code;
namespace fs = std::filesystem;

const char* const kFamilies[] = {"llama", "mistral", "qwen2", "qwen3", "olmo2", "gpt_neox", "opt",
    "phi3", "gpt_neo", "gemma", "gemma2", "gemma3_text", "mixtral", "qwen3_moe", "olmoe", "mamba",
    "mamba2", "rwkv7", "qwen3_5_text"};

GoldenNll golden(const std::string& family) {
  DOCTEST_REQUIRE_MESSAGE(
      fs::exists(kGoldenFamilies + family), "tests run in the root of the source tree");
  return golden_nll(kGoldenFamilies + family + "/nll.json");
}

/// A copy of a golden folder, for modification.
struct Copy : TemporaryFolder {
  explicit Copy(const std::string& family) {
    for (const auto& file : fs::directory_iterator(kGoldenFamilies + family))
      fs::copy_file(file.path(), path / file.path().filename());
  }
  core::Json json(const std::string& name) const {
    return core::parse_json(core::read_text(*this / name), name);
  }
  template <class Change> void change(const std::string& name, const Change& change) const {
    auto content = json(name);
    change(content);
    overwrite(*this / name, core::dump(content));
  }
};

constexpr const char* kIndex = "model.safetensors.index.json";

}  // namespace

DOCTEST_TEST_CASE("a folder of each family gives transformers' log-probabilities") {
  for (const std::string family : kFamilies) {
    DOCTEST_CAPTURE(family);
    const GoldenNll expected = golden(family);
    const auto exact = model::load(kGoldenFamilies + family, torch::kCPU, torch::kFloat64);
    DOCTEST_CHECK(exact.family == family);
    DOCTEST_CHECK(nll_gap(*exact.model, expected) < 1e-9);
    const auto usual = model::load(kGoldenFamilies + family);
    DOCTEST_CHECK(nll_gap(*usual.model, expected) < 1e-4);
  }
}

DOCTEST_TEST_CASE("queries whose halves are the other way round are seen") {
  const auto loaded = model::load(kGoldenFamilies + "llama", torch::kCPU, torch::kFloat64);
  const torch::NoGradGuard no_grad;
  const auto heads = nn::head_shape(loaded.model->options.shape, loaded.model->options.transformer);
  for (const auto& [name, weight] : loaded.model->named_weights()) {
    if (name != "transformer.h.0.attn.c_attn.weight") continue;
    const auto queries = weight.narrow(0, 0, heads.d_query()).unflatten(0, {heads.heads, 2, -1});
    queries.copy_(queries.flip(1).clone());
  }
  DOCTEST_CHECK(nll_gap(*loaded.model, golden("llama")) > 1e-2);
}

DOCTEST_TEST_CASE("what is read of a family is written as the family, and is the same model") {
  for (const std::string family : kFamilies) {
    DOCTEST_CAPTURE(family);
    const TemporaryFolder folder;
    const auto loaded = model::load(kGoldenFamilies + family);
    model::save(folder.path, *loaded.model, {{"memory", "local"}, {"family", family}}, "");
    const auto again = model::load(folder.path);
    DOCTEST_CHECK((again.fingerprint == loaded.fingerprint));
    DOCTEST_CHECK(again.family == family);
    DOCTEST_CHECK(again.facts.memory == "local");
    const model::TensorFiles ours(folder.path), theirs(kGoldenFamilies + family);
    DOCTEST_CHECK(ours.tensors() == theirs.tensors());
    // Without Tessera's own part it is like any other folder of the family.
    auto config = core::parse_json(core::read_text(folder / "config.json"), "config.json");
    config.erase("tessera");
    overwrite(folder / "config.json", core::dump(config));
    DOCTEST_CHECK((model::load(folder.path).fingerprint == loaded.fingerprint));
  }
}

DOCTEST_TEST_CASE("a shape that two families have is of the one that is asked for") {
  const Copy folder("mistral");
  folder.change("config.json", [](auto& c) { c["sliding_window"] = nullptr; });
  const auto loaded = model::load(folder.path);
  const auto written = [&](const core::OrderedJson& facts) {
    model::save(folder / "again", *loaded.model, facts, "");
    return model::load(folder / "again").family;
  };
  DOCTEST_CHECK(written({{"memory", "none"}}) == "llama");
  DOCTEST_CHECK(written({{"family", "mistral"}}) == "mistral");
  DOCTEST_CHECK(written({{"family", "phi3"}}) == "phi3");
  DOCTEST_CHECK(written({{"family", "olmo2"}}) == "llama");
}

DOCTEST_TEST_CASE("every shape is written as the family that has it, or as none") {
  const auto family = [](auto change) {
    auto options = small_gpt2();
    options.transformer.positions = "rope", options.transformer.norm_kind = "rms";
    options.transformer.feed_forward = "gated", options.transformer.activation = "silu";
    options.transformer.bias = false;
    change(options);
    const auto* const found = model::family_of(options);
    return found == nullptr ? "none" : std::string(found->type);
  };
  DOCTEST_CHECK(family([](auto&) {}) == "llama");
  DOCTEST_CHECK(family([](auto& o) { o = small_gpt2(); }) == "gpt2");
  DOCTEST_CHECK(family([](auto& o) {
    o = small_gpt2();
    o.transformer.bias_of = {"norm"};
  }) == "opt");
  DOCTEST_CHECK(family([](auto& o) {
    o = small_gpt2();
    o.transformer.positions = "rope", o.transformer.norm = "parallel";
    o.transformer.bias_of = {"norm", "feed-forward", "output", "qkv"};
  }) == "gpt_neox");
  DOCTEST_CHECK(family([](auto& o) { o = small_adaptive(); }) == "none");
  DOCTEST_CHECK(
      family([](auto& o) { o.transformer.kv_heads = 1, o.transformer.d_head = 6; }) == "llama");
  DOCTEST_CHECK(family([](auto& o) { o.transformer.rope.scaling = "yarn"; }) == "llama");
  DOCTEST_CHECK(family([](auto& o) { o.transformer.rope.share = 0.5; }) == "phi3");
  DOCTEST_CHECK(family([](auto& o) { o.transformer.attention_window = {4}; }) == "mistral");
  DOCTEST_CHECK(family([](auto& o) { o.transformer.attention_window = {4, 0}; }) == "smollm3");
  DOCTEST_CHECK(family([](auto& o) {
    o.transformer.bias = true, o.transformer.bias_of = {"qkv"};
  }) == "qwen2");
  DOCTEST_CHECK(family([](auto& o) {
    o.transformer.bias = true, o.transformer.bias_of = {"qkv"};
    o.transformer.attention_window = {4, 0};
  }) == "qwen2");
  DOCTEST_CHECK(family([](auto& o) { o.transformer.qk_norm = "head"; }) == "qwen3");
  DOCTEST_CHECK(family([](auto& o) {
    o.transformer.qk_norm = "whole", o.transformer.norm = "sublayer";
  }) == "olmo2");
  DOCTEST_CHECK(family([](auto& o) { o.transformer.qk_norm = "whole"; }) == "none");
  DOCTEST_CHECK(family([](auto& o) { o.transformer.bias = true; }) == "none");
  DOCTEST_CHECK(family([](auto& o) { o.vocabulary.scale_embedding = true; }) == "none");
}

DOCTEST_TEST_CASE("experts in one tensor a layer are those in a tensor each") {
  const Copy folder("qwen3_moe");
  const auto expected = model::load(folder.path).fingerprint;
  const model::TensorFiles files(folder.path);
  model::NamedTensors tensors;
  const std::string layer = "model.layers.", experts = ".mlp.experts.";
  for (const auto& name : files.tensors())
    if (name.find(experts) == std::string::npos) tensors.emplace_back(name, files.read(name));
  for (int i = 0; i < 2; ++i) {
    const auto of = [&](int e, const char* part) {
      return files.read(layer + std::to_string(i) + experts + std::to_string(e) + part);
    };
    std::vector<torch::Tensor> wide, narrow;
    for (int e = 0; e < 6; ++e) {
      wide.push_back(torch::cat({of(e, ".gate_proj.weight"), of(e, ".up_proj.weight")}));
      narrow.push_back(of(e, ".down_proj.weight"));
    }
    const auto begin = layer + std::to_string(i) + experts;
    tensors.emplace_back(begin + "gate_up_proj", torch::stack(wide));
    tensors.emplace_back(begin + "down_proj", torch::stack(narrow));
  }
  const TemporaryFolder stacked;
  fs::copy_file(folder / "config.json", stacked / "config.json");
  core::MemorySink sink;
  model::write_safetensors(sink, tensors);
  overwrite(stacked / "model.safetensors",
      std::string(reinterpret_cast<const char*>(sink.bytes.data()), sink.bytes.size()));
  DOCTEST_CHECK((model::load(stacked.path).fingerprint == expected));
}

DOCTEST_TEST_CASE("what no expert of ours does is refused by key") {
  const auto refused = [](const char* family, const std::string& key, const core::Json& value) {
    const Copy folder(family);
    folder.change("config.json", [&](auto& c) { c[key] = value; });
    expect_error(Code::bad_config,
        key == "num_experts_per_tok" ? "experts-per-token: 9 is more than" : key,
        [&] { model::load(folder.path); });
  };
  refused("qwen3_moe", "shared_expert_intermediate_size", 8);
  refused("qwen3_moe", "mlp_only_layers", core::Json::array({0}));
  refused("qwen3_moe", "decoder_sparse_step", 2);
  refused("qwen3_moe", "use_sliding_window", true);
  refused("olmoe", "clip_qkv", 8.0);
  refused("mixtral", "n_shared_experts", 1);
  refused("mixtral", "num_experts_per_tok", 9);
}

DOCTEST_TEST_CASE("what our Mamba does not compute is refused by key") {
  const auto refused = [](const std::string& key, const core::Json& value) {
    const Copy folder("mamba");
    folder.change("config.json", [&](auto& c) { c[key] = value; });
    expect_error(Code::bad_config, key, [&] { model::load(folder.path); });
  };
  refused("time_step_rank", 3);
  refused("intermediate_size", 20);
  refused("conv_kernel", 1);
  refused("use_bias", true);
  refused("hidden_act", "gelu");
}

DOCTEST_TEST_CASE("what our Mamba-2 does not compute is refused by key") {
  const auto refused = [](const std::string& key, const core::Json& value) {
    const Copy folder("mamba2");
    folder.change("config.json", [&](auto& c) { c[key] = value; });
    expect_error(Code::bad_config, key, [&] { model::load(folder.path); });
  };
  refused("n_groups", 2);
  refused("n_groups", nullptr);  // the class takes 8
  refused("head_dim", 8);
  refused("conv_kernel", 1);
  refused("use_bias", true);
  refused("use_conv_bias", false);
  refused("hidden_act", "relu");
  refused("time_step_limit", {0.001, {{"__float__", "Infinity"}}});
  refused("time_step_limit", {0.0, 0.1});
}

DOCTEST_TEST_CASE("what our hybrid does not compute of a Qwen 3.5 is refused by key") {
  const auto refused = [](const std::string& key, const core::Json& value) {
    const Copy folder("qwen3_5_text");
    folder.change("config.json", [&](auto& c) { c[key] = value; });
    expect_error(Code::bad_config, key, [&] { model::load(folder.path); });
  };
  refused("layer_types", {"linear_attention"});
  refused("layer_types", {"linear_attention", "linear_attention"});
  refused("layer_types", {"linear_attention", "sliding_attention"});
  refused("attn_output_gate", false);
  refused("attention_bias", true);
  refused("linear_conv_kernel_dim", 1);
  refused("linear_key_head_dim", 0);
  const Copy bare("qwen3_5_text"), folder("qwen3_5_text");
  bare.change("config.json", [](auto& c) {
    c.erase("layer_types");
    c["full_attention_interval"] = 0;
  });
  expect_error(Code::bad_config, "full_attention_interval", [&] { model::load(bare.path); });
  folder.change("config.json", [](auto& c) { c["linear_num_key_heads"] = 4; });
  expect_error(Code::bad_config, "delta-key-heads: 4 does not divide the 6 heads of values",
      [&] { model::load(folder.path); });
}

DOCTEST_TEST_CASE(
    "the text part of a Qwen 3.5 with images is read, by itself and beside the other parts") {
  const Copy folder("qwen3_5_text");
  const auto usual = model::load(folder.path).fingerprint;
  model::NamedTensors tensors;
  for (const auto& file : fs::directory_iterator(folder.path)) {
    if (file.path().extension() != ".safetensors") continue;
    for (const auto& [name, tensor] : model::read_safetensors(file.path()))
      tensors.emplace_back(
          name.starts_with("model.") ? "model.language_model." + name.substr(6) : name,
          tensor.clone());
    fs::remove(file.path());
  }
  fs::remove(folder / kIndex);
  const auto write = [&](const std::string& other) {
    tensors.emplace_back(other, torch::ones({8}));
    core::Output out(folder / "model.safetensors");
    model::write_safetensors(out, tensors);
    out.commit();
  };
  write("mtp.norm.weight");
  DOCTEST_CHECK((model::load(folder.path).fingerprint == usual));
  write("model.visual.norm.weight");
  folder.change("config.json", [](auto& c) {
    core::Json whole = {{"model_type", "qwen3_5"}};
    whole["text_config"] = c;
    c = whole;
  });
  DOCTEST_CHECK((model::load(folder.path).fingerprint == usual));
}

DOCTEST_TEST_CASE("a hybrid is written as Qwen 3.5 only if its class computes it") {
  const auto loaded = model::load(kGoldenFamilies + "qwen3_5_text");
  const auto family = [&](auto change) {
    auto options = loaded.model->options;
    change(options);
    const auto* const found = model::family_of(options);
    return found == nullptr ? "none" : std::string(found->type);
  };
  DOCTEST_CHECK(family([](auto&) {}) == "qwen3_5_text");
  DOCTEST_CHECK(family([](auto& o) { o.mixers.list = "gated-attention"; }) == "qwen3_5_text");
  DOCTEST_CHECK(family([](auto& o) { o.mixers.list = "delta,window"; }) == "none");
  DOCTEST_CHECK(family([](auto& o) { o.gla.d_key = 0; }) == "none");
  DOCTEST_CHECK(family([](auto& o) { o.transformer.norm_kind = "rms"; }) == "none");
  DOCTEST_CHECK(family([](auto& o) { o.transformer.feed_forward = "plain"; }) == "none");
  DOCTEST_CHECK(family([](auto& o) { o.state_memory.kind = "segments"; }) == "none");
}

DOCTEST_TEST_CASE("what our RWKV-7 does not compute is refused by key") {
  const auto refused = [](const std::string& key, const core::Json& value,
                           const std::string& changed = {}) {
    const Copy folder("rwkv7");
    folder.change("config.json", [&](auto& c) { c[changed.empty() ? key : changed] = value; });
    expect_error(Code::bad_config, '"' + key + '"', [&] { model::load(folder.path); });
  };
  refused("hidden_act", "relu");
  refused("norm_first", false);
  refused("attn", {{"layers", {1}}, {"num_heads", 2}});
  refused("value_dim", 32);
  refused("value_dim", {16, 32});
  refused("head_dim", 3);
  refused("v_low_rank_dim", nullptr);  // 16, not 32
  refused("gate_low_rank_dim", 64);
  // The epsilon of the heads' norms follows from both.
  refused("norm_eps", 1e-5);
  refused("norm_eps", 8, "head_dim");
}

DOCTEST_TEST_CASE("absent keys of an RWKV-7 have fla's defaults, and head_dim null is num_heads") {
  const Copy folder("rwkv7");
  const auto usual = model::load(folder.path).fingerprint;
  folder.change("config.json", [](auto& c) {
    for (const char* key : {"hidden_act", "norm_bias", "norm_first", "value_dim", "attn"})
      c.erase(key);
    c["head_dim"] = nullptr, c["num_heads"] = 4;
  });
  DOCTEST_CHECK((model::load(folder.path).fingerprint == usual));
  // The width that the ratio gives, 40, is rounded up.
  folder.change("config.json", [](auto& c) { c.erase("intermediate_size"); });
  expect_error(Code::bad_data, "config.json requires (64, 16)", [&] { model::load(folder.path); });
}

DOCTEST_TEST_CASE("token shifts of an RWKV-7 in one tensor are those in six") {
  const Copy folder("rwkv7");
  const auto usual = model::load(folder.path).fingerprint;
  auto tensors = model::read_safetensors(folder / "model.safetensors");
  for (const std::string layer : {"model.layers.0.attn.x_", "model.layers.1.attn.x_"}) {
    std::vector<torch::Tensor> shifts;
    for (const char* use : {"r", "w", "k", "v", "a", "g"}) {
      shifts.push_back(tensors.at(layer + use).flatten());
      tensors.erase(layer + use);
    }
    tensors[layer + "x"] = torch::stack(shifts);
  }
  core::Output out(folder / "model.safetensors");
  model::write_safetensors(out, {tensors.begin(), tensors.end()});
  out.commit();
  DOCTEST_CHECK((model::load(folder.path).fingerprint == usual));
}

DOCTEST_TEST_CASE("infinite numbers of a config.json are read as Python's json writes them") {
  const Copy folder("mamba2");
  const auto usual = model::load(folder.path).fingerprint;
  auto text = core::read_text(folder / "config.json");
  const auto at = text.find('{', 1), end = text.find('}', at) + 1;
  text.replace(at, end - at, "Infinity");
  text.insert(1, R"("_name": "a \" Infinity",)");
  overwrite(folder / "config.json", text);
  DOCTEST_CHECK((model::load(folder.path).fingerprint == usual));
}

DOCTEST_TEST_CASE(
    "a file of fewer tensors than it should have experts is refused before they are listed") {
  const Copy folder("mixtral");
  folder.change("config.json", [](auto& c) { c["num_local_experts"] = 4096; });
  expect_error(Code::bad_data, "for 2 layers of 4096 experts", [&] { model::load(folder.path); });
}

DOCTEST_TEST_CASE("a config.json of a family is refused by key") {
  const auto refused = [](const std::string& part, auto change) {
    const Copy folder("llama");
    folder.change("config.json", change);
    expect_error(Code::bad_config, part, [&] { model::load(folder.path); });
  };
  refused("\"bloom\" is not supported; supported: gpt2, llama, mistral,",
      [](auto& c) { c["model_type"] = "bloom"; });
  refused("\"qwen3_next\" is not supported", [](auto& c) { c["model_type"] = "qwen3_next"; });
  refused("\"kimi_linear\" is not supported", [](auto& c) { c["model_type"] = "kimi_linear"; });
  refused("no \"hidden_size\"", [](auto& c) { c.erase("hidden_size"); });
  refused("\"num_attention_heads\" has the wrong type",
      [](auto& c) { c["num_attention_heads"] = "four"; });
  refused("heads: takes 1 to", [](auto& c) { c["num_attention_heads"] = 0; });
  refused("kv-heads: 3 does not divide heads 4", [](auto& c) { c["num_key_value_heads"] = 3; });
  refused("\"hidden_act\": \"mish\" is not supported", [](auto& c) { c["hidden_act"] = "mish"; });
  refused("\"rope_parameters\": type \"spiral\" is not supported",
      [](auto& c) { c["rope_parameters"]["rope_type"] = "spiral"; });
  refused("rope-short-factors: has 0 numbers",
      [](auto& c) { c["rope_parameters"]["rope_type"] = "longrope"; });
  refused("\"rope_parameters\" has the wrong type", [](auto& c) { c["rope_parameters"] = 4; });
  refused("type \"linear\" without \"factor\" is not supported", [](auto& c) {
    c["rope_parameters"] = {{"rope_type", "linear"}};
  });
  refused("\"head_dim\": 0 is not supported", [](auto& c) { c["head_dim"] = 0; });
  refused(
      "\"num_key_value_heads\": 0 is not supported", [](auto& c) { c["num_key_value_heads"] = 0; });
  refused("\"intermediate_size\": 0 is not supported", [](auto& c) { c["intermediate_size"] = 0; });
  refused("rope-factor: takes 1 to", [](auto& c) { c["rope_parameters"]["factor"] = 0; });
  const auto neo = [](const std::string& part, auto change) {
    const Copy folder("gpt_neo");
    folder.change("config.json", change);
    expect_error(Code::bad_config, part, [&] { model::load(folder.path); });
  };
  neo("\"window_size\": an empty window", [](auto& c) { c["window_size"] = 0; });
  neo("\"attention_layers\": a number of layers other than",
      [](auto& c) { c["attention_layers"] = {"global"}; });
  const Copy gemma("gemma3_text");
  gemma.change("config.json", [](auto& c) { c["layer_types"] = {"full_attention"}; });
  expect_error(Code::bad_config, "\"layer_types\": a number of layers other than",
      [&] { model::load(gemma.path); });
}

DOCTEST_TEST_CASE("GPT-Neo's list of layers goes before the kinds it was made of") {
  const Copy folder("gpt_neo");
  const auto before = model::load(folder.path).model->options.transformer.attention_window;
  folder.change("config.json", [](auto& c) { c["attention_layers"] = {"local", "local"}; });
  const auto after = model::load(folder.path).model->options.transformer.attention_window;
  DOCTEST_CHECK(before != after);
  DOCTEST_CHECK(after == std::vector<std::int64_t>{5, 5});
}

DOCTEST_TEST_CASE("a tied matrix stands under either name, or under both") {
  auto llama = small_gpt2();
  llama.transformer.positions = "rope", llama.transformer.norm_kind = "rms";
  llama.transformer.feed_forward = "gated", llama.transformer.activation = "silu";
  llama.transformer.bias = false;
  auto neox = small_gpt2();
  neox.transformer.positions = "rope", neox.transformer.norm = "parallel";
  for (const auto& options : {small_gpt2(), llama, neox}) {
    const TemporaryFolder folder;
    const auto model = random_model(options);
    model::save(folder.path, *model, {{"memory", "none"}}, "");
    const auto family = model::load(folder.path).family;
    DOCTEST_CAPTURE(family);
    const std::string head = family == "gpt_neox" ? "embed_out.weight" : "lm_head.weight",
                      embedding = family == "gpt2"    ? "transformer.wte.weight"
                                  : family == "llama" ? "model.embed_tokens.weight"
                                                      : "gpt_neox.embed_in.weight";
    auto tensors = model::read_safetensors(folder / "model.safetensors");
    const auto loads = [&](const model::Metadata& metadata) {
      core::Output out(folder / "model.safetensors");
      model::write_safetensors(out, {tensors.begin(), tensors.end()}, metadata);
      out.commit();
      return model::load(folder.path).fingerprint == model::fingerprint(*model);
    };
    DOCTEST_REQUIRE(tensors.count(embedding) == 1);
    tensors[head] = tensors[embedding];
    DOCTEST_CHECK(loads({}));
    tensors.erase(embedding);  // as safetensors' save_model does
    DOCTEST_CHECK(loads({{embedding, head}}));
    // A matrix that no option ties is missing.
    auto config = core::parse_json(core::read_text(folder / "config.json"), "config.json");
    config.erase("tessera");
    config["tie_word_embeddings"] = false;
    overwrite(folder / "config.json", core::dump(config));
    expect_error(Code::bad_data, "no tensor " + embedding, [&] { loads({}); });
  }
}

DOCTEST_TEST_CASE("rotary scaling is read as both versions of transformers write it") {
  const Copy folder("llama");
  const auto before = model::load(folder.path).fingerprint;
  folder.change("config.json", [](auto& c) {
    auto scaling = c["rope_parameters"];
    c["rope_theta"] = scaling["rope_theta"];
    scaling.erase("rope_theta");
    scaling["type"] = scaling["rope_type"];
    scaling.erase("rope_type");
    c.erase("rope_parameters");
    c["rope_scaling"] = scaling;
  });
  DOCTEST_CHECK((model::load(folder.path).fingerprint == before));
}

DOCTEST_TEST_CASE("tensors in several files: each in the one that the index names, and no other") {
  const auto refused = [](Code code, const std::string& part, auto change) {
    const Copy folder("llama");
    change(folder);
    expect_error(code, part, [&] { model::load(folder.path); });
  };
  const auto in_index = [](const std::string& tensor, const core::Json& file) {
    return [=](const Copy& folder) {
      folder.change(kIndex, [&](auto& index) { index["weight_map"][tensor] = file; });
    };
  };
  const std::string norm = "model.norm.weight";
  for (const core::Json& file : {core::Json("../model.safetensors"), core::Json("/etc/passwd"),
           core::Json(".."), core::Json(""), core::Json(7)})
    refused(Code::bad_data, "is not a file of this folder", in_index(norm, file));
  refused(Code::no_input, "other.safetensors", in_index(norm, "other.safetensors"));
  refused(Code::bad_data, "tensor " + norm + " is in", [&](const Copy& folder) {
    const auto own = folder.json(kIndex)["weight_map"][norm].get<std::string>();
    in_index(norm, own.find("00001") == std::string::npos
                       ? "model-00001-of-00003.safetensors"
                       : "model-00002-of-00003.safetensors")(folder);
  });
  refused(Code::bad_data, "has no tensor model.norm.bias, although",
      in_index("model.norm.bias", "model-00001-of-00003.safetensors"));
  refused(Code::bad_data, "tensor " + norm + " is not in", [&](const Copy& folder) {
    folder.change(kIndex, [&](auto& index) { index["weight_map"].erase(norm); });
  });
  refused(Code::bad_data, "is also in ", [&](const Copy& folder) {
    fs::copy_file(folder / "model-00001-of-00003.safetensors", folder / "again.safetensors");
    in_index("x", "again.safetensors")(folder);
  });
  refused(Code::bad_data, "not an index of tensors",
      [](const Copy& folder) { overwrite(folder / kIndex, "[]"); });
  refused(Code::no_input, "has no weights: neither model.safetensors",
      [](const Copy& folder) { fs::remove(folder / kIndex); });
  refused(Code::bad_data, "has no tensor model.layers.0.self_attn.q_proj.bias (16)",
      [](const Copy& folder) {
        folder.change("config.json", [](auto& c) { c["attention_bias"] = true; });
      });
  refused(Code::bad_data,
      "self_attn.q_proj.weight has shape (16, 8), but config.json requires (24, 8)",
      [](const Copy& folder) { folder.change("config.json", [](auto& c) { c["head_dim"] = 6; }); });
}
