#include "text/formats/sentencepiece.h"

#include "core/plain_text.h"
#include "text/tokenizer/byte_level.h"
#include "text/tokenizer/piece_text.h"

namespace text {
namespace {

using core::OrderedJson;

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";
constexpr std::size_t kMostPieces = std::size_t{1} << 24;

enum PieceType : std::uint64_t {
  kNormalPiece = 1,
  kUnknownPiece,
  kControlPiece,
  kOwnPiece,
  kUnusedPiece,
  kBytePiece
};
enum ModelType : std::uint64_t { kUnigramModel = 1, kBpeModel, kWordModel, kCharModel };

[[noreturn]] void damaged(const std::string& origin, const char* what) {
  core::bad_data("{}: not a tokenizer.model of sentencepiece, or damaged: {}", origin, what);
}

// Iterates over the fields of a protobuf message.
class ProtoFields {
 public:
  ProtoFields(std::string_view bytes, const std::string& origin) : rest_(bytes), origin_(origin) {}

  // Reads the next field into the value below that fits; returns false at the end.
  bool next() {
    if (rest_.empty()) return false;
    const auto tag = varint();
    field_ = tag >> 3;
    switch (tag & 7) {
      case 0: number_ = varint(); break;
      case 1: bytes_ = take(8); break;
      case 2: bytes_ = take(varint()); break;
      case 5: bytes_ = take(4); break;
      default: damaged(origin_, "a field of an unknown wire type");
    }
    wire_ = tag & 7;
    if (field_ == 0) damaged(origin_, "a field without a number");
    return true;
  }
  std::uint64_t field() const { return field_; }
  std::uint64_t number() const {
    if (wire_ != 0) damaged(origin_, "a number of another wire type");
    return number_;
  }
  std::string_view bytes() const {
    if (wire_ != 2) damaged(origin_, "bytes of another wire type");
    return bytes_;
  }
  float real() const {
    if (wire_ != 5) damaged(origin_, "a score of another wire type");
    float value = 0;
    std::memcpy(&value, bytes_.data(), sizeof value);
    return value;
  }

 private:
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) break;
      const auto byte = static_cast<unsigned char>(rest_[0]);
      rest_.remove_prefix(1);
      value |= static_cast<std::uint64_t>(byte & 127) << shift;
      if (byte < 128) return value;
    }
    damaged(origin_, "a number that does not end");
  }
  std::string_view take(std::uint64_t n) {
    if (n > rest_.size()) damaged(origin_, "cut short");
    const auto taken = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return taken;
  }

  std::string_view rest_, bytes_;
  const std::string& origin_;
  std::uint64_t field_ = 0, wire_ = 0, number_ = 0;
};

struct PieceModel {
  std::vector<std::string_view> texts;
  std::vector<double> scores;
  std::vector<std::uint64_t> types;
  std::uint64_t kind = kUnigramModel;
  bool byte_fallback = false, suffix = false;
  bool prefix = true, squeeze = true, escape = true;
  std::string_view charsmap;
  std::string begin = "<s>", end = "</s>", unknown = " \u2047 ";

  bool merges(std::size_t id) const {
    return types[id] == kNormalPiece || types[id] == kUnusedPiece;
  }
  std::vector<AddedToken> symbols() const {
    std::vector<AddedToken> list;
    for (std::size_t id = 0; id < texts.size(); ++id)
      if (types[id] == kOwnPiece)
        list.push_back({.id = static_cast<std::uint32_t>(id), .content = std::string(texts[id])});
    return list;
  }
};

void read_piece(std::string_view bytes, const std::string& origin, PieceModel& model) {
  std::string_view text;
  double score = 0;
  std::uint64_t type = kNormalPiece;
  for (ProtoFields fields(bytes, origin); fields.next();) {
    if (fields.field() == 1) text = fields.bytes();
    if (fields.field() == 2) score = fields.real();
    if (fields.field() == 3) type = fields.number();
  }
  if (text.empty()) damaged(origin, "a piece without text");
  if (core::utf8_length(text) != text.size()) damaged(origin, "a piece that is not UTF-8");
  if (type < kNormalPiece || type > kBytePiece) damaged(origin, "a piece of an unknown type");
  if (!std::isfinite(score)) damaged(origin, "a score that is not a number");
  if (model.texts.size() == kMostPieces) damaged(origin, "too many pieces");
  model.texts.push_back(text), model.scores.push_back(score), model.types.push_back(type);
}

PieceModel read_model(std::string_view bytes, const std::string& origin) {
  PieceModel model;
  for (ProtoFields fields(bytes, origin); fields.next();) {
    if (fields.field() == 1) read_piece(fields.bytes(), origin, model);
    if (fields.field() == 2) {
      for (ProtoFields trained(fields.bytes(), origin); trained.next();) {
        if (trained.field() == 3) model.kind = trained.number();
        if (trained.field() == 24) model.suffix = trained.number() != 0;
        if (trained.field() == 35) model.byte_fallback = trained.number() != 0;
        if (trained.field() == 44) model.unknown = std::string(trained.bytes());
        if (trained.field() == 46) model.begin = std::string(trained.bytes());
        if (trained.field() == 47) model.end = std::string(trained.bytes());
      }
    }
    if (fields.field() == 3) {
      for (ProtoFields normal(fields.bytes(), origin); normal.next();) {
        if (normal.field() == 2) model.charsmap = normal.bytes();
        if (normal.field() == 3) model.prefix = normal.number() != 0;
        if (normal.field() == 4) model.squeeze = normal.number() != 0;
        if (normal.field() == 5) model.escape = normal.number() != 0;
      }
    }
  }
  if (model.texts.empty()) damaged(origin, "it has no pieces");
  return model;
}

void expect_supported(const PieceModel& model, const std::string& origin) {
  const auto refuse = [&](const char* what) {
    core::bad_data("{}: a sentencepiece model of {}, which is not supported", origin, what);
  };
  if (model.kind == kWordModel) refuse("words (model_type WORD)");
  if (model.kind == kCharModel) refuse("characters (model_type CHAR)");
  if (model.kind != kUnigramModel && model.kind != kBpeModel) refuse("an unknown model_type");
  if (model.suffix) refuse("spaces behind words (treat_whitespace_as_suffix)");
  if (!model.escape) refuse("spaces that stay spaces (escape_whitespaces false)");
  const auto bytes = std::ranges::count(model.types, kBytePiece);
  if (model.byte_fallback ? bytes != 256 : bytes != 0)
    damaged(origin, "not the 256 bytes of byte_fallback");
}

OrderedJson added_tokens(const PieceModel& model, const SentencepieceAround& around) {
  std::map<std::uint32_t, AddedToken> added;
  std::unordered_map<std::string_view, std::uint32_t> ids;
  const auto is_role = [&](std::string_view s) { return around.roles.count(std::string(s)) > 0; };
  for (std::uint32_t id = 0; id < model.texts.size(); ++id) {
    const auto content = model.texts[id];
    const auto type = model.types[id];
    const bool own = type == kControlPiece || (type == kOwnPiece && around.llama);
    ids.emplace(content, id);
    if (type == kUnknownPiece || (own && !around.list) || is_role(content))
      added[id] = {id, std::string(content), type != kOwnPiece || is_role(content)};
  }
  for (const auto& [id, token] : around.added) {
    ids.emplace(token.content, id);
    added[id] = token;
    // The prefix would also become a part of a normalised token.
    added[id].normalized = token.normalized && (around.llama || !model.prefix);
    added[id].special = token.special || is_role(token.content);
  }
  for (const auto& token : around.list.value_or(std::vector<AddedToken>())) {
    const auto next =
        std::max(static_cast<std::uint32_t>(model.texts.size()), 1 + added.rbegin()->first);
    added.try_emplace(ids.try_emplace(token.content, next).first->second, token);
  }
  auto list = OrderedJson::array();
  for (const auto& [id, token] : added)
    list.push_back({{"id", id}, {"content", token.content}, {"single_word", token.single_word},
        {"lstrip", token.lstrip}, {"rstrip", token.rstrip}, {"normalized", token.normalized},
        {"special", token.special}});
  return list;
}

OrderedJson normalizer_of(const PieceModel& model, const SentencepieceAround& around) {
  if (around.llama) return nullptr;
  auto steps = OrderedJson::array();
  if (!model.charsmap.empty())
    steps.push_back({{"type", "Precompiled"}, {"precompiled_charsmap", to_base64(model.charsmap)}});
  if (model.squeeze) {
    for (const auto& [regex, content] : {std::pair(kTrimmed, ""), std::pair(kSqueezed, " ")})
      steps.push_back({{"type", "Replace"}, {"pattern", {{"Regex", regex}}}, {"content", content}});
  }
  if (model.prefix && around.legacy)
    steps.push_back({{"type", "Prepend"}, {"prepend", kSpaceMark}});
  steps.push_back({{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", kSpaceMark}});
  return {{"type", "Sequence"}, {"normalizers", std::move(steps)}};
}

OrderedJson split_of(const PieceModel& model, const SentencepieceAround& around) {
  auto steps = OrderedJson::array();
  if (around.llama || (model.prefix && !around.legacy))
    steps.push_back({{"type", "Metaspace"}, {"replacement", kSpaceMark},
        {"prepend_scheme", !around.prefix  ? "never"
                           : around.legacy ? "always"
                                           : "first"},
        {"split", false}});
  const auto pattern = around.llama || model.kind != kBpeModel ? "" : pattern_of(model.symbols());
  if (!pattern.empty())
    steps.push_back({{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"},
        {"invert", false}});
  if (steps.empty()) return nullptr;
  return {{"type", "Sequence"}, {"pretokenizers", std::move(steps)}};
}

OrderedJson rules_of(const PieceModel& model) {
  auto symbols = OrderedJson::array(), unused = OrderedJson::array();
  for (std::size_t id = 0; id < model.texts.size(); ++id) {
    if (model.types[id] == kOwnPiece) symbols.push_back(id);
    if (model.types[id] == kUnusedPiece && model.kind == kUnigramModel) unused.push_back(id);
  }
  return {{"symbols", symbols}, {"tied", OrderedJson::array()}, {"unknown", model.unknown},
      {"unused", unused}};
}

OrderedJson template_of(
    const PieceModel& model, const SentencepieceAround& around, const std::string& origin) {
  if (!around.begin && !around.end) return nullptr;
  auto single = OrderedJson::array(), special = OrderedJson::object();
  const auto put = [&](bool asked, const std::string& token) {
    if (!asked) return;
    const auto found = std::ranges::find(model.texts, token);
    if (found == model.texts.end())
      core::bad_data("{}: has no piece {}, which should surround a text", origin, token);
    single.push_back({{"SpecialToken", {{"id", token}, {"type_id", 0}}}});
    special[token] = {{"id", token}, {"ids", {found - model.texts.begin()}}, {"tokens", {token}}};
  };
  put(around.begin, model.begin);
  single.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
  put(around.end, model.end);
  return {{"type", "TemplateProcessing"}, {"single", single}, {"pair", OrderedJson::array()},
      {"special_tokens", special}};
}

OrderedJson vocabulary_of(const PieceModel& model, const std::string& origin) {
  std::unordered_set<std::string_view> seen;
  auto vocabulary = OrderedJson::object();
  // Avoid the object's own insertion, which compares all keys each time.
  auto& object = vocabulary.get_ref<OrderedJson::object_t&>();
  for (std::size_t id = 0; id < model.texts.size(); ++id) {
    if (!seen.insert(model.texts[id]).second) damaged(origin, "the same piece twice");
    object.emplace_back(std::string(model.texts[id]), id);
  }
  return vocabulary;
}

// Appends the merges, and the results that have the score of the result before them.
void append_merges(const PieceModel& model, bool llama, const std::string& origin,
    OrderedJson& merges, OrderedJson& tied) {
  auto texts = model.texts;
  auto scores = model.scores;
  std::vector<bool> merged(texts.size());
  std::unordered_map<std::string_view, std::size_t> ids;
  std::unordered_set<std::string_view> own;
  for (std::size_t id = 0; id < texts.size(); ++id) {
    merged[id] = model.merges(id) || (llama && texts[id].size() <= kLongestScored);
    if (llama) scores[id] = -static_cast<double>(id);
    if (model.types[id] == kOwnPiece) own.insert(texts[id]);
    if (!llama && !merged[id]) texts[id] = {};  // no part of a merge either
    ids.emplace(texts[id], id);
  }
  std::optional<std::size_t> before;
  for (const auto& [left, right] :
      scored_merges(texts, scores, merged, origin, llama ? nullptr : &own)) {
    const auto id = ids.at(std::string(left).append(right));
    if (!llama && model.types[id] == kUnusedPiece)
      core::bad_data("{}: unused pieces of a BPE that merges make are not supported", origin);
    merges.push_back({left, right});
    if (before && id != *before && scores[id] == scores[*before]) tied.push_back(id);
    before = id;
  }
}

OrderedJson bpe_of(
    const PieceModel& model, const OrderedJson& unknown, bool llama, const std::string& origin) {
  OrderedJson bpe = {{"type", "BPE"}, {"unk_token", llama ? OrderedJson(nullptr) : unknown},
      {"fuse_unk", true}, {"byte_fallback", model.byte_fallback}, {"ignore_merges", false},
      {"vocab", vocabulary_of(model, origin)}, {"merges", OrderedJson::array()}};
  auto rules = rules_of(model);
  append_merges(model, llama, origin, bpe["merges"], rules["tied"]);
  if (!llama) bpe["sentencepiece"] = std::move(rules);
  return bpe;
}

OrderedJson unigram_of(const PieceModel& model, std::size_t unknown) {
  auto vocabulary = OrderedJson::array();
  for (std::size_t id = 0; id < model.texts.size(); ++id) {
    // A symbol has a gain, so that other pieces almost never replace it.
    const auto bytes = static_cast<double>(model.texts[id].size());
    const bool symbol = model.types[id] == kOwnPiece;
    vocabulary.push_back(
        {model.texts[id], symbol ? static_cast<float>(0.1 * bytes - 0.1) : model.scores[id]});
  }
  return {{"type", "Unigram"}, {"unk_id", unknown}, {"vocab", std::move(vocabulary)},
      {"byte_fallback", model.byte_fallback}, {"sentencepiece", rules_of(model)}};
}

}  // namespace

OrderedJson pieces_decoder(bool prefix) {
  auto steps = OrderedJson::array();
  steps.push_back({{"type", "Replace"}, {"pattern", {{"String", kSpaceMark}}}, {"content", " "}});
  steps.push_back({{"type", "ByteFallback"}});
  steps.push_back({{"type", "Fuse"}});
  if (prefix) steps.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  return {{"type", "Sequence"}, {"decoders", std::move(steps)}};
}

std::string sentencepiece_json(
    std::string_view bytes, const std::string& origin, const SentencepieceAround& folder) {
  const PieceModel model = read_model(bytes, origin);
  expect_supported(model, origin);
  auto around = folder;
  around.llama = folder.llama && model.kind == kBpeModel;
  if (!around.llama) around.roles.clear(), around.list.reset();
  const auto unknown = std::ranges::find(model.types, kUnknownPiece);
  if (unknown == model.types.end()) damaged(origin, "no unknown piece");
  const auto id = static_cast<std::size_t>(unknown - model.types.begin());
  for (const auto& [added, token] : around.added)
    if (added < model.texts.size() && model.texts[added] != token.content)
      core::bad_data(
          "{}: piece {} is {}, not {}", origin, added, model.texts[added], token.content);
  return core::dump(core::OrderedJson{{"added_tokens", added_tokens(model, around)},
      {"normalizer", normalizer_of(model, around)}, {"pre_tokenizer", split_of(model, around)},
      {"post_processor", template_of(model, around, origin)},
      {"decoder", pieces_decoder(around.llama ? around.prefix : model.prefix)},
      {"model", model.kind == kBpeModel ? bpe_of(model, model.texts[id], around.llama, origin)
                                        : unigram_of(model, id)}});
}

std::vector<std::pair<std::string_view, std::string_view>> scored_merges(
    const std::vector<std::string_view>& tokens, const std::vector<double>& scores,
    const std::vector<bool>& merges, const std::string& origin,
    const std::unordered_set<std::string_view>* unmerged) {
  const std::unordered_set<std::string_view> known(tokens.begin(), tokens.end());
  std::vector<std::size_t> order;
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    if (std::isnan(scores[id]))
      core::bad_data("{}: the score of token {} is not a number", origin, id);
    if (!merges[id]) continue;
    if (tokens[id].size() > kLongestScored)
      core::bad_data("{}: token {} of {} bytes is not supported (of {} it is)", origin, id,
          tokens[id].size(), kLongestScored);
    order.push_back(id);
  }
  std::ranges::stable_sort(
      order, [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  std::vector<std::pair<std::string_view, std::string_view>> all;
  const std::size_t most = kPairsOfToken * tokens.size() + kMorePairs;
  for (const auto id : order) {
    const auto whole = tokens[id];
    for (std::size_t cut = 1; cut < whole.size(); ++cut) {
      if ((static_cast<unsigned char>(whole[cut]) & 0xC0) == 0x80) continue;  // inside a character
      const auto left = whole.substr(0, cut), right = whole.substr(cut);
      const auto part = [&](std::string_view half) {
        const bool one = core::character_length(half) == half.size();
        return known.count(half) > 0 || (unmerged != nullptr && one && unmerged->count(half) == 0);
      };
      if (!part(left) || !part(right)) continue;
      if (known.count(left) == 0 || known.count(right) == 0)
        core::bad_data(
            "{}: token {} is made of a character that is not a token, which is not supported; use "
            "the model's tokenizer.json",
            origin, id);
      all.emplace_back(left, right);
    }
    if (all.size() > most)
      core::bad_data(
          "{}: its {} tokens are made of two others in more than {} ways, which is not "
          "supported (of {} a token and {} it is); use the model's tokenizer.json",
          origin, tokens.size(), most, kPairsOfToken, kMorePairs);
  }
  return all;
}

}  // namespace text
