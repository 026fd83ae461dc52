// Checkpoints of other programs' trainers: their models give the log-probabilities of a plain
// implementation, and errors name what is missing or unsupported. tests/golden/checkpoints.py wrote
// them, and rwkv7.py that of RWKV-LM.

#include "core/io.h"
#include "folder_of_test.h"
#include "model/folder.h"
#include "model/import_model.h"
#include "model/imports/import_map.h"
#include "model/rwkv_file.h"
#include "model/tensor_files.h"
#include "nll_of.h"
#include "torch_bytes.h"

namespace {

using core::Code;
using namespace torch_bytes;

std::string imported(const TemporaryFolder& folder, const std::string& name) {
  model::import_model(kGoldenCheckpoints + name + ".pt", {}, folder / name);
  return folder / name;
}

/// Returns a checkpoint of nanoGPT with these additional tensors and settings.
std::string nanogpt(const Pairs& tensors, const Pairs& settings) {
  Pairs all = {{unicode("n_layer"), whole(1)}, {unicode("n_head"), whole(1)},
      {unicode("n_embd"), whole(2)}, {unicode("block_size"), whole(4)},
      {unicode("vocab_size"), whole(3)}, {unicode("bias"), "\x89"}};
  all.insert(all.end(), settings.begin(), settings.end());
  return archive(
      dict({{unicode("model"), ordered_dict(tensors)}, {unicode("model_args"), dict(all)}}),
      {{"0", bytes_of(std::vector<float>(64, .5F))}});
}

Pairs small_gpt() {
  const auto of = [](const std::string& name, const std::vector<std::int64_t>& shape) {
    std::vector<std::int64_t> strides = {1};
    if (shape.size() == 2) strides = {shape[1], 1};
    return std::pair(unicode("transformer." + name + ".weight"),
        tensor("FloatStorage", "0", 64, 0, shape, strides));
  };
  return {of("wte", {3, 2}), of("wpe", {4, 2}), of("h.0.ln_1", {2}), of("h.0.attn.c_attn", {6, 2}),
      of("h.0.attn.c_proj", {2, 2}), of("h.0.ln_2", {2}), of("h.0.mlp.c_fc", {8, 2}),
      of("h.0.mlp.c_proj", {2, 8}), of("ln_f", {2})};
}

}  // namespace

DOCTEST_TEST_CASE("an imported model gives the log-probabilities of a plain reading") {
  const TemporaryFolder folder;
  for (const std::string name : {"nanogpt", "nanogpt_stream", "nanomosaics", "fairseq_tied",
           "fairseq_untied", "fairseq_plain"}) {
    DOCTEST_CAPTURE(name);
    const auto path = imported(folder, name);
    const auto expected = golden_nll(kGoldenCheckpoints + name + ".json");
    const auto exact = model::load(path, torch::kCPU, torch::kFloat64);
    DOCTEST_CHECK(nll_gap(*exact.model, expected) < 1e-9);
    DOCTEST_CHECK(nll_gap(*model::load(path).model, expected) < 1e-4);
    DOCTEST_CHECK(exact.model->options.vocabulary.tied == (name != "fairseq_untied"));
    DOCTEST_CHECK(exact.facts.segment == 32);
  }
  DOCTEST_CHECK(model::load(folder / "nanogpt").facts.all["imported"]["steps"] == 120);
  const auto tied = model::load(folder / "fairseq_tied").model->options;
  DOCTEST_CHECK(tied.vocabulary.tied_projections);
  DOCTEST_CHECK(tied.shape.memory_key == "output");
  // With biases everywhere it has GPT-2's shape.
  DOCTEST_CHECK(model::load(folder / "nanogpt").family == "gpt2");
}

DOCTEST_TEST_CASE("a pickled Transformer-XL gives the log-probabilities of a plain reading") {
  const TemporaryFolder folder;
  for (const std::string name : {"xl_bands", "xl_table", "xl_plain"}) {
    DOCTEST_CAPTURE(name);
    const auto path = imported(folder, name);
    const auto expected = golden_nll(kGoldenCheckpoints + name + ".json");
    const auto exact = model::load(path, torch::kCPU, torch::kFloat64);
    // Where tokens went through band 0's projection they were rounded to float32.
    DOCTEST_CHECK(nll_gap(*exact.model, expected) < (name == "xl_bands" ? 1e-6 : 1e-9));
    DOCTEST_CHECK(nll_gap(*model::load(path).model, expected) < 1e-4);
    const auto& options = exact.model->options;
    DOCTEST_CHECK((options.arch == "transformer-xl" && options.vocabulary.head_bias));
    DOCTEST_CHECK(options.layer_memory.layer_memory == "24");
    DOCTEST_CHECK(options.transformer_xl.clamp_length == (name == "xl_table" ? 7 : 0));
    DOCTEST_CHECK(exact.facts.segment == 16);
  }
}

DOCTEST_TEST_CASE("a Transformer-XL whose numbers and tensors do not go together is refused") {
  const TemporaryFolder folder;
  const auto damaged = [&](const std::string& name, char value, const std::string& says) {
    // "name", its memo, then K and a byte: the number itself.
    std::string bytes = core::read_text(kGoldenCheckpoints + "xl_table.pt");
    const auto at = bytes.find('K', bytes.find(name) + name.size());
    bytes[at + 1] = value;
    overwrite(folder / "model.pt", bytes);
    expect_error(Code::bad_data, says,
        [&] { model::import_model(folder / "model.pt", {}, folder / "out"); });
  };
  damaged("n_layer", 3, "no tensor layers.2");
  damaged("n_token", 41, "emb_layers.0.weight does not have 41 tokens");
  damaged("cutoffs", 50, "are inconsistent");
}

DOCTEST_TEST_CASE("a softmax of its own stays one") {
  const TemporaryFolder folder;
  auto tensors = small_gpt();
  tensors.emplace_back(
      unicode("lm_head.weight"), tensor("FloatStorage", "1", 64, 0, {3, 2}, {2, 1}));
  overwrite(folder / "ckpt.pt",
      archive(dict({{unicode("model"), ordered_dict(tensors)},
                  {unicode("model_args"),
                      dict({{unicode("n_layer"), whole(1)}, {unicode("n_head"), whole(1)},
                          {unicode("n_embd"), whole(2)}, {unicode("block_size"), whole(4)},
                          {unicode("vocab_size"), whole(3)}, {unicode("bias"), "\x89"}})}}),
          {{"0", bytes_of(std::vector<float>(64, .5F))},
              {"1", bytes_of(std::vector<float>(64, .25F))}}));
  model::import_model(folder / "ckpt.pt", {}, folder / "out");
  const auto loaded = model::load(folder / "out");
  DOCTEST_CHECK(!loaded.model->options.vocabulary.tied);
  DOCTEST_CHECK(loaded.model->named_weights().back().second.eq(.25).all().item<bool>());
}

DOCTEST_TEST_CASE("what a checkpoint lacks, has too much or asks for is named") {
  const TemporaryFolder folder;
  const auto refused = [&](Code code, const std::string& part, const Pairs& tensors,
                           const Pairs& settings = {}) {
    overwrite(folder / "ckpt.pt", nanogpt(tensors, settings));
    expect_error(code, part, [&] { model::import_model(folder / "ckpt.pt", {}, folder / "out"); });
    DOCTEST_CHECK(!std::filesystem::exists(folder / "out"));
  };
  const auto without = [](std::size_t i) {
    auto tensors = small_gpt();
    tensors.erase(tensors.begin() + static_cast<std::ptrdiff_t>(i));
    return tensors;
  };
  const auto with = [](const std::string& name, const std::string& value) {
    auto tensors = small_gpt();
    tensors.emplace_back(unicode(name), value);
    return tensors;
  };
  const auto some = [](const std::vector<std::int64_t>& shape) {
    return tensor("FloatStorage", "0", 64, 0, shape, std::vector<std::int64_t>(shape.size(), 1));
  };
  refused(Code::bad_data, "ckpt.pt: has no tensor transformer.wte.weight", without(0));
  refused(Code::bad_data, "has no transformer.h.0.attn.c_proj.weight", without(4));
  refused(Code::bad_data, "tensor other.weight matches no part of the model",
      with("other.weight", some({2})));
  refused(Code::bad_data, "1 tensors more than its options require",
      with("transformer.h.0.ln_1.bias", some({2})));
  refused(Code::bad_data, "transformer.wpe.weight has shape (5, 2), but its options require (4, 2)",
      with("transformer.wpe.weight", some({5, 2})));
  refused(Code::bad_data, "\"n_layer\" of \"model_args\" is missing or has the wrong type",
      small_gpt(), {{unicode("n_layer"), unicode("two")}});
  refused(Code::bad_config, "heads", small_gpt(), {{unicode("n_head"), whole(3)}});
  // Only a required value must be valid: the first call is not used, the second is.
  const std::string call = global("os", "system") + tuple({unicode("ls")}) + "R";
  refused(Code::bad_data, "has no tensor transformer.wte.weight", without(0),
      {{unicode("unread"), call}});
  refused(Code::bad_data, "\"n_embd\" of", small_gpt(), {{unicode("n_embd"), call}});
  auto called = small_gpt();
  called[0].second = call;
  refused(Code::bad_data, "transformer.wte.weight is not a dense tensor", called);
  overwrite(folder / "ckpt.pt", archive(dict({{unicode("weights"), whole(1)}}), {}));
  expect_error(Code::bad_data,
      "not a checkpoint of nanoGPT, fairseq, Transformer-XL, RWKV-LM: it contains weights",
      [&] { model::import_model(folder / "ckpt.pt", {}, folder / "out"); });
}

DOCTEST_TEST_CASE("a folder of transformers whose weights are pickled, in one file or several") {
  const std::string golden = "tests/golden/families/qwen3";
  const model::TensorFiles files(golden);
  const auto names = files.tensors();
  // A part of its tensors, as torch.save writes them.
  const auto pickled = [&](std::size_t begin, std::size_t end) {
    Pairs tensors;
    Files storages;
    for (std::size_t i = begin; i < end; ++i) {
      const auto values = files.read(names[i]);
      const auto key = std::to_string(i);
      tensors.emplace_back(unicode(names[i]), tensor("BFloat16Storage", key, values.numel(), 0,
                                                  values.sizes().vec(), values.strides().vec()));
      storages.emplace_back(
          key, std::string(static_cast<const char*>(values.data_ptr()), values.nbytes()));
    }
    // A mask of another type, as old versions stored it.
    tensors.emplace_back(unicode("model.layers.0.rotary_emb.inv_freq"),
        tensor("LongStorage", std::to_string(begin), 1, 0, {0}, {1}));
    return archive(ordered_dict(tensors), storages);
  };
  const auto expected = model::load(golden).fingerprint;
  const TemporaryFolder folder;
  std::filesystem::copy_file(golden + "/config.json", folder / "config.json");
  overwrite(folder / "pytorch_model.bin", pickled(0, names.size()));
  expect_error(Code::no_input, "model import", [&] { model::load(folder.path); });
  DOCTEST_CHECK(model::import_model(folder.path, {}, folder / "one").program == "transformers");
  DOCTEST_CHECK((model::load(folder / "one").fingerprint == expected));
  DOCTEST_CHECK(model::load(folder / "one").family == "qwen3");
  std::filesystem::remove(folder / "pytorch_model.bin");

  core::Json index;
  for (std::size_t i = 0; i < names.size(); ++i)
    index["weight_map"][names[i]] = i < 9 ? "a.bin" : "b.bin";
  overwrite(folder / "pytorch_model.bin.index.json", core::dump(index));
  overwrite(folder / "a.bin", pickled(0, 9));
  overwrite(folder / "b.bin", pickled(9, names.size()));
  model::import_model(folder.path, {}, folder / "two");
  DOCTEST_CHECK((model::load(folder / "two").fingerprint == expected));

  overwrite(folder / "b.bin", pickled(10, names.size()));
  expect_error(Code::bad_data, "no tensor " + names[9],
      [&] { model::import_model(folder.path, {}, folder / "three"); });
  overwrite(folder / "b.bin", pickled(8, names.size()));
  expect_error(Code::bad_data, "tensor " + names[8] + " also occurs in another file",
      [&] { model::import_model(folder.path, {}, folder / "three"); });
  overwrite(folder / "b.bin", pickled(9, names.size()));
  index["weight_map"].erase(names[3]);
  overwrite(folder / "pytorch_model.bin.index.json", core::dump(index));
  expect_error(Code::bad_data, "a.bin: tensor " + names[3] + " is not in",
      [&] { model::import_model(folder.path, {}, folder / "three"); });
  DOCTEST_CHECK(!std::filesystem::exists(folder / "three"));
}

DOCTEST_TEST_CASE(
    "a file of RWKV-LM gives a plain reading's log-probabilities, and is written back") {
  const TemporaryFolder folder;
  const std::string golden = kGoldenCheckpoints + "rwkv7";
  const auto report = model::import_model(golden + ".pth", {}, folder / "m");
  DOCTEST_CHECK((report.program == "RWKV-LM" && report.arch == "rwkv7"));
  const auto expected = golden_nll(golden + ".json");
  const auto exact = model::load(folder / "m", torch::kCPU, torch::kFloat64);
  DOCTEST_CHECK(nll_gap(*exact.model, expected) < 1e-9);
  const auto loaded = model::load(folder / "m");
  DOCTEST_CHECK(nll_gap(*loaded.model, expected) < 1e-4);
  DOCTEST_CHECK((loaded.stored_type == torch::kBFloat16));
  DOCTEST_CHECK(loaded.facts.all["imported"]["program"] == "RWKV-LM");
  for (const std::string name : {"a.pth", "a.safetensors"}) {
    model::export_rwkv(model::load(folder / "m"), "auto", folder / name);
    model::import_model(folder / name, {}, folder / ("of_" + name));
    const auto again = model::load(folder / ("of_" + name));
    DOCTEST_CHECK((again.fingerprint == loaded.fingerprint));
    DOCTEST_CHECK((again.stored_type == torch::kBFloat16));
  }
  // The names and numbers of the file, with zeros up to the usual ranks, and without the maps that
  // layer 0 does not use.
  const auto published = model::read_safetensors(folder / "a.safetensors");
  const model::TorchFile file(golden + ".pth");
  model::StateDict weights(file, file.root(), {});
  for (const auto& name : weights.left()) {
    if (name.starts_with("blocks.0.att.v") && !name.ends_with("weight")) continue;
    DOCTEST_CAPTURE(name);
    const auto theirs = weights.take(name, /*own_type=*/true);
    auto part = published.at(name);
    const auto all = part.abs().sum().item<double>();
    for (std::int64_t i = 0; i < part.dim(); ++i) part = part.narrow(i, 0, theirs.size(i));
    DOCTEST_CHECK(part.equal(theirs));
    DOCTEST_CHECK(part.abs().sum().item<double>() == all);
  }
  DOCTEST_CHECK(weights.left().size() == 3);
  DOCTEST_CHECK(published.size() == 2 + 2 + 2 + 2 * 33 - 3);
  DOCTEST_CHECK(published.at("blocks.1.att.w1").size(1) == 32);
}

DOCTEST_TEST_CASE("a trained RWKV-7 goes to a file of RWKV-LM and to fla, with the same function") {
  for (const std::int64_t heads : {1, 4}) {
    const TemporaryFolder folder;
    nn::ModelOptions options;
    options.arch = "rwkv7", options.shape.layers = static_cast<std::int64_t>(heads);
    options.shape.d_model = 64, options.shape.heads = heads;
    options.vocabulary.scale_embedding = heads == 1;
    model::save(folder / "m", *random_model(options), {{"memory", "none"}}, "");
    const auto loaded = model::load(folder / "m");
    model::export_rwkv(loaded, "auto", folder / "a.pth");
    model::import_model(folder / "a.pth", {}, folder / "again");
    const auto again = model::load(folder / "again");
    DOCTEST_CHECK(
        std::abs(loss_of(*again.model, some_ids()) - loss_of(*loaded.model, some_ids())) < 1e-6);
    // fla's epsilon is that of RWKV-LM only with heads of 64 channels.
    DOCTEST_CHECK(again.family == (heads == 1 ? "rwkv7" : ""));
    model::export_rwkv(again, "auto", folder / "b.pth");
    model::import_model(folder / "b.pth", {}, folder / "third");
    DOCTEST_CHECK((model::load(folder / "third").fingerprint == again.fingerprint));
  }
  auto other = small_gpt2();
  const TemporaryFolder folder;
  model::save(folder / "m", *random_model(other), {{"memory", "none"}}, "");
  expect_error(Code::bad_config, "cannot be exported as RWKV-LM: arch is transformer, not rwkv7",
      [&] { model::export_rwkv(model::load(folder / "m"), "auto", folder / "a.pth"); });
  DOCTEST_CHECK(!std::filesystem::exists(folder / "a.pth"));
}

DOCTEST_TEST_CASE("what a file of RWKV-LM lacks, has too much or in another shape is named") {
  const TemporaryFolder folder;
  model::import_model(kGoldenCheckpoints + "rwkv7.pth", {}, folder / "m");
  model::export_rwkv(model::load(folder / "m"), "auto", folder / "whole.safetensors");
  const auto whole = model::read_safetensors(folder / "whole.safetensors");
  const auto refused = [&](const std::string& part, auto change, Code code = Code::bad_data) {
    auto tensors = whole;
    change(tensors);
    core::Output out(folder / "x.safetensors");
    model::write_safetensors(out, {tensors.begin(), tensors.end()});
    out.commit();
    expect_error(
        code, part, [&] { model::import_model(folder / "x.safetensors", {}, folder / "out"); });
    DOCTEST_CHECK(!std::filesystem::exists(folder / "out"));
  };
  const auto without = [](const std::string& name) {
    return [name](auto& tensors) { DOCTEST_REQUIRE(tensors.erase(name) == 1); };
  };
  const auto with = [](const std::string& name, const std::vector<std::int64_t>& shape) {
    return [=](auto& tensors) { tensors[name] = torch::ones(shape); };
  };
  refused("x.safetensors: an RWKV of another version than 7: it has no tensor blocks.0.att.r_k",
      without("blocks.0.att.r_k"));
  refused("x.safetensors: not a file of RWKV-LM: it has no emb.weight", without("emb.weight"));
  refused("has no tensor blocks.1.att.g2", without("blocks.1.att.g2"));
  refused("has no tensor blocks.1.att.v1", without("blocks.1.att.v1"));
  refused("tensor emb.weight has 1 dimensions, not 2", with("emb.weight", {64}));
  refused("blocks.1.att.w1 has 4 columns, but blocks.1.att.w2 has 32 rows",
      with("blocks.1.att.w1", {16, 4}));
  refused("blocks.1.att.w1 has rank 33, but only up to 32 is supported", [&](auto& tensors) {
    with("blocks.1.att.w1", {16, 33})(tensors);
    with("blocks.1.att.w2", {33, 16})(tensors);
  });
  refused("tensor blocks.1.att.w1 has shape (32, 16), but the first block requires (16, 32)",
      [&](auto& tensors) {
        with("blocks.1.att.w1", {32, 16})(tensors);
        with("blocks.1.att.w2", {16, 16})(tensors);
      });
  refused("tensor blocks.1.att.w2 has shape (32, 8), but the first block requires (32, 16)",
      with("blocks.1.att.w2", {32, 8}));
  refused("tensor blocks.1.att.x_w has shape (16), but the first block requires (1, 1, 16)",
      with("blocks.1.att.x_w", {16}));
  refused("tensor blocks.1.att.s0 (2) matches no part of the model", with("blocks.1.att.s0", {2}));
  refused(
      "tensor blocks.2.ffn.x_k (1, 1, 16) matches no part", with("blocks.2.ffn.x_k", {1, 1, 16}));
  refused("\"head_dim\": a number that does not divide hidden_size",
      with("blocks.0.att.r_k", {2, 3}), Code::bad_config);
  refused("x.safetensors: layers: takes 1 to", without("blocks.0.ln1.weight"), Code::bad_config);
  expect_error(Code::bad_data, "a tokenizer of 256 tokens, more than the 64 of the model", [&] {
    model::import_model(folder / "whole.safetensors", {.tokenizer = "bytes"}, folder / "out");
  });
}

DOCTEST_TEST_CASE("a model is not written over another") {
  const TemporaryFolder folder;
  const auto path = imported(folder, "nanogpt");
  const auto refused = [&](const std::string& what) {
    expect_error(Code::cannot_create, "already contains a model",
        [&] { model::import_model(kGoldenCheckpoints + what + ".pt", {}, path); });
  };
  refused("nanogpt_stream");
  // Importing again finds it complete. After a change of one byte of any file it is another model.
  DOCTEST_CHECK(model::import_model(kGoldenCheckpoints + "nanogpt.pt", {}, path).was_there);
  for (const std::string name : {"/config.json", "/model.safetensors"}) {
    const auto whole = core::read_text(path + name);
    core::write_file(path + name, whole + "\n");
    refused("nanogpt");
    core::write_file(path + name, whole);
  }
  core::write_file(path + "/tokenizer.json", "{}\n");
  refused("nanogpt");
  std::filesystem::remove(path + "/tokenizer.json");
  DOCTEST_CHECK(model::import_model(kGoldenCheckpoints + "nanogpt.pt", {}, path).was_there);
  std::filesystem::remove(path + "/model.safetensors");
  DOCTEST_CHECK(!model::import_model(kGoldenCheckpoints + "nanogpt.pt", {}, path).was_there);
}

DOCTEST_TEST_CASE("many names for one storage are refused before they are many times the file") {
  Pairs tensors = small_gpt();
  for (int i = 0; i < 2000; ++i)
    tensors.emplace_back(unicode("transformer.x" + std::to_string(i)),
        tensor("FloatStorage", "0", 64, 0, {64}, {1}));
  const auto file = archive(dict({{unicode("model"), ordered_dict(tensors)}}),
      {{"0", bytes_of(std::vector<float>(64, .5F))}});
  const model::TorchFile read(std::make_unique<core::RandomMemory>(
      core::Bytes(reinterpret_cast<const std::byte*>(file.data()),
          reinterpret_cast<const std::byte*>(file.data()) + file.size()),
      "x.pt"));
  const auto* const weights = read.root().find("model");
  DOCTEST_REQUIRE(weights != nullptr);
  model::StateDict state(read, *weights, {});
  expect_error(Code::bad_data, "overlap", [&] {
    for (int times = 0; times < 4; ++times)
      for (int i = 0; i < 2000; ++i) state.take("transformer.x" + std::to_string(i));
  });
}
