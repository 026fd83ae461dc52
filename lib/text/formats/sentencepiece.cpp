#include "text/formats/sentencepiece.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/error.h"
#include "core/json.h"
#include "core/plain_text.h"
#include "text/formats/scored_merges.h"
#include "text/tokenizer/base64.h"
#include "text/tokenizer/normalizer.h"

namespace text {
namespace {

using core::Code;
using core::fail;
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
  fail(Code::bad_data, "{}: not a tokenizer.model of sentencepiece, or damaged: {}", origin, what);
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
      case 0:
        number_ = varint();
        break;
      case 1:
        bytes_ = take(8);
        break;
      case 2:
        bytes_ = take(varint());
        break;
      case 5:
        bytes_ = take(4);
        break;
      default:
        damaged(origin_, "a field of an unknown wire type");
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
  std::string begin = "<s>", end = "</s>";
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
    fail(Code::bad_data, "{}: a sentencepiece model of {}, which is not supported", origin, what);
  };
  if (model.kind == kWordModel) refuse("words (model_type WORD)");
  if (model.kind == kCharModel) refuse("characters (model_type CHAR)");
  if (model.kind != kUnigramModel && model.kind != kBpeModel) refuse("an unknown model_type");
  if (model.suffix) refuse("spaces behind words (treat_whitespace_as_suffix)");
  if (!model.escape) refuse("spaces that stay spaces (escape_whitespaces false)");
  const auto bytes = std::count(model.types.begin(), model.types.end(), kBytePiece);
  if (model.byte_fallback ? bytes != 256 : bytes != 0)
    damaged(origin, "not the 256 bytes of byte_fallback");
}

OrderedJson added_token(std::uint64_t id, std::string_view text, bool special) {
  return {{"id", id},        {"content", text},     {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", special}};
}

OrderedJson added_tokens(const PieceModel& model, const SentencepieceAround& around) {
  std::map<std::uint64_t, OrderedJson> added;
  for (std::size_t id = 0; id < model.texts.size(); ++id)
    if (const auto type = model.types[id];
        type == kUnknownPiece || type == kControlPiece || type == kOwnPiece)
      added[id] = added_token(id, model.texts[id], type != kOwnPiece);
  for (const auto& [id, token] : around.added)
    added[id] = added_token(id, token.first, token.second);
  auto list = OrderedJson::array();
  for (auto& [id, token] : added) list.push_back(std::move(token));
  return list;
}

OrderedJson normalizer_of(const PieceModel& model) {
  auto steps = OrderedJson::array();
  if (!model.charsmap.empty())
    steps.push_back({{"type", "Precompiled"}, {"precompiled_charsmap", to_base64(model.charsmap)}});
  if (model.squeeze) {
    for (const auto& [regex, content] : {std::pair(kTrimmed, ""), std::pair(kSqueezed, " ")})
      steps.push_back({{"type", "Replace"}, {"pattern", {{"Regex", regex}}}, {"content", content}});
  }
  if (model.prefix) steps.push_back({{"type", "Prepend"}, {"prepend", kSpaceMark}});
  steps.push_back({{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", kSpaceMark}});
  return {{"type", "Sequence"}, {"normalizers", std::move(steps)}};
}

OrderedJson decoder_of(const PieceModel& model) {
  auto steps = OrderedJson::array();
  steps.push_back({{"type", "Replace"}, {"pattern", {{"String", kSpaceMark}}}, {"content", " "}});
  steps.push_back({{"type", "ByteFallback"}});
  steps.push_back({{"type", "Fuse"}});
  if (model.prefix)
    steps.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  return {{"type", "Sequence"}, {"decoders", std::move(steps)}};
}

OrderedJson template_of(const PieceModel& model, const SentencepieceAround& around,
                        const std::string& origin) {
  if (!around.begin && !around.end) return nullptr;
  auto single = OrderedJson::array(), special = OrderedJson::object();
  const auto put = [&](bool asked, const std::string& token) {
    if (!asked) return;
    const auto found = std::find(model.texts.begin(), model.texts.end(), token);
    if (found == model.texts.end())
      fail(Code::bad_data, "{}: has no piece {}, which should surround a text", origin, token);
    single.push_back({{"SpecialToken", {{"id", token}, {"type_id", 0}}}});
    special[token] = {{"id", token}, {"ids", {found - model.texts.begin()}}, {"tokens", {token}}};
  };
  put(around.begin, model.begin);
  single.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
  put(around.end, model.end);
  return {{"type", "TemplateProcessing"},
          {"single", single},
          {"pair", OrderedJson::array()},
          {"special_tokens", special}};
}

OrderedJson bpe_of(const PieceModel& model, const OrderedJson& unknown, const std::string& origin) {
  std::unordered_map<std::string_view, std::size_t> ids;
  auto vocabulary = OrderedJson::object();
  // Avoid the object's own insertion, which compares all keys each time.
  auto& object = vocabulary.get_ref<OrderedJson::object_t&>();
  std::vector<bool> merged(model.texts.size());
  for (std::size_t id = 0; id < model.texts.size(); ++id) {
    if (!ids.emplace(model.texts[id], id).second) damaged(origin, "the same piece twice");
    object.emplace_back(std::string(model.texts[id]), id);
    merged[id] = model.types[id] == kNormalPiece || model.types[id] == kUnusedPiece;
  }
  auto merges = OrderedJson::array();
  for (const auto& [left, right] : scored_merges(model.texts, model.scores, merged, origin)) {
    if (model.types[ids.at(std::string(left).append(right))] == kUnusedPiece)
      fail(Code::bad_data, "{}: unused pieces of a BPE that merges make are not supported", origin);
    merges.push_back({left, right});
  }
  return {{"type", "BPE"},
          {"unk_token", unknown},
          {"fuse_unk", true},
          {"byte_fallback", model.byte_fallback},
          {"ignore_merges", false},
          {"vocab", std::move(vocabulary)},
          {"merges", std::move(merges)}};
}

OrderedJson unigram_of(const PieceModel& model, std::size_t unknown) {
  auto vocabulary = OrderedJson::array();
  for (std::size_t id = 0; id < model.texts.size(); ++id)
    vocabulary.push_back({model.texts[id], model.scores[id]});
  return {{"type", "Unigram"},
          {"unk_id", unknown},
          {"vocab", std::move(vocabulary)},
          {"byte_fallback", model.byte_fallback}};
}

}  // namespace

std::string sentencepiece_json(std::string_view bytes, const std::string& origin,
                               const SentencepieceAround& around) {
  const PieceModel model = read_model(bytes, origin);
  expect_supported(model, origin);
  const auto unknown = std::find(model.types.begin(), model.types.end(), kUnknownPiece);
  if (unknown == model.types.end()) damaged(origin, "no unknown piece");
  const auto id = static_cast<std::size_t>(unknown - model.types.begin());
  for (const auto& [added, token] : around.added)
    if (added < model.texts.size() && model.texts[added] != token.first)
      fail(Code::bad_data, "{}: piece {} is {}, not {}", origin, added, model.texts[added],
           token.first);
  return core::dump(
      core::OrderedJson{{"added_tokens", added_tokens(model, around)},
                        {"normalizer", normalizer_of(model)},
                        {"pre_tokenizer", nullptr},
                        {"post_processor", template_of(model, around, origin)},
                        {"decoder", decoder_of(model)},
                        {"model", model.kind == kBpeModel ? bpe_of(model, model.texts[id], origin)
                                                          : unigram_of(model, id)}});
}

}  // namespace text
