// Products with the blocks of a GGUF file, compared with those of the unpacked weights; and models
// of such blocks, compared with float32.
#include <doctest/doctest.h>

#include <map>

#include "core/file_text.h"
#include "engines.h"
#include "infer/decode/block_kernels.h"
#include "infer/loops/make_engine.h"
#include "model/export_model.h"
#include "model/gguf/gguf_model.h"
#include "unit/model/gguf_bytes.h"
#include "unit/temporary_folder.h"
#include "unit/thrown.h"

namespace {

// The float16 factors of a block: their positions, and the upper byte of the first, with which
// weights are about 2^-6.
struct Scales {
  std::vector<std::size_t> at;
  int high;
};
const std::map<std::uint32_t, Scales> kScales = {{2, {{0}, 0x18}}, {3, {{0, 2}, 0x18}},
    {6, {{0}, 0x14}}, {7, {{0, 2}, 0x14}}, {8, {{0}, 8}}, {11, {{108}, 8}}, {12, {{0, 2}, 4}},
    {13, {{0, 2}, 4}}, {14, {{208}, 0}}};

std::string random_blocks(std::uint32_t type, std::int64_t numbers, core::Rng& rng) {
  const auto& of = *model::gguf_type(type);
  const auto& [places, first] = kScales.at(type);
  std::string bytes;
  for (auto n = numbers; n > 0; n -= static_cast<std::int64_t>(of.elements)) {
    const auto begin = bytes.size();
    for (std::size_t i = 0; i < of.bytes; ++i) bytes += static_cast<char>(rng.below(256));
    for (const auto at : places) {
      int high = first + static_cast<int>(rng.below(4));
      // A least value of 8 or 16 scales; in the first block, numbers below the smallest normal one.
      if (at == 2) high += (type == 3 || type == 12 ? 12 : 16) + (type < 8 ? 128 : 0);
      bytes[begin + at + 1] = static_cast<char>(begin == 0 ? 1 : high);
    }
  }
  return bytes;
}

// Returns some of the eleven rows of a tensor.
model::GgufRows rows_of(std::uint32_t type, const std::string& bytes, std::int64_t first,
    std::int64_t rows, std::int64_t heads) {
  const auto row_bytes = static_cast<std::int64_t>(bytes.size()) / 11;
  return {nullptr, model::gguf_type(type),
      std::as_bytes(std::span(bytes)).subspan(first * row_bytes, rows * row_bytes), rows, heads};
}

}  // namespace

DOCTEST_TEST_CASE("products with blocks are those of the unpacked weights") {
  core::Rng rng(7);
  for (const std::uint32_t type : {2, 3, 6, 7, 8, 12, 13, 14}) {
    const auto& of = *model::gguf_type(type);
    DOCTEST_CAPTURE(of.name);
    for (const std::int64_t blocks : {1, 3, 7}) {
      const auto in = blocks * static_cast<std::int64_t>(of.elements), out = std::int64_t{11};
      const auto bytes = random_blocks(type, out * in, rng);
      std::vector<float> weights(static_cast<std::size_t>(out * in));
      model::gguf_unpack(of, std::as_bytes(std::span(bytes)), weights.data());
      // Eight rows of two heads that llama.cpp interleaves, three as they are.
      const auto matrix = std::make_shared<const infer::BlockMatrix>(
          std::vector{rows_of(type, bytes, 0, 8, 2), rows_of(type, bytes, 8, 3, 0)}, in);
      const infer::PackedMatrix packed(matrix, in);
      const auto row_of = [&](std::int64_t o) {
        for (std::int64_t i = 0; i < 8; ++i)
          if (model::gguf_family_row(i, 4) == o) return i;
        return o;
      };
      constexpr std::int64_t kRows = 9;
      std::vector<float> x(static_cast<std::size_t>(kRows * in)), y(kRows * 11);
      for (auto& value : x) value = static_cast<float>(rng.normal());
      std::fill_n(x.begin(), 32, 0.0F);
      packed.multiply(x.data(), kRows, in, 0, packed.panels(), y.data(), out);
      std::vector<float> unpacked(static_cast<std::size_t>(in));
      for (std::int64_t o = 0; o < out; ++o) {
        const float* const w = weights.data() + row_of(o) * in;
        packed.row(o, unpacked.data());
        DOCTEST_CHECK(std::equal(unpacked.begin(), unpacked.end(), w));
        for (std::int64_t r = 0; r < kRows; ++r) {
          double expected = 0, size = 0;
          for (std::int64_t i = 0; i < in; ++i) {
            const double product = double{w[i]} * double{x[static_cast<std::size_t>(r * in + i)]};
            expected += product, size += product * product;
          }
          // Inputs have an error of at most 2^-15 of the largest, which is below 5 here.
          const auto found = double{y[static_cast<std::size_t>(r * out + o)]};
          DOCTEST_CHECK(std::abs(found - expected) <= 4e-4 * std::sqrt(size) + 1e-7);
        }
      }
      // Every number of rows, and a part of the outputs, give the same bits.
      const auto part = packed.rows(2, 7);
      for (std::int64_t rows = 1; rows <= kRows; ++rows) {
        std::vector<float> again(kRows * 11, -1.0F);
        part.multiply(x.data(), rows, in, 0, part.panels(), again.data(), out);
        for (std::int64_t r = 0; r < rows; ++r)
          for (std::int64_t o = 0; o < 7; ++o)
            DOCTEST_CHECK(again[static_cast<std::size_t>(r * out + o)] ==
                          y[static_cast<std::size_t>(r * out + o + 2)]);
      }
      x[5] = std::numeric_limits<float>::quiet_NaN();
      for (const std::int64_t rows : {std::int64_t{1}, kRows}) {
        packed.multiply(x.data(), rows, in, 0, packed.panels(), y.data(), out);
        for (std::int64_t o = 0; o < rows * out; ++o)
          DOCTEST_CHECK(std::isfinite(y[static_cast<std::size_t>(o)]) == (o >= out));
      }
    }
  }
}

DOCTEST_TEST_CASE("the largest sums of whole numbers do not overflow") {
  // Q6_K: 256 numbers of -32, scales of -128, d = 1.
  std::string bytes(210, '\0');
  std::fill_n(bytes.begin() + 192, 16, '\x80');
  bytes[209] = 0x3c;
  std::string all;
  for (int row = 0; row < 11; ++row) all += bytes;
  const infer::BlockMatrix matrix({rows_of(14, all, 0, 11, 0)}, 256);
  const std::vector<float> x(9 * 256, 1.0F);
  std::vector<float> y(9 * 11);
  for (const std::int64_t rows : {1, 9}) {
    std::fill(y.begin(), y.end(), 0.0F);
    matrix.multiply(x.data(), rows, 256, 0, 11, y.data(), 11);
    for (std::int64_t i = 0; i < rows * 11; ++i)
      DOCTEST_CHECK(y[static_cast<std::size_t>(i)] == doctest::Approx(4096.0 * 256));
  }
}

namespace {

constexpr std::int64_t kLlamaWords = 256, kLlamaWidth = 256, kLlamaInner = 288;

// Writes a Llama of two layers; `type_of` gives the types of its matrices by their names.
std::string random_llama(const TemporaryFolder& folder,
    const std::function<std::uint32_t(const std::string&)>& type_of) {
  core::Rng rng(11);
  GgufBytes file;
  file.text("general.architecture", "llama");
  for (const auto& [key, value] :
      std::map<std::string, std::uint32_t>{{"block_count", 2}, {"context_length", 64},
          {"embedding_length", kLlamaWidth}, {"feed_forward_length", kLlamaInner},
          {"attention.head_count", 8}, {"attention.head_count_kv", 2}})
    file.whole("llama." + key, value);
  const auto add = [&](const std::string& name, std::int64_t out, std::int64_t in) {
    const auto type = type_of(name);
    if (type > 1) return file.tensor(name, {out, in}, type, random_blocks(type, out * in, rng));
    std::vector<float> values(static_cast<std::size_t>(out * in));
    for (auto& value : values) value = static_cast<float>(rng.normal()) * 0.05F;
    file.floats(name, {out, in}, values);
  };
  const std::vector<float> ones(kLlamaWidth, 1.0F);
  add("token_embd.weight", kLlamaWords, kLlamaWidth);
  for (const std::string layer : {"blk.0.", "blk.1."}) {
    for (const char* norm : {"attn_norm", "ffn_norm"})
      file.floats(layer + norm + ".weight", {kLlamaWidth}, ones);
    add(layer + "attn_q.weight", kLlamaWidth, kLlamaWidth);
    add(layer + "attn_k.weight", 64, kLlamaWidth);
    add(layer + "attn_v.weight", 64, kLlamaWidth);
    add(layer + "attn_output.weight", kLlamaWidth, kLlamaWidth);
    add(layer + "ffn_gate.weight", kLlamaInner, kLlamaWidth);
    add(layer + "ffn_up.weight", kLlamaInner, kLlamaWidth);
    add(layer + "ffn_down.weight", kLlamaWidth, kLlamaInner);
  }
  file.floats("output_norm.weight", {kLlamaWidth}, ones);
  const auto path = folder / "model.gguf";
  std::ofstream(path, std::ios::binary) << file.bytes();
  return path;
}

}  // namespace

DOCTEST_TEST_CASE("every family in the blocks of a file has the log-probabilities of float32") {
  const torch::NoGradGuard no_gradient;
  for (const std::string family : {"mistral", "qwen3", "gemma", "gemma2", "gemma3_text", "phi3"}) {
    DOCTEST_CAPTURE(family);
    const TemporaryFolder folder;
    const auto path = folder / "model.gguf", config_path = folder / "m/config.json";
    std::filesystem::copy("tests/golden/families/" + family, folder / "m");
    auto config = core::read_json(config_path, 1 << 20);
    if (config.contains("query_pre_attn_scalar")) {
      config["query_pre_attn_scalar"] = config["head_dim"];  // another value has no key
      std::ofstream(config_path) << core::dump(config);
    }
    const auto golden = model::load(folder / "m");
    model::export_gguf(golden, family, "q4_1", path);
    const auto wide = model::load(path), loaded = infer::load_to_decode(path, torch::kCPU, "file");
    const auto engine = infer::make_engine(*loaded.model, torch::kCPU, infer::Precision::file,
        /*record=*/false, infer::packed_in(loaded));
    infer::ModuleEngine modules(*wide.model, torch::kCPU);
    infer::RowInput text;
    for (std::int64_t i = 0; i < 12; ++i) text.tokens.push_back(i * 37 % golden.model->vocabulary);
    engine->open(1), modules.open(1);
    DOCTEST_CHECK(difference(engine->head().log_probs(engine->feed({text}).output, nullptr),
                      modules.head().log_probs(modules.feed({text}).output, nullptr)) < 1e-3);
  }
}

DOCTEST_TEST_CASE("a model in the blocks of its file has the log-probabilities of float32") {
  const torch::NoGradGuard no_gradient;
  const auto has = [](const std::string& name, const char* part) {
    return name.find(part) != std::string::npos;
  };
  const auto mixed = [&](const std::string& name) -> std::uint32_t {
    return has(name, "embd") ? 14 : has(name, "attn_v") ? 13 : has(name, "ffn_down") ? 6 : 12;
  };
  const auto small = [&](const std::string& name) -> std::uint32_t {
    return has(name, "embd") ? 8 : has(name, "attn_k") ? 7 : has(name, "blk.1") ? 2 : 3;
  };
  // Float32 matrices among the others; Q3_K, which is unpacked to int8, has a wider tolerance.
  const auto floats = [&](const std::string& name) { return has(name, "attn_v") ? 0U : 3U; };
  const auto other = [&](const std::string& name) { return has(name, "attn_v") ? 11U : 3U; };
  const std::vector<std::pair<std::function<std::uint32_t(const std::string&)>, double>> cases = {
      {mixed, 1e-3}, {small, 1e-3}, {floats, 1e-3}, {other, 0.1}};
  for (const auto& [type_of, tolerance] : cases) {
    const TemporaryFolder folder;
    const auto path = random_llama(folder, type_of);
    const auto wide = model::load(path);
    const auto loaded = infer::load_to_decode(path, torch::kCPU, "file");
    DOCTEST_CHECK(loaded.fingerprint.hex() == wide.fingerprint.hex());
    const auto engine = infer::make_engine(*loaded.model, torch::kCPU, infer::Precision::file,
        /*record=*/false, infer::packed_in(loaded));
    infer::ModuleEngine modules(*wide.model, torch::kCPU);
    infer::RowInput text;
    for (std::int64_t i = 0; i < 40; ++i) text.tokens.push_back(i * 37 % kLlamaWords);
    engine->open(1), modules.open(1);
    const auto found = engine->head().log_probs(engine->feed({text}).output, nullptr);
    const auto expected = modules.head().log_probs(modules.feed({text}).output, nullptr);
    DOCTEST_CHECK(expected.std().item<double>() > 0.05);
    DOCTEST_CHECK(difference(found, expected) < tolerance);
    // Token by token: the same bits.
    engine->open(1);
    for (std::size_t i = 0; i < 5; ++i) {
      const auto one = engine->head().log_probs(engine->feed({{{text.tokens[i]}}}).output, nullptr);
      DOCTEST_CHECK(torch::equal(one[0], found[static_cast<std::int64_t>(i)]));
    }
    const auto scored = infer::load_to_score(path, torch::kCPU, "file");
    nn::Batch batch = nn::Batch::padding(1, 40);
    batch.fresh = torch::zeros({1}, torch::kBool);
    batch.inputs[0] = torch::tensor(text.tokens);
    batch.place.run.zero_();
    const auto hidden = scored.model->architecture->forward(batch, nullptr).output[0];
    DOCTEST_CHECK(difference(scored.model->head->log_probs(hidden, nullptr), expected) < tolerance);
  }
}

DOCTEST_TEST_CASE("auto is the type of a file whose blocks all have products") {
  const auto has = [](const std::string& name, const char* part) {
    return name.find(part) != std::string::npos;
  };
  const auto type_of = [&](const std::function<std::uint32_t(const std::string&)>& types,
                           torch::Device device = torch::kCPU, const std::string& adapter = {}) {
    const TemporaryFolder folder;
    const auto path = random_llama(folder, types);
    const auto type = infer::type_to_load("auto", path, device, adapter);
    DOCTEST_CHECK(infer::type_to_load("int8", path, device, adapter) == "int8");
    if (!device.is_cpu() || !adapter.empty()) return type;
    // The fingerprint is that of the same weights as float32, and is read when it is asked for.
    const auto loaded = infer::load_with_type(path, device, "auto");
    DOCTEST_CHECK(infer::type_loaded("auto", loaded) == type);
    DOCTEST_CHECK((loaded.fingerprint == model::load(path).fingerprint));
    return type;
  };
  const auto blocks = [](const std::string&) { return 3U; };
  const std::string own = infer::has_block_kernels() ? "file" : "float32";
  DOCTEST_CHECK(type_of(blocks) == own);
  DOCTEST_CHECK(type_of(blocks, torch::kCUDA) == "float32");
  DOCTEST_CHECK(type_of(blocks, torch::kCPU, "adapter") == "float32");
  DOCTEST_CHECK(
      type_of([&](const std::string& name) { return has(name, "attn_v") ? 0U : 3U; }) == own);
  DOCTEST_CHECK(type_of([&](const std::string& name) { return has(name, "attn_v") ? 11U : 3U; }) ==
                "float32");
  DOCTEST_CHECK(type_of([](const std::string&) { return 0U; }) == "float32");
  DOCTEST_CHECK(
      infer::type_to_load("auto", "tests/golden/families/llama", torch::kCPU) == "float32");
}

DOCTEST_TEST_CASE("the blocks of a file are kept without another model, a device or an adapter") {
  const TemporaryFolder folder;
  const auto path = random_llama(folder, [](const std::string&) { return 3U; });
  const auto load = [&](const std::string& of, torch::Device device, const std::string& adapter) {
    return thrown([&] { infer::load_to_decode(of, device, "file", adapter); });
  };
  for (const auto& error : {load(folder.path, torch::kCPU, ""), load(path, torch::kCUDA, ""),
           load(path, torch::kCPU, "adapter")}) {
    DOCTEST_CHECK(error.code == static_cast<int>(core::Code::usage));
    DOCTEST_CHECK(error.text.starts_with("--dtype file: "));
  }
}
