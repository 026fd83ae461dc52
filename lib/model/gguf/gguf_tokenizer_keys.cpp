// Converts a tokenizer.json into the metadata of a GGUF file.

#include "model/gguf/gguf_keys.h"
#include "model/gguf/gguf_tokenizer.h"
#include "text/formats/tokenizer_json.h"

namespace model {
namespace {

using core::OrderedJson;

constexpr const char* kWho = "tokenizer.json";
constexpr std::string_view kSpaceMark = "\xE2\x96\x81";
// Types of tokens.
constexpr std::int32_t kPlainToken = 1, kUnknownToken = 2, kMarkToken = 3, kOwnToken = 4,
                       kUnusedToken = 5, kByteToken = 6;

[[noreturn]] void no_form(const std::string& what) {
  core::bad_config("{}: GGUF cannot express {}", kWho, what);
}

// Returns the ids of the pieces that a tokenizer.model's user defined.
std::vector<std::size_t> symbols_in(const OrderedJson& model) {
  return model.value("/sentencepiece/symbols"_json_pointer, std::vector<std::size_t>());
}

struct Listed {
  std::vector<std::string> texts;
  std::vector<std::int32_t> types;
};

Listed listed(const OrderedJson& json, std::int64_t rows, bool of_bytes) {
  const auto n = static_cast<std::size_t>(rows);
  Listed list{std::vector<std::string>(n), std::vector<std::int32_t>(n, kUnusedToken)};
  const auto put = [&](std::size_t id, const std::string& text, std::int32_t type) {
    if (id >= n) no_form(fmt::format("token {} of a model of {} tokens", id, rows));
    list.texts[id] = text, list.types[id] = type;
  };
  const auto& model = json["model"];
  const bool fallback = model.value("byte_fallback", false);
  for (const auto& [text, id] : model["vocab"].items()) {
    const bool byte = fallback && text.size() == 6 && text.starts_with("<0x") && text.back() == '>';
    put(id.get<std::size_t>(), text, byte ? kByteToken : kPlainToken);
  }
  const auto unknown = model.contains("unk_token") && model["unk_token"].is_string()
                           ? model["unk_token"].get<std::string>()
                           : "";
  for (const auto& token : json["added_tokens"]) {
    const auto text = token["content"].get<std::string>();
    const bool mark = token["special"].get<bool>();
    put(token["id"].get<std::size_t>(), text,
        !mark                                           ? kOwnToken
        : !of_bytes && !text.empty() && text == unknown ? kUnknownToken
                                                        : kMarkToken);
  }
  for (const auto& symbol : symbols_in(model)) {
    // As llama.cpp's converter writes them: with the spaces of a text.
    auto text = list.texts.at(symbol);
    for (std::size_t at; (at = text.find(kSpaceMark)) != text.npos;)
      text.replace(at, kSpaceMark.size(), " ");
    put(symbol, text, kOwnToken);
  }
  for (std::size_t id = 0; id < n; ++id)
    if (list.types[id] == kUnusedToken && of_bytes) list.texts[id] = fmt::format("[PAD{}]", id);
  return list;
}

std::pair<std::string, std::string> sides(const OrderedJson& merge) {
  if (merge.is_array()) return {merge[0].get<std::string>(), merge[1].get<std::string>()};
  const auto text = merge.get<std::string>();
  const auto space = text.find(' ', 1);
  return {text.substr(0, space), text.substr(space + 1)};
}

// Returns the scores of tokens: minus the rank of the merge, so that the first merge has the
// highest score.
std::vector<float> scores_of(const OrderedJson& json, const Listed& list) {
  std::unordered_map<std::string, std::size_t> ranks;
  std::size_t rank = 0;
  for (const auto& merge : json["model"]["merges"]) {
    const auto [left, right] = sides(merge);
    if (ranks.emplace(left + right, rank).second) ++rank;
  }
  if (rank >= std::size_t{1} << 24) no_form("so many merges");
  std::vector<float> scores(list.texts.size());
  for (std::size_t id = 0; id < scores.size(); ++id) {
    if (list.types[id] != kPlainToken) continue;
    const auto found = ranks.find(list.texts[id]);
    scores[id] = -static_cast<float>(found == ranks.end() ? rank : found->second);
  }
  return scores;
}

GgufMetadata with_split(GgufMetadata keys, const std::string& name) {
  keys.emplace_back("tokenizer.ggml.pre", name);
  return keys;
}

text::TokenizerPtr read_again(const GgufMetadata& keys) {
  core::MemorySink sink;
  write_gguf(sink, keys, {}, nullptr);
  const GgufFile file(sink.bytes, kWho);
  return text::parse_tokenizer(gguf_tokenizer(file), kWho);
}

// Returns whether the merges build each token from its characters. If they do, it does not matter
// whether a piece that is a token is merged.
bool merges_make_all(const OrderedJson& json) {
  std::unordered_map<std::string, std::size_t> ranks;  // "left right": a name has no space
  for (const auto& merge : json["model"]["merges"]) {
    const auto [left, right] = sides(merge);
    ranks.emplace(left + ' ' + right, ranks.size());
  }
  std::set<std::string> added;
  for (const auto& token : json["added_tokens"]) added.insert(token["content"].get<std::string>());
  for (const auto& item : json["model"]["vocab"].items()) {
    if (added.count(item.key()) > 0) continue;
    std::vector<std::string> parts;
    for (const char byte : item.key()) {
      const bool inside = (static_cast<unsigned char>(byte) & 0xC0U) == 0x80;
      if (inside && !parts.empty()) parts.back() += byte;
      else parts.emplace_back(1, byte);
    }
    while (parts.size() > 1) {
      std::size_t best = ranks.size(), at = 0;
      for (std::size_t i = 0; i + 1 < parts.size(); ++i)
        if (const auto found = ranks.find(parts[i] + ' ' + parts[i + 1]);
            found != ranks.end() && found->second < best)
          best = found->second, at = i;
      if (best == ranks.size()) return false;
      parts[at] += parts[at + 1];
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    }
  }
  return true;
}

// Returns llama.cpp's name for the method that splits the text, or an empty string.
std::string split_of(const OrderedJson& json) {
  const auto parts = [](const OrderedJson& of) {
    return std::pair(of["pre_tokenizer"].dump(), of["model"].value("ignore_merges", false));
  };
  const auto asked = parts(json);
  std::string alike;  // differs only in whether a piece that is a token is merged
  for (const auto& name : gguf_splits()) {
    // The vocabulary has a merge, because no split is written if nothing is merged.
    const auto tried =
        with_split({{"tokenizer.ggml.model", std::string("gpt2")},
                       {"tokenizer.ggml.tokens", std::vector<std::string>{"a", "b", "ab"}},
                       {"tokenizer.ggml.merges", std::vector<std::string>{"a b"}}},
            name);
    const auto found = parts(OrderedJson::parse(read_again(tried)->json()));
    if (found == asked) return name;
    if (alike.empty() && found.first == asked.first) alike = name;
  }
  return !alike.empty() && merges_make_all(json) ? alike : "";
}

// Texts on which two splitting methods differ: spaces, numbers, letters of many scripts, signs.
constexpr std::string_view kTestTexts[] = {
    "Hello, world! It's 12345 o'clock; they'll've WON'T I'd.",
    " leading  and   many    spaces \t tabs\n\n\nlines \r\n end ",
    "def f(x):\n    return x**2 + 3.14e-10 != 0x1F  # why?\n",
    "Ærøskøbing 你好,世界 こんにちは 한국어 Привет мир Ελλάδα עברית العربية हिन्दी ไทย",
    "🙂👨‍👩‍👧‍👦 e\xCC\x81 \xC2\xA0 \xE2\x80\x83 ½ Ⅷ ٣٤٥ ﬁ",
    "http://a.b/c?d=e&f=100%25 <tag attr=\"v\"/> {\"k\": [1,22,333,4444]} \\n",
    "a\x01"
    "b\x7F c",
    "x", " ", "\n", ""};

void expect_equal(const text::Tokenizer& own, const OrderedJson& json, const GgufMetadata& keys,
    std::string& why) {
  const auto again = read_again(keys);
  const auto other = OrderedJson::parse(again->json());
  const auto same = [&](const char* key) { return json["model"][key] == other["model"][key]; };
  why.clear();
  if (!same("merges")) why = "its merges";
  for (const auto& [text, id] : json["model"]["vocab"].items())
    if (const auto one = id.get<std::uint32_t>();
        again->token(one) != own.token(one) &&
        again->decode({&one, 1}, false) != own.decode({&one, 1}, false))
      why = "its token " + text;
  for (const auto& token : json["added_tokens"]) {
    const auto id = token["id"].get<std::uint32_t>();
    if (again->token(id) != own.token(id)) why = "its token " + token["content"].get<std::string>();
  }
  for (const auto text : kTestTexts)
    if (why.empty() && again->encode(text) != own.encode(text))
      why = "the splitting of " + core::dump(core::Json(text));
  if (why.empty() && (again->text_template().begin != own.text_template().begin ||
                         again->text_template().end != own.text_template().end))
    why = "the tokens around a text";
}

// Says whether llama.cpp gives other ids beside user-defined pieces, which it finds in the text
// before it adds spaces.
std::string symbol_note(
    const text::Tokenizer& own, const OrderedJson& json, const GgufMetadata& keys) {
  const auto again = read_again(keys);
  for (const auto id : symbols_in(json["model"])) {
    const std::string symbol(own.token(static_cast<std::uint32_t>(id)));
    const auto text = symbol + "a " + symbol + "a";
    if (again->encode(text) != own.encode(text))
      return "llama.cpp has other spaces beside the user-defined token " + symbol;
  }
  return {};
}

// Writes the ids of the tokens that end a text: first the template's token, then the others.
// llama.cpp has keys for three.
void put_ids(
    const text::Tokenizer& own, const GgufIds& ids, GgufMetadata& keys, std::string& remark) {
  const auto& around = own.text_template();
  const auto put = [&](const char* name, std::int64_t id) {
    if (id >= 0)
      keys.emplace_back(
          fmt::format("tokenizer.ggml.{}_token_id", name), static_cast<std::uint32_t>(id));
  };
  if (around.begin.size() > 1 || around.end.size() > 1) no_form("several tokens around a text");
  put("bos", around.begin.empty() ? ids.begin : around.begin[0]);
  const auto first = !around.end.empty() ? std::int64_t{around.end[0]}
                     : ids.ends.empty()  ? -1
                                         : ids.ends[0];
  put("eos", first);
  auto rest = ids.ends;
  std::erase(rest, first);
  if (!rest.empty()) put("eot", rest[0]);
  if (rest.size() > 1) put("eom", rest[1]);
  if (rest.size() > 2)
    remark = fmt::format("left out {} of the {} end-of-text tokens, since GGUF has no key for them",
        rest.size() - 2, rest.size() + 1);
  put("padding", ids.padding);
  keys.emplace_back("tokenizer.ggml.add_bos_token", !around.begin.empty());
  keys.emplace_back("tokenizer.ggml.add_eos_token", !around.end.empty());
}

}  // namespace

GgufMetadata gguf_tokenizer_keys(
    const std::string& text, std::int64_t rows, const GgufIds& ids, std::string& remark) {
  const auto own = text::parse_tokenizer(text, kWho);
  const auto json = OrderedJson::parse(own->json());
  const auto kind = own->kind();
  const bool of_bytes = kind == text::TokenizerKind::bpe || kind == text::TokenizerKind::bytes;
  if (!of_bytes && kind != text::TokenizerKind::pieces)
    no_form(fmt::format("a tokenizer of {}", text::name_of(kind)));
  const auto list = listed(json, rows, of_bytes);
  GgufMetadata keys = {{"tokenizer.ggml.model", std::string(of_bytes ? "gpt2" : "llama")},
      {"tokenizer.ggml.tokens", list.texts}, {"tokenizer.ggml.token_type", list.types}};
  put_ids(*own, ids, keys, remark);
  auto compared = own;
  std::string why;
  if (of_bytes) {
    std::vector<std::string> merges;
    for (const auto& merge : json["model"]["merges"]) {
      const auto [left, right] = sides(merge);
      merges.push_back(left + ' ' + right);
    }
    keys.emplace_back("tokenizer.ggml.merges", merges);
    const auto split = merges.empty() ? "gpt-2" : split_of(json);
    if (split.empty())
      no_form(
          fmt::format("the splitting of texts: llama.cpp has no name for the pre-tokenizer {}{}",
              json["pre_tokenizer"].dump(),
              json["model"].value("ignore_merges", false) ? " with ignore_merges" : ""));
    keys = with_split(std::move(keys), split);
    if (!json["normalizer"].is_null()) {
      auto bare = json;
      bare["normalizer"] = nullptr;
      compared = text::parse_tokenizer(bare.dump(), kWho);
      remark += remark.empty() ? "" : "; ";
      remark += "left out the tokenizer's normalizer, which GGUF cannot express";
    }
    expect_equal(*compared, json, keys, why);
  } else {
    keys.emplace_back("tokenizer.ggml.scores", scores_of(json, list));
    for (std::size_t id = 0; id < list.types.size(); ++id)
      if (list.types[id] == kUnknownToken)
        keys.emplace_back("tokenizer.ggml.unknown_token_id", static_cast<std::uint32_t>(id));
    for (const bool prefix : {true, false}) {
      auto tried = keys;
      tried.emplace_back("tokenizer.ggml.add_space_prefix", prefix);
      expect_equal(*compared, json, tried, why);
      if (!why.empty()) continue;
      const auto note = symbol_note(*own, json, tried);
      remark += (remark.empty() || note.empty() ? "" : "; ") + note;
      return tried;
    }
  }
  if (!why.empty()) no_form(why);
  return keys;
}

}  // namespace model
