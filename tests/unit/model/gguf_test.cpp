// GGUF files: blocks of numbers, handmade headers, models and tokenizers.

#include <cmath>
#include <fstream>
#include <functional>

#include "folder_of_test.h"
#include "gguf_bytes.h"
#include "model/folder.h"
#include "model/gguf/gguf_blocks.h"
#include "model/gguf/gguf_file.h"
#include "model/gguf/gguf_model.h"
#include "model/gguf/gguf_tokenizer.h"
#include "model/import_model.h"
#include "model/model_report.h"
#include "model/tensor_files.h"
#include "model/tokenizer_file.h"
#include "text/formats/tokenizer_json.h"

namespace {

using core::Code;

const std::string kGguf = "tests/golden/gguf/";
const std::string kFamilyFolders = "tests/golden/families/";

std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::vector<float> numbers_of(const model::GgufFile& file, const std::string& tensor) {
  const auto& at = file.tensors().at(tensor);
  std::size_t count = 1;
  for (const auto n : at.shape) count *= static_cast<std::size_t>(n);
  std::vector<float> numbers(count);
  model::gguf_unpack(*at.type, file.bytes_of(at), numbers.data());
  return numbers;
}

/// Returns the error of reading all of these bytes, or an empty text.
std::string fault_of(const std::string& bytes, Code* code = nullptr) {
  try {
    const model::GgufFile file(as_bytes(bytes), "x.gguf");
    model::gguf_config(file);
    model::gguf_tokenizer(file);
    for (const auto& [name, weight] : model::gguf_weights(file)) {
      std::vector<float> out(
          weight.tensor->bytes / weight.tensor->type->bytes * weight.tensor->type->elements);
      model::gguf_read_rows(file, weight, 0, weight.tensor->shape[0], out.data());
    }
  } catch (const core::Error& error) {
    if (code != nullptr) *code = error.code();
    return error.what();
  }
  return {};
}

void expect_fault(const std::string& bytes, const std::string& says, Code code = Code::bad_data) {
  Code found = Code::ok;
  const auto fault = fault_of(bytes, &found);
  DOCTEST_CHECK_MESSAGE(fault.find(says) != std::string::npos, fault << " | expected: " << says);
  DOCTEST_CHECK(fault.starts_with("x.gguf: "));
  DOCTEST_CHECK(fault.find('\n') == std::string::npos);
  DOCTEST_CHECK((found == code));
}

/// A Llama of one layer.
GgufBytes small_gguf(const std::function<void(GgufBytes&)>& more = {}) {
  GgufBytes file;
  file.text("general.architecture", "llama");
  for (const auto& [key, value] :
      std::vector<std::pair<std::string, std::uint32_t>>{{"block_count", 1}, {"context_length", 16},
          {"embedding_length", 4}, {"feed_forward_length", 3}, {"attention.head_count", 1}})
    file.whole("llama." + key, value);
  file.number("llama.attention.layer_norm_rms_epsilon", 1e-5F);
  if (more) more(file);
  const auto add = [&](const std::string& name, const std::vector<std::int64_t>& shape) {
    std::vector<float> values(
        static_cast<std::size_t>(shape[0] * (shape.size() > 1 ? shape[1] : 1)));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) / 8;
    file.floats(name, shape, values);
  };
  add("token_embd.weight", {6, 4});
  for (const char* name : {"attn_q", "attn_k", "attn_v", "attn_output"})
    add(fmt::format("blk.0.{}.weight", name), {4, 4});
  add("blk.0.attn_norm.weight", {4});
  add("blk.0.ffn_norm.weight", {4});
  add("blk.0.ffn_gate.weight", {3, 4});
  add("blk.0.ffn_up.weight", {3, 4});
  add("blk.0.ffn_down.weight", {4, 3});
  add("output_norm.weight", {4});
  return file;
}

void add_tokens(GgufBytes& file, const char* model, const std::vector<std::string>& tokens,
    const std::vector<std::int32_t>& types) {
  file.text("tokenizer.ggml.model", model);
  file.texts("tokenizer.ggml.tokens", tokens);
  file.wholes("tokenizer.ggml.token_type", types);
}

std::vector<std::uint32_t> ids_of(const GgufBytes& file, const std::string& text) {
  const auto bytes = file.bytes();
  const model::GgufFile read(as_bytes(bytes), "x.gguf");
  return text::parse_tokenizer(model::gguf_tokenizer(read), "x.gguf")->encode(text);
}

}  // namespace

DOCTEST_TEST_CASE("gguf: rows that are read in parts are those of the whole tensor") {
  const auto bytes = small_gguf().bytes();
  const model::GgufTensors tensors(as_bytes(bytes), "x.gguf");
  std::size_t matrices = 0;
  for (const auto& [name, entry] : tensors.entries()) {
    const auto whole = tensors.read(name);
    if (whole.dim() < 2) continue;
    ++matrices;
    for (std::int64_t first = 0; first < whole.size(0); first += 3) {
      const auto rows =
          torch::empty({std::min<std::int64_t>(3, whole.size(0) - first), whole.size(1)});
      tensors.read_rows_into(name, first, rows);
      DOCTEST_CHECK_MESSAGE(rows.equal(whole.narrow(0, first, rows.size(0))), name);
    }
  }
  DOCTEST_CHECK(matrices == 8);
}

DOCTEST_TEST_CASE(
    "gguf: blocks of every type are the numbers that the package gguf makes of them") {
  const model::GgufFile file(kGguf + "blocks.gguf");
  std::size_t types = 0;
  for (const auto& [name, tensor] : file.tensors()) {
    if (name.ends_with(".expected")) continue;
    DOCTEST_CAPTURE(name);
    DOCTEST_CHECK(tensor.type->name == name);
    const auto found = numbers_of(file, name), expected = numbers_of(file, name + ".expected");
    DOCTEST_REQUIRE(found.size() == expected.size());
    DOCTEST_CHECK(std::memcmp(found.data(), expected.data(), found.size() * sizeof(float)) == 0);
    ++types;
  }
  DOCTEST_CHECK(types == 13);
}

DOCTEST_TEST_CASE(
    "gguf: a file that is cut anywhere, or has any byte changed, gives an error or numbers") {
  const auto whole = small_gguf([](GgufBytes& file) {
    add_tokens(file, "llama", {"<unk>", "a", "b", "ab", "<s>", "c"}, {2, 1, 1, 1, 3, 1});
    file.numbers("tokenizer.ggml.scores", {0, -3, -4, -1, 0, -5});
  }).bytes();
  DOCTEST_CHECK(fault_of(whole).empty());
  for (std::size_t n = 0; n + 32 < whole.size(); ++n) {
    Code code = Code::ok;
    const auto fault = fault_of(whole.substr(0, n), &code);
    DOCTEST_CHECK_MESSAGE(code == Code::bad_data, n << ": " << fault);
  }
  const auto header = whole.find("output_norm.weight") + 64;
  for (std::size_t n = 0; n < header; ++n)
    for (const char change : {'\x01', '\x80', '\xFF'}) {
      auto damaged = whole;
      damaged[n] = static_cast<char>(damaged[n] ^ change);
      Code code = Code::ok;
      fault_of(damaged, &code);
      DOCTEST_CHECK((code == Code::ok || code == Code::bad_data || code == Code::bad_config));
    }
}

DOCTEST_TEST_CASE("gguf: what a header asks for is held against the bytes that there are") {
  const auto huge = std::uint64_t{1} << 60;
  expect_fault("GGUX", "does not begin with GGUF");
  const auto counts = [&](auto change) {
    auto file = small_gguf();
    change(file);
    return file.bytes();
  };
  expect_fault(counts([](auto& file) { file.version = 1; }), "version 1");
  expect_fault(counts([](auto& file) { file.version = 3u << 24; }), "big endian");
  expect_fault(counts([&](auto& file) { file.tensor_count = huge; }), "damaged");
  expect_fault(counts([&](auto& file) { file.pair_count = huge; }), "damaged");
  const auto pair = [&](std::uint32_t type, const std::string& value) {
    return small_gguf([&](auto& file) { file.pair("key", type, value); }).bytes();
  };
  const auto array = [](std::uint32_t type, std::uint64_t n) {
    return GgufBytes::raw(type) + GgufBytes::raw(n);
  };
  expect_fault(pair(8, GgufBytes::raw(huge)), "cut short");
  expect_fault(pair(8, GgufBytes::raw(~std::uint64_t{0})), "cut short");
  expect_fault(pair(9, array(10, huge)), "the number of elements of key is ");
  expect_fault(pair(9, array(10, ~std::uint64_t{0})), "the number of elements of key is ");
  expect_fault(pair(9, array(8, huge)), "cut short");
  expect_fault(pair(13, ""), "the type of key is 13; allowed: 0 to 12");
  std::string nested;
  for (int i = 0; i < 2000; ++i) nested += array(9, 1);
  expect_fault(pair(9, nested + array(0, 0)), "nested too deeply");
  const auto tensor = [&](const std::vector<std::int64_t>& shape, std::uint32_t type,
                          std::uint64_t offset) {
    auto file = small_gguf();
    file.tensor_at("x", shape, type, offset);
    return file.bytes();
  };
  expect_fault(
      tensor({1 << 30, 1 << 30}, 0, 0), "a dimension of tensor x is 1073741824; allowed: 1 to ");
  expect_fault(tensor({0, 4}, 0, 0), "a dimension of tensor x is 0; allowed: 1 to ");
  expect_fault(tensor({1 << 20, 1 << 20}, 0, 0), "ends beyond");
  expect_fault(tensor({4}, 0, huge), "ends beyond");
  expect_fault(tensor({4}, 0, ~std::uint64_t{31}), "ends beyond");
  expect_fault(tensor({4}, 0, 4), "not a multiple of 32");
  expect_fault(tensor({4}, 0, 0), "overlap");
  expect_fault(tensor({33}, 8, 0), "the width of tensor x is 33; allowed: multiples of 32");
  expect_fault(
      tensor({1, 1, 1, 1, 1}, 0, 0), "the number of dimensions of tensor x is 5; allowed: 1 to 4");
  expect_fault(tensor({256}, 17, 0), "tensor x is of IQ2_XS, which is not supported");
  expect_fault(tensor({256}, 77, 0), "tensor x is of type 77");
  expect_fault(counts([](auto& file) { file.whole("llama.block_count", 2); }),
      "llama.block_count occurs twice");
  expect_fault(counts([](auto& file) { file.whole("general.alignment", 48); }),
      "general.alignment is 48; allowed: 1, 2, 4");
}

DOCTEST_TEST_CASE("gguf: what is not supported is named") {
  const auto with = [](auto add) { return small_gguf(add).bytes(); };
  GgufBytes other;
  other.text("general.architecture", "mamba");
  expect_fault(other.bytes(), "general.architecture \"mamba\" is not supported; supported: llama",
      Code::bad_config);
  expect_fault(with([](auto& f) { f.whole("llama.expert_count", 8); }), "llama.expert_count: 8",
      Code::bad_config);
  expect_fault(with([](auto& f) { f.number("llama.logit_scale", 2); }), "llama.logit_scale: 2",
      Code::bad_config);
  expect_fault(with([](auto& f) { f.text("llama.rope.scaling.type", "longrope"); }),
      "\"longrope\" is not supported", Code::bad_config);
  expect_fault(with([](auto& f) { f.text("general.type", "adapter"); }),
      "general.type \"adapter\" is not supported", Code::bad_config);
  expect_fault(with([](auto& f) { f.whole("llama.vocab_size", 7); }),
      "llama.vocab_size is 7, but token_embd.weight has 6 rows");
  expect_fault(
      with([](auto& f) { f.whole("split.count", 3); }), "llama-gguf-split", Code::bad_config);
  // Every key of the architecture that is not read and not harmless.
  for (const char* key : {"rope.scaling.yarn_ext_factor", "rope.scaling.yarn_attn_factor",
           "rope.scaling.alpha", "attention.output_scale", "of_tomorrow", "swiglu_clamp_exp",
           "nextn_predict_layers", "a.b.c"})
    expect_fault(with([&](auto& f) { f.number("llama." + std::string(key), 0.5F); }),
        "llama." + std::string(key), Code::bad_config);
  expect_fault(with([](auto& f) { f.truth("llama.attention.causal", false); }),
      "llama.attention.causal: false is not supported", Code::bad_config);
  expect_fault(with([](auto& f) { f.truth("llama.use_parallel_residual", true); }),
      "llama.use_parallel_residual: true", Code::bad_config);
  expect_fault(with([](auto& f) { f.text("llama.new_kind", "x"); }),
      "llama.new_kind is not supported", Code::bad_config);
  expect_fault(with([](auto& f) {
    f.wholes("llama.attention.sliding_window_pattern", {1, 0});
  }),
      "llama.attention.sliding_window_pattern is not supported", Code::bad_config);
  DOCTEST_CHECK(fault_of(with([](auto& f) {
    f.truth("llama.attention.causal", true);
    f.truth("llama.use_parallel_residual", false);
    f.truth("llama.rope.scaling.finetuned", true);
    f.text("general.type", "model");
    f.whole("llama.vocab_size", 6);
    f.whole("llama.expert_count", 0);
    f.whole("llama.expert_used_count", 2);
    f.whole("llama.pooling_type", 3);
    f.whole("llama.rope.scaling.original_context_length", 4);
    f.number("llama.rope.scaling.yarn_ext_factor", -1);
    f.number("llama.rope.scaling.yarn_beta_fast", 7);
    f.text("llama.tensor_data_layout", "Meta AI original pth");
    f.text("quantize.imatrix.file", "x.dat");
  })).empty());
  expect_fault(with([](auto& f) {
    f.wholes("llama.attention.head_count_kv", {1, 2});
  }),
      "differs between layers", Code::bad_config);
  expect_fault(with([](auto& f) {
    add_tokens(f, "gpt2", {"a"}, {1, 1});
  }),
      "1 tokens, but 2 types in tokenizer.ggml.token_type");
  expect_fault(with([](auto& f) {
    add_tokens(f, "gpt2", {"a"}, {1});
    f.text("tokenizer.ggml.pre", "klingon");
  }),
      "tokenizer.ggml.pre \"klingon\" is not supported", Code::bad_config);
  for (const char* name : {"bos", "eos", "eot", "unknown", "padding", "fim_pre"}) {
    const auto key = fmt::format("tokenizer.ggml.{}_token_id", name);
    const auto tokens = [&](std::uint32_t id) {
      return with([&](auto& f) {
        add_tokens(f, "gpt2", {"a", "b", "c", "d", "e", "f"}, {1, 1, 1, 1, 1, 3});
        f.whole(key, id);
      });
    };
    expect_fault(tokens(1000000000), key + " is 1000000000; allowed: 0 to 5");
    expect_fault(tokens(6), key + " is 6");
    DOCTEST_CHECK(fault_of(tokens(5)).empty());
    DOCTEST_CHECK(fault_of(tokens(0xFFFFFFFF)).empty());  // llama.cpp's -1
  }
  for (const int type : {99, 7, -1})
    expect_fault(with([&](auto& f) {
      add_tokens(f, "gpt2", {"a", "b"}, {1, type});
    }),
        fmt::format("an element of tokenizer.ggml.token_type is {}; allowed: 0 to 6", type));
  expect_fault(with([](auto& f) { add_tokens(f, "t5", {"a"}, {1}); }),
      "tokenizer.ggml.model \"t5\" is not supported", Code::bad_config);
}

DOCTEST_TEST_CASE("gguf: a model is as its metadata say") {
  const auto config_of = [](auto add) {
    const auto bytes = small_gguf(add).bytes();
    return model::gguf_config(model::GgufFile(as_bytes(bytes), "x.gguf"));
  };
  const auto plain = config_of([](auto&) {});
  DOCTEST_CHECK(plain["rms_norm_eps"] == 1e-5);  // not the float32's exact value
  DOCTEST_CHECK(plain["num_key_value_heads"] == 1);
  DOCTEST_CHECK(plain["tie_word_embeddings"] == true);
  DOCTEST_CHECK(plain["vocab_size"] == 6);
  DOCTEST_CHECK(!plain.contains("eos_token_id"));
  const auto scaled = config_of([](auto& f) {
    f.text("llama.rope.scaling.type", "yarn");
    f.number("llama.rope.scaling.factor", 4);
    f.whole("llama.rope.scaling.original_context_length", 8);
    f.number("llama.rope.scaling.yarn_ext_factor", 1);
    f.number("llama.rope.scaling.yarn_beta_fast", 16);
    f.number("llama.rope.scaling.yarn_beta_slow", 2);
    f.number("llama.rope.freq_base", 5e5);
    f.whole("tokenizer.ggml.eos_token_id", 2);
    add_tokens(f, "gpt2", {"a", "<|im_end|>", "<eos>", "<|im_end|"}, {1, 3, 3, 1});
  });
  DOCTEST_CHECK(scaled["rope_theta"] == 5e5);
  DOCTEST_CHECK(scaled["rope_scaling"]["rope_type"] == "yarn");
  DOCTEST_CHECK(scaled["rope_scaling"]["factor"] == 4);
  DOCTEST_CHECK(scaled["rope_scaling"]["beta_fast"] == 16);
  DOCTEST_CHECK(scaled["rope_scaling"]["beta_slow"] == 2);
  DOCTEST_CHECK(scaled["rope_scaling"]["original_max_position_embeddings"] == 8);
  DOCTEST_CHECK(scaled["eos_token_id"] == core::Json({2, 1}));  // the file's own first
}

// 64 numbers per head, base 500,000 and factor 32, as in Llama 3.2.
DOCTEST_TEST_CASE("gguf: Llama 3's angles are found in the divisors that the file has") {
  const auto file_of = [](float wrong) {
    auto file = small_gguf([](auto& f) {
      f.number("llama.rope.freq_base", 5e5);
      f.whole("llama.attention.key_length", 64);
    });
    std::vector<float> divisors;
    for (int i = 0; i < 32; ++i) {
      const double wave = 2 * M_PI * std::pow(5e5, i / 32.0);
      const double share = std::clamp((8192 / wave - 1) / 3, 0.0, 1.0);  // of the unscaled angle
      divisors.push_back(
          static_cast<float>(1 / (share + (1 - share) / 32)) * (i == 20 ? wrong : 1));
    }
    file.floats("rope_freqs.weight", {32}, divisors);
    return file.bytes();
  };
  const auto bytes = file_of(1);
  const auto scaling =
      model::gguf_config(model::GgufFile(as_bytes(bytes), "x.gguf"))["rope_scaling"];
  DOCTEST_CHECK(scaling["rope_type"] == "llama3");
  DOCTEST_CHECK(scaling["factor"] == 32);
  expect_fault(file_of(1.01F), "only the rope factors of Llama 3", Code::bad_config);
}

namespace {

/// A transformers folder as llama.cpp's converter writes it.
class Converted {
 public:
  Converted(const std::string& family, const std::string& architecture)
      : files_(kFamilyFolders + family), architecture_(architecture) {
    config_ = model::parse_config_of(kFamilyFolders + family).json;
    heads_ = config_["num_attention_heads"];
    kv_heads_ = config_["num_key_value_heads"];
    put_metadata();
    for (const auto& name : files_.tensors()) put(name);
    std::ofstream(folder_ / "x.gguf", std::ios::binary) << made_.bytes();
  }
  std::string path() const { return folder_ / "x.gguf"; }

 private:
  void put_metadata() {
    made_.text("general.architecture", architecture_);
    const auto whole = [&](const char* key, const char* theirs, std::int64_t otherwise) {
      made_.whole(
          architecture_ + "." + key, static_cast<std::uint32_t>(config_.value(theirs, otherwise)));
    };
    whole("block_count", "num_hidden_layers", 0);
    whole("context_length", "max_position_embeddings", 0);
    whole("embedding_length", "hidden_size", 0);
    whole("feed_forward_length", "intermediate_size", 0);
    whole("attention.head_count", "num_attention_heads", 0);
    whole("attention.head_count_kv", "num_key_value_heads", 0);
    whole("attention.key_length", "head_dim", 4);
    if (architecture_ == "gemma3") {  // a window in the first of its two layers
      const std::string two = GgufBytes::raw(std::uint32_t{7}) + GgufBytes::raw(std::uint64_t{2});
      made_.pair("gemma3.attention.sliding_window_pattern", 9, two + std::string("\1\0", 2));
      made_.number("gemma3.rope.freq_base", 500);
      made_.number("gemma3.rope.freq_base_swa", 50);
      made_.text("gemma3.rope.scaling.type", "linear");
      made_.number("gemma3.rope.scaling.factor", 4);
    }
    for (const char* cap : {"attn_logit_softcapping", "final_logit_softcapping"})
      if (config_.contains(cap) && config_[cap].is_number())
        made_.number(architecture_ + "." + cap, config_[cap]);
    if (config_["sliding_window"].is_number())
      whole("attention.sliding_window", "sliding_window", 0);
    made_.number(architecture_ + ".attention.layer_norm_rms_epsilon", config_["rms_norm_eps"]);
  }
  void put(const std::string& name) {
    auto values = files_.read(name).to(torch::kFloat32);
    const auto heads = name.find("q_proj") != std::string::npos   ? heads_
                       : name.find("k_proj") != std::string::npos ? kv_heads_
                                                                  : 0;
    if (architecture_ == "llama" && heads > 0)
      values = values.unflatten(0, {heads, 2, -1}).transpose(1, 2).flatten(0, 2).contiguous();
    if (architecture_.starts_with("gemma") && name.ends_with("norm.weight")) values = values + 1;
    const std::vector<float> numbers(
        values.data_ptr<float>(), values.data_ptr<float>() + values.numel());
    made_.floats(their_name(name), values.sizes().vec(), numbers);
  }
  std::string their_name(std::string name) const {
    const bool sandwich = architecture_ == "gemma2" || architecture_ == "gemma3";
    const std::vector<std::pair<std::string, std::string>> renamed = {
        {"model.embed_tokens", "token_embd"}, {"model.norm", "output_norm"}, {"lm_head", "output"},
        {"model.layers", "blk"}, {"input_layernorm", "attn_norm"},
        {"pre_feedforward_layernorm", "ffn_norm"}, {"post_feedforward_layernorm", "post_ffw_norm"},
        {"post_attention_layernorm", sandwich ? "post_attention_norm" : "ffn_norm"},
        {"self_attn.q_norm", "attn_q_norm"}, {"self_attn.k_norm", "attn_k_norm"},
        {"self_attn.q_proj", "attn_q"}, {"self_attn.k_proj", "attn_k"},
        {"self_attn.v_proj", "attn_v"}, {"self_attn.qkv_proj", "attn_qkv"},
        {"self_attn.o_proj", "attn_output"}, {"mlp.gate_up_proj", "ffn_up"},
        {"mlp.gate_proj", "ffn_gate"}, {"mlp.up_proj", "ffn_up"}, {"mlp.down_proj", "ffn_down"}};
    for (const auto& [ours, theirs] : renamed)
      if (const auto at = name.find(ours); at != std::string::npos)
        name.replace(at, ours.size(), theirs);
    return name;
  }

  TemporaryFolder folder_;
  model::TensorFiles files_;
  std::string architecture_;
  core::Json config_;
  std::int64_t heads_ = 0, kv_heads_ = 0;
  GgufBytes made_;
};

}  // namespace

DOCTEST_TEST_CASE("gguf: every architecture is the family of transformers that it is a file of") {
  for (const auto& [family, architecture] : std::vector<std::pair<std::string, std::string>>{
           {"llama", "llama"}, {"qwen2", "qwen2"}, {"qwen3", "qwen3"}, {"gemma", "gemma"},
           {"gemma2", "gemma2"}, {"gemma3_text", "gemma3"}, {"phi3", "phi3"}}) {
    DOCTEST_CAPTURE(family);
    const Converted file(family, architecture);
    const auto found = model::load(file.path()), expected = model::load(kFamilyFolders + family);
    DOCTEST_CHECK(found.family == family);
    const auto ours = found.model->named_weights(), theirs = expected.model->named_weights();
    DOCTEST_REQUIRE(ours.size() == theirs.size());
    for (std::size_t i = 0; i < ours.size(); ++i) {
      DOCTEST_CHECK(ours[i].first == theirs[i].first);
      DOCTEST_CHECK_MESSAGE(
          torch::allclose(ours[i].second, theirs[i].second, 0, 1e-6), ours[i].first);
    }
    // All of these small models have these options, and their files say so.
    auto options = found.model->options;
    const auto& asked = expected.model->options;
    if (family == "llama") options.transformer.rope = asked.transformer.rope;
    if (family == "qwen2")
      options.transformer.attention_window = asked.transformer.attention_window;
    options.transformer.attention_scale = asked.transformer.attention_scale;
    DOCTEST_CHECK(core::to_json(options) == core::to_json(asked));
  }
}

DOCTEST_TEST_CASE("gguf: an imported folder is the model that the file is") {
  const TemporaryFolder folder;
  const auto path = folder / "x.gguf", made = folder / "made";
  std::ofstream(path, std::ios::binary) << small_gguf([](auto& f) {
    add_tokens(f, "llama", {"<unk>", "a", "b", "ab", "<s>", "c"}, {2, 1, 1, 1, 3, 1});
    f.numbers("tokenizer.ggml.scores", {0, -3, -4, -1, 0, -5});
    f.truth("tokenizer.ggml.add_bos_token", false);
    f.whole("tokenizer.ggml.eos_token_id", 4);
    f.text("tokenizer.chat_template", "{{ messages }}");
  }).bytes();
  const auto report = model::import_model(path, {}, made);
  DOCTEST_CHECK(report.program == "gguf");
  DOCTEST_CHECK(model::import_model(path, {}, made).was_there);
  const auto direct = model::load(path), imported = model::load(made);
  DOCTEST_CHECK((direct.fingerprint == imported.fingerprint));
  DOCTEST_CHECK(direct.tokenizer == imported.tokenizer);
  DOCTEST_CHECK(model::end_tokens(path, direct.config) == std::vector<std::int64_t>{4});
  DOCTEST_CHECK(model::end_tokens(made, imported.config) == std::vector<std::int64_t>{4});
  DOCTEST_CHECK(core::read_text(made + "/chat_template.jinja") == "{{ messages }}");
  const auto special = core::parse_json(core::read_text(made + "/tokenizer_config.json"), "made");
  DOCTEST_CHECK(special["eos_token"] == "<s>");
  DOCTEST_CHECK(model::check_model(path).ok());
  DOCTEST_CHECK(
      model::describe_model(path)["types"]["F32"] == model::describe_model(path)["parameters"]);
}

DOCTEST_TEST_CASE("gguf: a tokenizer of SentencePiece merges by the scores of the tokens") {
  GgufBytes file;
  std::vector<std::string> tokens = {"<unk>", "<s>", "\xE2\x96\x81", "a", "b", "ab", "ba",
      "\xE2\x96\x81"
      "a"};
  std::vector<std::int32_t> types = {2, 3, 1, 1, 1, 1, 1, 1};
  std::vector<float> scores = {0, 0, -9, -8, -7, -2, -1, -3};
  for (int b = 0; b < 256; ++b) {
    tokens.push_back(fmt::format("<0x{:02X}>", b));
    types.push_back(6);
    scores.push_back(0);
  }
  tokens.emplace_back("[X]");
  types.push_back(4);
  scores.push_back(0);
  add_tokens(file, "llama", tokens, types);
  file.numbers("tokenizer.ggml.scores", scores);
  file.whole("tokenizer.ggml.bos_token_id", 1);
  using Ids = std::vector<std::uint32_t>;
  // "ba" is the best pair and takes the b before "ab" can.
  DOCTEST_CHECK(ids_of(file, "aba") == Ids{7, 6});
  DOCTEST_CHECK(ids_of(file, "ab") == Ids{2, 5});
  DOCTEST_CHECK(ids_of(file, "a") == Ids{7});
  DOCTEST_CHECK(ids_of(file, "a\xC3") == Ids{7, 8 + 0xC3});
  DOCTEST_CHECK(ids_of(file, "a[X]") == Ids{7, 8 + 256});
  file.truth("tokenizer.ggml.add_space_prefix", false);
  DOCTEST_CHECK(ids_of(file, "a b") == Ids{3, 2, 4});
}

DOCTEST_TEST_CASE("gguf: a tokenizer of bytes splits as its name says, then merges") {
  const auto with = [](const char* way) {
    GgufBytes file;
    std::vector<std::string> tokens;
    for (int b = '!'; b <= '~'; ++b) tokens.emplace_back(1, static_cast<char>(b));
    tokens.insert(tokens.end(), {"12", "123", "<eos>"});
    std::vector<std::int32_t> types(tokens.size(), 1);
    types.back() = 3;
    add_tokens(file, "gpt2", tokens, types);
    file.texts("tokenizer.ggml.merges", {"1 2", "12 3"});
    file.text("tokenizer.ggml.pre", way);
    return file;
  };
  const std::uint32_t one = '1' - '!', twelve = '~' - '!' + 1;
  using Ids = std::vector<std::uint32_t>;
  DOCTEST_CHECK(ids_of(with("gpt-2"), "1231") == Ids{twelve + 1, one});
  DOCTEST_CHECK(ids_of(with("smollm"), "1231") == Ids{one, one + 1, one + 2, one});
  DOCTEST_CHECK(ids_of(with("qwen2"), "12") == Ids{one, one + 1});
  DOCTEST_CHECK(ids_of(with("llama-bpe"), "1112") == Ids{one, one, one, one + 1});
  DOCTEST_CHECK(ids_of(with("default"), "1112") == Ids{one, one, one, one + 1});
  DOCTEST_CHECK(ids_of(with("gpt-2"), "1112") == Ids{one, one, twelve});
}
