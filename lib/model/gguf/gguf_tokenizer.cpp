#include "model/gguf/gguf_tokenizer.h"

#include "core/plain_text.h"
#include "text/formats/sentencepiece.h"
#include "text/tokenizer/split.h"

namespace model {
namespace {

using core::OrderedJson;

constexpr const char* kTokenTexts = "tokenizer.ggml.tokens";
constexpr const char* kTokenTypes = "tokenizer.ggml.token_type";
constexpr const char* kScores = "tokenizer.ggml.scores";
constexpr const char* kMerges = "tokenizer.ggml.merges";
constexpr std::string_view kMark = "\xE2\x96\x81";

// Types of tokens.
constexpr double kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6;

// How llama.cpp splits a text before the merges, by its name for the method.
struct Way {
  std::string_view name = {};
  std::vector<std::string> patterns = {};  // applied in order; each splits the pieces so far
  bool whole_words = false;                // a piece that is a token is not merged
  bool begins = false;                     // add the BOS token if the metadata do not say
};

std::string pattern(text::Split::Kind kind) { return std::string(text::pattern_of(kind)); }

const std::vector<Way>& ways() {
  using Kind = text::Split::Kind;
  static const std::vector<Way> all = [] {
    const auto gpt2 = pattern(Kind::gpt2), llama3 = pattern(Kind::llama3),
               qwen2 = pattern(Kind::qwen2), o200k = pattern(Kind::o200k),
               tekken = pattern(Kind::tekken);
    const std::string number = R"(\p{N})", numbers = R"(\p{N}+)", three = "[0-9][0-9][0-9]";
    std::vector<Way> list;
    const auto add = [&](std::vector<std::string_view> names, const Way& way) {
      for (const auto name : names) {
        list.push_back(way);
        list.back().name = name;
      }
    };
    add({"gpt-2", "phi-2", "mpt", "olmo", "jais", "trillion", "granite-docling", "gigachat",
            "jina-es", "jina-de", "jina-v2-es", "jina-v2-de", "a.x-4.0", "mellum", "modern-bert",
            "exaone4"},
        {.patterns = {gpt2}});
    add({"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b",
            "mellum2"},
        {.patterns = {number, gpt2}});
    add({"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2",
            "jina-v5-nano"},
        {.patterns = {llama3}, .whole_words = true, .begins = true});
    add({"dbrx", "smaug-bpe", "chatglm-bpe", "glm4"}, {.patterns = {llama3}});
    add({"qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2", "megrez", "stablelm2", "hunyuan",
            "solar-open"},
        {.patterns = {qwen2}});
    add({"gpt-4o", "llama4", "kanana2"}, {.patterns = {o200k}});
    add({"tekken"}, {.patterns = {tekken}, .whole_words = true, .begins = true});
    // Groups of three digits, then Chinese and Japanese, then words.
    add({"deepseek-v3", "hunyuan-dense"},
        {.patterns = {R"(\p{N}{1,3})",
             "[\xE4\xB8\x80-\xE9\xBE\xA5\xE3\x81\x80-\xE3\x82\x9F\xE3\x82\xA0-\xE3\x83\xBF]+",
             R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|)"
             R"([^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|)"
             R"(\s*[\r\n]+|\s+(?!\S)|\s+)"}});
    add({"falcon"}, {.patterns = {R"([\p{P}\$\+<=>\^~\|`]+)", gpt2, three}});
    add({"default"}, {.patterns = {R"([\p{P}\$\+<=>\^~\|]+)", gpt2, numbers, three}});
    add({"deepseek-coder"},
        {.patterns = {"[\r\n]", R"(\s?\p{L}+)", R"(\s?\p{P}+)",
             "[\xE4\xB8\x80-\xE9\xBE\xA5\xE0\xA0\x80-\xE4\xB8\x80\xEA\xB0\x80-\xED\x9F\xBF]+",
             number}});
    return list;
  }();
  return all;
}

const Way& way_of(const GgufFile& file) {
  const auto name = file.text("tokenizer.ggml.pre").value_or("default");
  if (const auto* way = core::find_by(ways(), name, &Way::name)) return *way;
  core::bad_config(
      "{}: tokenizer.ggml.pre \"{}\" is not supported", file.name(), core::printable(name));
}

// The lists of the metadata, which have equal lengths.
struct Tokens {
  std::vector<std::string_view> texts;
  std::vector<double> types;
};

Tokens tokens_of(const GgufFile& file) {
  Tokens tokens{file.texts(kTokenTexts), file.numbers(kTokenTypes)};
  if (tokens.texts.empty()) core::bad_data("{}: {} is missing", file.name(), kTokenTexts);
  if (tokens.types.empty()) tokens.types.resize(tokens.texts.size(), kNormal);
  if (tokens.types.size() != tokens.texts.size())
    core::bad_data("{}: {} tokens, but {} types in {}; one for each token is needed", file.name(),
        tokens.texts.size(), tokens.types.size(), kTokenTypes);
  return tokens;
}

bool is_added(double type) { return type == kUnknown || type == kControl || type == kUserDefined; }

OrderedJson added_token(std::size_t id, std::string_view text, bool special) {
  return {{"id", id}, {"content", text}, {"single_word", false}, {"lstrip", false},
      {"rstrip", false}, {"normalized", false}, {"special", special}};
}

OrderedJson added_tokens(const Tokens& tokens) {
  auto added = OrderedJson::array();
  for (std::size_t id = 0; id < tokens.texts.size(); ++id)
    if (is_added(tokens.types[id]) && !tokens.texts[id].empty())
      added.push_back(added_token(id, tokens.texts[id], tokens.types[id] != kUserDefined));
  return added;
}

// Maps names to ids. Added tokens after all others are not the model's, as in Hugging Face's files.
OrderedJson vocabulary_of(
    const GgufFile& file, const Tokens& tokens, bool with_unused, bool with_added) {
  std::size_t end = 0;
  for (std::size_t id = 0; id < tokens.texts.size(); ++id)
    if (with_added || !is_added(tokens.types[id]))
      if (with_unused || tokens.types[id] != kUnused) end = id + 1;
  // The object's own insertion would compare with all keys each time.
  std::unordered_map<std::string_view, std::size_t> ids;
  auto vocabulary = OrderedJson::object();
  auto& object = vocabulary.get_ref<OrderedJson::object_t&>();
  for (std::size_t id = 0; id < end; ++id) {
    if (tokens.texts[id].empty() || (!with_unused && tokens.types[id] == kUnused)) continue;
    if (const auto [at, fresh] = ids.emplace(tokens.texts[id], id); !fresh)
      core::bad_data("{}: tokens {} and {} are the same text", file.name(), at->second, id);
    object.emplace_back(std::string(tokens.texts[id]), id);
  }
  return vocabulary;
}

// Returns the template of tokens around a text.
OrderedJson template_of(const GgufFile& file, const Tokens& tokens, bool begins) {
  const auto token = [&](const char* name, bool asked) -> OrderedJson {
    const auto id = file.whole(fmt::format("tokenizer.ggml.{}_token_id", name));
    if (!asked || !id) return nullptr;
    if (*id < 0 || *id >= std::ssize(tokens.texts))
      core::bad_value(file.name(), fmt::format("tokenizer.ggml.{}_token_id", name), *id,
          fmt::format("0 to {}, its tokens", std::ssize(tokens.texts) - 1));
    return {{"id", *id}, {"text", tokens.texts[static_cast<std::size_t>(*id)]}};
  };
  const auto first = token("bos", file.truth("tokenizer.ggml.add_bos_token").value_or(begins));
  const auto last = token("eos", file.truth("tokenizer.ggml.add_eos_token").value_or(false));
  if (first.is_null() && last.is_null()) return nullptr;
  auto single = OrderedJson::array();
  auto special = OrderedJson::object();
  const auto put = [&](const OrderedJson& of) {
    if (of.is_null()) return;
    single.push_back({{"SpecialToken", {{"id", of["text"]}, {"type_id", 0}}}});
    special[of["text"].get<std::string>()] = {
        {"id", of["text"]}, {"ids", {of["id"]}}, {"tokens", {of["text"]}}};
  };
  put(first);
  single.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
  put(last);
  return {{"type", "TemplateProcessing"}, {"single", single}, {"pair", OrderedJson::array()},
      {"special_tokens", special}};
}

OrderedJson sequence(const char* list, OrderedJson steps) {
  return {{"type", "Sequence"}, {list, std::move(steps)}};
}

OrderedJson byte_level_tokenizer(const GgufFile& file) {
  const auto& way = way_of(file);
  const auto tokens = tokens_of(file);
  auto steps = OrderedJson::array();
  for (const auto& regex : way.patterns) {
    if (regex == R"(\p{N})") steps.push_back({{"type", "Digits"}, {"individual_digits", true}});
    else
      steps.push_back({{"type", "Split"}, {"pattern", {{"Regex", regex}}}, {"behavior", "Isolated"},
          {"invert", false}});
  }
  steps.push_back({{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true},
      {"use_regex", false}});
  auto merges = OrderedJson::array();
  for (const auto merge : file.texts(kMerges)) {
    const auto space = merge.find(' ', 1);
    if (space == std::string_view::npos)
      core::bad_data("{}: {}: entry {} is not two tokens separated by a space", file.name(),
          kMerges, merges.size());
    merges.push_back({merge.substr(0, space), merge.substr(space + 1)});
  }
  return {{"added_tokens", added_tokens(tokens)}, {"normalizer", nullptr},
      {"pre_tokenizer", sequence("pretokenizers", std::move(steps))},
      {"post_processor", template_of(file, tokens, way.begins)},
      {"decoder", {{"type", "ByteLevel"}}},
      {"model", {{"type", "BPE"}, {"ignore_merges", way.whole_words},
                    {"vocab", vocabulary_of(file, tokens, false, false)},
                    {"merges", std::move(merges)}}}};
}

// Returns all pairs of tokens that concatenate to a token, by the token's score, best first.
OrderedJson merges_by_score(const GgufFile& file, const Tokens& tokens) {
  const auto scores = file.numbers(kScores);
  if (scores.size() != tokens.texts.size())
    core::bad_data("{}: {} tokens, but {} scores in {}; one for each token is needed", file.name(),
        tokens.texts.size(), scores.size(), kScores);
  std::vector<bool> merged(tokens.texts.size());
  for (std::size_t id = 0; id < merged.size(); ++id)
    merged[id] = tokens.types[id] == kNormal || tokens.types[id] == kUnused;
  auto merges = OrderedJson::array();
  const std::unordered_set<std::string_view> none;
  for (const auto& [left, right] :
      text::scored_merges(tokens.texts, scores, merged, file.name(), &none))
    merges.push_back({left, right});
  return merges;
}

OrderedJson pieces_tokenizer(const GgufFile& file) {
  const auto tokens = tokens_of(file);
  const bool prefix = file.truth("tokenizer.ggml.add_space_prefix").value_or(true);
  auto normal = OrderedJson::array();
  if (prefix) normal.push_back({{"type", "Prepend"}, {"prepend", kMark}});
  normal.push_back({{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", kMark}});
  const bool bytes = std::count(tokens.types.begin(), tokens.types.end(), kByte) == 256;
  OrderedJson unknown = nullptr;
  const auto id = file.whole("tokenizer.ggml.unknown_token_id").value_or(0);
  if (id >= 0 && id < std::ssize(tokens.texts) &&
      tokens.types[static_cast<std::size_t>(id)] == kUnknown)
    unknown = tokens.texts[static_cast<std::size_t>(id)];
  return {{"added_tokens", added_tokens(tokens)},
      {"normalizer", sequence("normalizers", std::move(normal))}, {"pre_tokenizer", nullptr},
      {"post_processor", template_of(file, tokens, true)},
      {"decoder", text::pieces_decoder(prefix)},
      {"model",
          {{"type", "BPE"}, {"unk_token", unknown}, {"fuse_unk", true}, {"byte_fallback", bytes},
              {"ignore_merges", false}, {"vocab", vocabulary_of(file, tokens, true, true)},
              {"merges", merges_by_score(file, tokens)}}}};
}

}  // namespace

std::vector<std::string> gguf_splits() { return core::mapped<std::string>(ways(), &Way::name); }

core::OrderedJson gguf_special_tokens(const GgufFile& file) {
  auto special = OrderedJson::object();
  const auto tokens = file.texts(kTokenTexts);
  for (const auto& [theirs, ours] : {std::pair("bos", "bos_token"), std::pair("eos", "eos_token"),
           std::pair("unknown", "unk_token"), std::pair("padding", "pad_token")})
    if (const auto id = file.whole(fmt::format("tokenizer.ggml.{}_token_id", theirs)))
      if (*id >= 0 && *id < std::ssize(tokens))
        special[ours] = tokens[static_cast<std::size_t>(*id)];
  return special;
}

std::string gguf_tokenizer(const GgufFile& file) {
  const auto kind = file.text("tokenizer.ggml.model").value_or("none");
  if (kind == "none" || kind == "no_vocab") return {};
  if (kind == "gpt2") return core::dump(byte_level_tokenizer(file));
  if (kind == "llama") return core::dump(pieces_tokenizer(file));
  core::bad_config("{}: tokenizer.ggml.model \"{}\" is not supported (gpt2 and llama are)",
      file.name(), core::printable(kind));
}

}  // namespace model
