// Malicious folders in transformers' form. Whatever config.json, the header of model.safetensors
// and the indices say, `model info`, `model verify`, `model import` and everything that loads a
// model end with one line and a documented code. They allocate no memory for what the files claim.

#include <unistd.h>

#include "counted_memory.h"
#include "folder_of_test.h"
#include "model/folder.h"
#include "model/import_model.h"
#include "model/model_report.h"
#include "model/tensor_files.h"
#include "model/weights.h"
#include "small_models.h"

namespace {

using core::Code;

constexpr std::size_t kLongestLine = 1000;

/// Ends the process if a reader does not end.
struct TimeLimit {
  TimeLimit() { ::alarm(120); }
  ~TimeLimit() { ::alarm(0); }
};

bool is_documented(Code code) {
  return code == Code::bad_data || code == Code::bad_config || code == Code::no_input;
}

bool is_one_line(const std::string& text) {
  return !text.empty() && text.size() < kLongestLine && text.find('\n') == std::string::npos;
}

/// Checks that no reader accepts it, that each gives a one-line reason, and that one of the lines
/// contains `says`.
void expect_refused(const std::string& folder, const std::string& says) {
  const TimeLimit limit;
  const CountedMemory memory;
  std::string lines;
  const auto refused = [&](const auto& body) {
    try {
      body();
      DOCTEST_FAIL_CHECK("no error; expected one with: " << says);
    } catch (const core::Error& error) {
      const std::string text = error.what();
      DOCTEST_CHECK_MESSAGE(is_documented(error.code()), text);
      DOCTEST_CHECK_MESSAGE(is_one_line(text), text);
      lines += text + "\n";
    }
  };
  refused([&] { model::describe_model(folder); });
  refused([&] { model::load(folder); });
  const auto verdict = model::check_model(folder);
  DOCTEST_CHECK(!verdict.ok());
  for (const auto& fault : verdict.faults) {
    DOCTEST_CHECK_MESSAGE(is_one_line(fault), fault);
    lines += fault + "\n";
  }
  DOCTEST_CHECK_MESSAGE(lines.find(says) != std::string::npos, lines);
  DOCTEST_CHECK(memory.most() < std::int64_t{32} << 20);
}

std::string safetensors(const std::string& header, std::size_t data) {
  const std::uint64_t length = header.size();
  std::string bytes(reinterpret_cast<const char*>(&length), sizeof length);
  return bytes + header + std::string(data, '\0');
}

std::string nested(const std::string& open, std::size_t times) {
  std::string text;
  for (std::size_t i = 0; i < times; ++i) text += open;
  return text;
}

/// A small GPT-2 whose files tests overwrite.
struct GptFolder : TemporaryFolder {
  GptFolder() {
    model::save(path, *random_model(small_gpt2()), {{"memory", "none"}}, "");
    auto config = core::parse_json(core::read_text(*this / "config.json"), "config.json");
    config.erase("tessera");
    overwrite(*this / "config.json", core::dump(config));
  }
};

struct SaidFile {
  std::string says, content;
};

}  // namespace

DOCTEST_TEST_CASE("a config.json that lies is refused in one line") {
  const GptFolder folder;
  const auto with = [](const std::string& key, const std::string& value) {
    return R"({"model_type":"gpt2","n_positions":24,"n_embd":16,"n_layer":2,"n_head":2,)"
           R"("vocab_size":64,")" +
           key + "\":" + value + "}";
  };
  const std::vector<SaidFile> cases = {{"not JSON", ""}, {"not JSON", "{"},
      {"not a JSON object", "[]"}, {"nested too deeply", nested("[", 100'000)},
      {"nested too deeply", nested("{\"a\":", 100'000)},
      {"layers: takes 1 to", with("n_layer", "1000000000000000000")},
      {"\"n_layer\" has the wrong type", with("n_layer", "1e18")},
      {"\"n_layer\" has the wrong type", with("n_layer", "\"2\"")},
      {"\"n_layer\" has the wrong type", with("n_layer", "[2]")},
      {"layers: takes 1 to", with("n_layer", "-2")},
      {"\"n_layer\" has the wrong type", with("n_layer", "18446744073709551615")},
      {"no \"n_layer\"", with("n_layer", "null")},
      {"NaN is not JSON, though", with("n_layer", "NaN")},
      {"\"n_layer\" has the wrong type", with("n_layer", "1e999")},
      {"not UTF-8", with("n_layer", "2,\"x\":\"\xff\"")},
      {"\"n_inner\": 0 is not supported", with("n_inner", "0")},
      {"tensors for 9999 layers", with("n_layer", "9999")},
      {"heads: takes 1 to", with("n_head", "0")},
      {"d-model: takes 1 to", with("n_embd", "4611686018427387904")},
      {"context: takes", with("n_positions", "-1")},
      {"vocabulary-size: takes", with("vocab_size", "-64")},
      {"d-ff: takes", with("n_inner", "9223372036854775807")},
      {"norm-epsilon: takes", with("layer_norm_epsilon", "-1")},
      {"has the wrong type", with("layer_norm_epsilon", "\"1e-5\"")},
      {"config.json requires (1000000, 16)", with("vocab_size", "1000000")},
      {"\"model_type\" has the wrong type", "{\"model_type\":7}"},
      {"is not supported", "{\"model_type\":\"../../gpt2\"}"},
      {"neither \"tessera\" nor \"model_type\"", "{}"}, {"no \"version\"", "{\"tessera\":{}}"},
      {"no \"version\"", "{\"tessera\":[]}"}};
  for (const auto& [says, content] : cases) {
    DOCTEST_CAPTURE(content.substr(0, 300));
    overwrite(folder / "config.json", content);
    expect_refused(folder.path, says);
  }
  // Members that nobody asks for may hold any number.
  overwrite(
      folder / "config.json", with("n_layer", "2,\"x\":[1e999,-123456789012345678901234567890]"));
  DOCTEST_CHECK(model::check_model(folder.path).ok());
  // The last of duplicate keys counts, as in Python.
  overwrite(folder / "config.json", with("n_layer", "2,\"n_layer\":3,\"n_layer\":2"));
  DOCTEST_CHECK(model::check_model(folder.path).ok());
}

DOCTEST_TEST_CASE("any value of any key of a family's config.json is read or refused") {
  const TimeLimit limit;
  const CountedMemory memory;
  const std::vector<std::string> values = {"0", "-1", "1000000000000000000", "1.5", "1e300",
      "18446744073709551615", "\"4\"", "[]", "[1,[2]]", "{}", "true", "null"};
  int read = 0, refused = 0;
  for (const auto& entry : std::filesystem::directory_iterator("tests/golden/families")) {
    const auto folder = entry.path().string();
    const model::TensorFiles files(folder);
    const auto config = core::parse_json(core::read_text(folder + "/config.json"), "config.json");
    for (const auto& key : config.items()) {
      for (const auto& value : values) {
        DOCTEST_CAPTURE(folder + " " + key.key() + " " + value);
        auto changed = config;
        changed[key.key()] = core::parse_json(value, "value");
        try {
          const auto parsed = model::parse_config(changed, "config.json");
          model::StoredWeights(parsed, "config.json", files).check(model::refuse);
          ++read;
        } catch (const core::Error& error) {
          DOCTEST_CHECK_MESSAGE(is_documented(error.code()), error.what());
          DOCTEST_CHECK_MESSAGE(is_one_line(error.what()), error.what());
          ++refused;
        }
      }
    }
  }
  DOCTEST_CHECK(read > 1000);
  DOCTEST_CHECK(refused > 1000);
  DOCTEST_CHECK(memory.most() < std::int64_t{32} << 20);
}

DOCTEST_TEST_CASE("heads of no width are refused before anything is divided by them") {
  for (const std::string family : {"gemma2", "gemma3_text", "llama", "qwen3"}) {
    DOCTEST_CAPTURE(family);
    auto config = core::parse_json(
        core::read_text("tests/golden/families/" + family + "/config.json"), "config.json");
    config["num_attention_heads"] = 0;
    config["head_dim"] = 0;
    expect_error(
        Code::bad_config, "heads: takes 1 to", [&] { model::parse_config(config, "config.json"); });
  }
}

DOCTEST_TEST_CASE("a header of safetensors that lies is refused in one line") {
  const GptFolder folder;
  const auto entry = [](const std::string& dtype, const std::string& shape,
                         const std::string& offsets) {
    return R"({"t":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" +
           offsets + "}}";
  };
  const auto f32 = [&](const std::string& shape, const std::string& offsets) {
    return safetensors(entry("F32", shape, offsets), 8);
  };
  const std::string whole_file = core::read_text(folder / "model.safetensors");
  const auto with_length = [](std::uint64_t length) {
    return std::string(reinterpret_cast<const char*>(&length), sizeof length) + "{}      ";
  };
  const std::string twice = R"({"t":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                            R"("t":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})";
  const std::string overlap = R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},)"
                              R"("b":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})";
  const std::vector<SaidFile> cases = {{"cut short, or not safetensors", ""},
      {"a header of 9223372036854775807 bytes", with_length(~0ull >> 1)},
      {"a header of 18446744073709551615 bytes", with_length(~0ull)},
      {"cut short: it ends at byte 16 of a header of 50000008", with_length(50'000'000)},
      {"no JSON header", with_length(0)}, {"not JSON", with_length(1)},
      {"nested too deeply", safetensors(nested("{\"a\":", 100'000), 0)},
      {"unknown dtype \"F128\"", safetensors(entry("F128", "[2]", "[0,8]"), 8)},
      {"needs 12 bytes, but its offsets span 8", f32("[3]", "[0,8]")},
      {"is not an integer", f32("[-2]", "[0,8]")}, {"is not an integer", f32("[2.0]", "[0,8]")},
      {"is not an integer", f32("[\"2\"]", "[0,8]")}, {"not JSON", f32("[NaN]", "[0,8]")},
      {"is not an integer", f32("[2]", "[-8,0]")},
      {"larger than any file", f32("[4294967296,4294967296]", "[0,8]")},
      {"larger than any file", f32("[0,4294967296,4294967296]", "[0,0]")},
      {"not described", f32("2", "[0,8]")}, {"not described", f32("[2]", "8")},
      {"the end of tensor t is 0; allowed: its begin, 8, to ", f32("[2]", "[8,0]")},
      {"cut short: it ends at byte", f32("[1000000000000]", "[0,4000000000000]")},
      {"leave a hole", f32("[1]", "[4,8]")}, {"leave a hole", safetensors(twice, 8)},
      {"overlap", safetensors(overlap, 8)},
      {"belong to no tensor", safetensors(entry("F32", "[1]", "[0,4]"), 8)},
      {"is not an object", safetensors(R"({"__metadata__":[]})", 0)},
      {"is not a text", safetensors(R"({"__metadata__":{"a":{}}})", 0)},
      {fmt::format("cut short: it ends at byte {} of {}", whole_file.size() - 1, whole_file.size()),
          whole_file.substr(0, whole_file.size() - 1)},
      {"belong to no tensor", whole_file + "x"}};
  for (const auto& [says, content] : cases) {
    DOCTEST_CAPTURE(content.substr(0, 300));
    overwrite(folder / "model.safetensors", content);
    expect_refused(folder.path, says);
  }
}

DOCTEST_TEST_CASE("an index that leads out of its folder, or nowhere, is refused in one line") {
  const GptFolder folder;
  const auto bytes = core::read_text(folder / "model.safetensors");
  std::filesystem::remove(folder / "model.safetensors");
  overwrite(folder / "a.safetensors", bytes);
  const auto map = [](const std::string& file) {
    return R"({"weight_map":{"transformer.wte.weight":)" + file + "}}";
  };
  const std::vector<SaidFile> cases = {
      {"is not a file of this folder", map("\"../../etc/passwd\"")},
      {"is not a file of this folder", map("\"/etc/passwd\"")},
      {"is not a file of this folder", map("\"..\"")},
      {"is not a file of this folder", map("\"\"")},
      {"is not a file of this folder", map("\"a\\u0000b\"")},
      {"is not a file of this folder", map("7")},
      {"is not a file of this folder", map("[\"a.safetensors\"]")},
      {"", map("\"missing.safetensors\"")}, {"", map("\"config.json\"")},
      {"is not in", map("\"a.safetensors\"")}, {"not an index of tensors", "{}"},
      {"not an index of tensors", "[]"}, {"not an index of tensors", "{\"weight_map\":[]}"},
      {"nested too deeply", nested("[", 100'000)}};
  for (const auto& [says, content] : cases) {
    DOCTEST_CAPTURE(content.substr(0, 300));
    overwrite(folder / "model.safetensors.index.json", content);
    expect_refused(folder.path, says);
  }
  // The index of pickled files follows the same rules.
  std::filesystem::remove(folder / "model.safetensors.index.json");
  for (const auto& [says, content] : cases) {
    if (says == "is not in") continue;  // that file is no pickle
    DOCTEST_CAPTURE(content.substr(0, 300));
    overwrite(folder / "pytorch_model.bin.index.json", content);
    try {
      model::import_model(folder.path, {}, folder / "out");
      DOCTEST_FAIL_CHECK("no error");
    } catch (const core::Error& error) {
      const std::string text = error.what();
      DOCTEST_CHECK_MESSAGE(is_documented(error.code()), text);
      DOCTEST_CHECK_MESSAGE(is_one_line(text), text);
      DOCTEST_CHECK_MESSAGE(text.find(says) != std::string::npos, text);
    }
    DOCTEST_CHECK(!std::filesystem::exists(folder / "out/config.json"));
  }
}
