#include "text/formats/tokenizer_json.h"

#include "core/io.h"
#include "core/json_line.h"
#include "core/plain_text.h"
#include "text/formats/import.h"
#include "text/formats/json_parts.h"
#include "text/tokenizer/byte_level.h"
#include "text/tokenizer/unigram.h"
#include "text/tokenizer/word_level.h"

namespace text {
namespace {

using simdjson::dom::element;

using NewTokenizer = std::shared_ptr<Tokenizer>;

constexpr std::size_t kMaxDepth = 64;
// Returns the special ones among the added tokens.
std::vector<SpecialToken> special_of(const std::vector<AddedToken>& added) {
  std::vector<SpecialToken> special;
  for (const AddedToken& token : added)
    if (token.special) special.push_back({token.id, token.content});
  return special;
}

// Returns the added tokens that a text may contain; nothing if all are special with default rules.
std::vector<AddedToken> found_in_text(std::vector<AddedToken> added) {
  const bool any = std::ranges::any_of(added, [](auto& token) {
    return !token.special || token.lstrip || token.rstrip || token.single_word;
  });
  return any ? std::move(added) : std::vector<AddedToken>{};
}

// Describes an added token that tokenizers would give another id: they number added tokens from the
// vocabulary's size on.
std::string remark_on_gaps(const std::vector<AddedToken>& added, std::size_t names) {
  std::size_t next = names;
  for (const AddedToken& token : added) {
    if (!token.in_model && token.id != next) {
      const bool is_short = token.content.size() <= 40;
      return fmt::format(
          "added token {}has id {} as in the file; Hugging Face's tokenizers would give it {}",
          is_short ? token.content + " " : "", token.id, next);
    }
    next = std::max<std::size_t>(next, token.id + std::size_t{1});
  }
  return "";
}

// A name that is the token itself.
constexpr auto as_is = [](std::string_view name) { return std::string(name); };

// Converts the model's names to tokens by `convert(name)` and adds the added tokens.
template <class Convert>
Vocabulary read_vocabulary(const TokenizerJson& file, element model, std::vector<AddedToken>& added,
    std::string& remark, Convert convert) {
  const auto found = file.find(model, "vocab");
  simdjson::dom::object names;
  if (!found || found->get(names) != simdjson::SUCCESS) file.refuse("no object \"vocab\"");
  Vocabulary vocabulary;
  const bool whole_words = file.flag(model, "ignore_merges", false) || !file.find(model, "merges");
  std::size_t n = added.size();
  for ([[maybe_unused]] const auto& entry : names) ++n;
  if (n == 0) file.refuse("an empty vocabulary");
  vocabulary.reserve(n, 0);
  const auto put = [&](std::uint32_t id, std::string_view token) {
    // Gaps are for removed tokens, not for absurd ids.
    if (id > 2 * n + 65536) file.refuse("id {} in a vocabulary of {} tokens", id, n);
    if (!vocabulary.set(id, token)) file.refuse("id {} or its token occurs twice", id);
  };
  for (const auto& [name, value] : names) put(file.id(value), convert(name));
  std::unordered_set<std::string_view> all_names;  // filled when first needed
  const auto is_name = [&](std::string_view name) {
    if (all_names.empty())
      for (const auto& entry : names) all_names.insert(entry.key);
    return all_names.count(name) > 0;
  };
  for (AddedToken& token : added) {
    token.in_model = vocabulary.token(token.id) == token.content;
    if (token.in_model) continue;
    if (vocabulary.has(token.id))
      file.refuse("id {} is {} and another token", token.id, token.content);
    if (token.id > 2 * n + 65536) file.refuse("id {} in a vocabulary of {} tokens", token.id, n);
    // A token of the model may have these bytes under another name.
    if (vocabulary.id_of(token.content) && is_name(token.content))
      file.refuse("added token {} has another id than in the vocabulary", token.content);
    // Hide a token that the model's encoder would find in ordinary text: a word or a character.
    const std::string_view content = token.content;
    if (whole_words || core::character_length(content) == content.size() ||
        content.ends_with(CharUnits::kEndOfWord) || !vocabulary.set(token.id, content))
      vocabulary.set_nameless(token.id, token.content);
  }
  remark = remark_on_gaps(added, names.size());
  return vocabulary;
}

std::uint32_t merge_part(const TokenizerJson& file, const Vocabulary& vocabulary,
    std::size_t number, const std::string& bytes) {
  const auto id = vocabulary.id_of(bytes);
  if (!id) file.refuse("merge {} creates or uses a token that is not in the vocabulary", number);
  return *id;
}

// `convert(name)` makes a token from a name in the file, or nothing from an invalid name.
template <class Convert>
std::vector<Merge> read_merges(
    const TokenizerJson& file, element model, const Vocabulary& vocabulary, Convert convert) {
  std::vector<Merge> merges;
  const auto as_token = [&](std::string_view name) {
    std::optional<std::string> token = convert(name);
    if (!token || token->empty()) file.refuse("merge {} is damaged", merges.size());
    return *std::move(token);
  };
  for (const element entry : file.list(model, "merges")) {
    std::string_view left, right, pair;
    simdjson::dom::array parts;
    if (entry.get(pair) == simdjson::SUCCESS) {
      const std::size_t space = pair.find(' ');
      if (space == pair.npos) file.refuse("merge {} is damaged", merges.size());
      left = pair.substr(0, space);
      right = pair.substr(space + 1);
    } else if (entry.get(parts) != simdjson::SUCCESS || parts.size() != 2 ||
               parts.at(0).get(left) != simdjson::SUCCESS ||
               parts.at(1).get(right) != simdjson::SUCCESS) {
      file.refuse("merge {} is damaged", merges.size());
    }
    const std::string a = as_token(left), b = as_token(right);
    merges.push_back({merge_part(file, vocabulary, merges.size(), a),
        merge_part(file, vocabulary, merges.size(), b),
        merge_part(file, vocabulary, merges.size(), a + b)});
  }
  return merges;
}

void refuse_set(
    const TokenizerJson& file, element model, std::string_view key, std::string_view type = "BPE") {
  const auto found = file.find(model, key);
  double number = 0;
  std::string_view text;
  bool flag = false;
  const bool empty = !found || (found->get(number) == simdjson::SUCCESS && number == 0) ||
                     (found->get(text) == simdjson::SUCCESS && text.empty()) ||
                     (found->get(flag) == simdjson::SUCCESS && !flag);
  if (!empty) file.refuse("{} with \"{}\" is not supported", type, key);
}

void refuse_found_in_text(const TokenizerJson& file, const std::vector<AddedToken>& added) {
  for (const AddedToken& token : added)
    if (!token.special)
      file.refuse("added token {} is not special; with this model such tokens are not supported",
          token.content);
}

NewTokenizer read_units(const TokenizerJson& file, element model, std::string& remark) {
  for (const char* key :
      {"dropout", "continuing_subword_prefix", "byte_fallback", "fuse_unk", "ignore_merges"})
    refuse_set(file, model, key);
  const auto split = file.find(file.root(), "pre_tokenizer");
  if (file.text(model, "end_of_word_suffix", "") != CharUnits::kEndOfWord || !split ||
      file.text(*split, "type", "") != "WhitespaceSplit" || file.find(file.root(), "normalizer"))
    file.refuse("BPE with \"end_of_word_suffix\" is supported with </w> and WhitespaceSplit only");
  expect_only(file, "decoder", "BPEDecoder");
  expect_only(file, "post_processor", "");
  if (const auto decoder = file.find(file.root(), "decoder");
      decoder && file.text(*decoder, "suffix", CharUnits::kEndOfWord) != CharUnits::kEndOfWord)
    file.refuse("the decoder BPEDecoder is supported with the suffix </w> only");
  // Merges are written with a space between their sides.
  const auto one_side = [](std::string_view name) {
    return name.find(' ') == name.npos ? std::optional(std::string(name)) : std::nullopt;
  };
  auto added = read_added(file);
  refuse_found_in_text(file, added);
  auto vocabulary = read_vocabulary(file, model, added, remark, as_is);
  auto merges = read_merges(file, model, vocabulary, one_side);
  return std::make_shared<CharUnits>(std::move(vocabulary), std::move(merges), special_of(added),
      std::string(file.text(model, "unk_token", "")));
}

NewTokenizer read_pieces(const TokenizerJson& file, element model, std::string& remark) {
  auto added = read_added(file);
  auto vocabulary = read_vocabulary(file, model, added, remark, as_is);
  auto merges = read_merges(file, model, vocabulary, as_is);
  Pieces::Parts parts;
  parts.special = special_of(added);
  parts.unknown = std::string(file.text(model, "unk_token", ""));
  parts.byte_fallback = file.flag(model, "byte_fallback", false);
  parts.fuse_unknown = file.flag(model, "fuse_unk", false);
  parts.whole_words = file.flag(model, "ignore_merges", false);
  parts.around = read_template(file, added, vocabulary);
  parts.rules = read_rules(file, model, vocabulary);
  if (parts.rules) {
    parts.whole_words = false;
    parts.steps = read_rules_steps(file, *parts.rules, vocabulary, found_in_text(std::move(added)),
        symbols_of(*parts.rules, vocabulary));
  } else {
    auto steps = read_normalizer(file);
    const bool replaced = std::ranges::any_of(steps, [](const NormalStep& step) {
      return step.what == NormalStep::What::replace && step.from == " ";
    });
    read_pieces_split(file, replaced, parts);
    parts.steps = TextSteps(found_in_text(std::move(added)), Normalizer(std::move(steps)));
  }
  parts.decoder = read_decoder(file, vocabulary);
  return std::make_shared<Pieces>(std::move(vocabulary), std::move(merges), std::move(parts));
}

// Returns true if the pre-tokenizer maps each byte to a character of GPT-2's alphabet.
bool is_byte_level(const TokenizerJson& file) {
  const auto step = file.find(file.root(), "pre_tokenizer");
  if (!step) return false;
  if (file.text(*step, "type", "") != "Sequence")
    return file.text(*step, "type", "") == "ByteLevel";
  for (const element inner : file.list(*step, "pretokenizers"))
    if (file.text(inner, "type", "") == "ByteLevel") return true;
  return false;
}

// Reads tokens of bytes. Of a WordPiece model they are the longest that match.
NewTokenizer read_byte_level(const TokenizerJson& file, element model, std::string& remark) {
  ByteLevel::Parts parts;
  parts.longest = file.text(model, "type", "") == "WordPiece";
  if (parts.longest &&
      (!is_byte_level(file) || !file.text(model, "continuing_subword_prefix", "##").empty()))
    file.refuse(
        "WordPiece is supported with an empty \"continuing_subword_prefix\" and with ByteLevel (of "
        "use_regex false) only");
  parts.split = read_byte_level_split(file);
  auto added = read_added(file);
  std::map<std::string_view, std::uint32_t> marks;
  for (const auto& token : added) marks.emplace(token.content, token.id);
  auto vocabulary = read_vocabulary(file, model, added, remark, [&](std::string_view name) {
    if (marks.count(name)) return std::string(name);
    auto bytes = bytes_of_alphabet(name);
    if (!bytes) file.refuse("token {} is not in GPT-2's byte alphabet", name);
    return *std::move(bytes);
  });
  std::vector<Merge> merges;
  if (!parts.longest) merges = read_merges(file, model, vocabulary, bytes_of_alphabet);
  parts.whole_words = file.flag(model, "ignore_merges", false);
  if (parts.split.kind() == Split::Kind::none && (parts.whole_words || !merges.empty()))
    file.refuse("BPE of bytes that is not split (ByteLevel with use_regex false) is not supported");
  // Bytes without a token are dropped if there is no unknown token.
  if (!file.text(model, "unk_token", "").empty() || file.flag(model, "byte_fallback", false)) {
    for (int b = 0; b < 256; ++b) {
      const char c = static_cast<char>(b);
      if (!vocabulary.id_of({&c, 1}))
        file.refuse("BPE of bytes with unknown ones (unk_token, byte_fallback) is not supported");
    }
  }
  parts.special = special_of(added);
  parts.around = read_template(file, added, vocabulary);
  expect_only(file, "decoder", "ByteLevel");
  parts.steps = TextSteps(found_in_text(std::move(added)), Normalizer(read_normalizer(file)));
  return std::make_shared<ByteLevel>(std::move(vocabulary), std::move(merges), std::move(parts));
}

NewTokenizer read_bpe(const TokenizerJson& file, element model, std::string& remark) {
  if (!file.text(model, "end_of_word_suffix", "").empty()) return read_units(file, model, remark);
  for (const char* key : {"dropout", "continuing_subword_prefix"}) refuse_set(file, model, key);
  return is_byte_level(file) ? read_byte_level(file, model, remark)
                             : read_pieces(file, model, remark);
}

// Reads a Unigram model, which must have no pre-tokenizer.
NewTokenizer read_unigram(const TokenizerJson& file, element model, std::string& remark) {
  const bool ruled = file.find(model, "sentencepiece").has_value();
  if (!ruled && file.find(file.root(), "pre_tokenizer"))
    file.refuse("Unigram with a pre-tokenizer is not supported (of a tokenizer.model it is none)");
  for (const char* key : {"alpha", "nbest_size"}) refuse_set(file, model, key, "Unigram");
  auto added = read_added(file);
  Unigram::Parts parts;
  Vocabulary vocabulary;
  const auto pieces = file.list(model, "vocab");
  const auto unknown = file.find(model, "unk_id");
  if (!unknown) file.refuse("Unigram without \"unk_id\" is not supported");
  parts.unknown = file.id(*unknown);
  for (const element piece : pieces) {
    simdjson::dom::array pair;
    std::string_view text;
    double score = 0;
    if (piece.get(pair) != simdjson::SUCCESS || pair.size() != 2 ||
        pair.at(0).get(text) != simdjson::SUCCESS || pair.at(1).get(score) != simdjson::SUCCESS)
      file.refuse("piece {} is not a text and a number", parts.scores.size());
    if (!vocabulary.set(static_cast<std::uint32_t>(parts.scores.size()), text))
      file.refuse("piece {} occurs twice", parts.scores.size());
    parts.scores.push_back(score);
  }
  for (AddedToken& token : added) {
    token.in_model = token.id < parts.scores.size();
    if (token.in_model ? vocabulary.token(token.id) != token.content
                       : token.id > 2 * parts.scores.size() + 65536 ||
                             !vocabulary.set(token.id, token.content))
      file.refuse("added token {} or its id occurs twice", token.content);
  }
  remark = remark_on_gaps(added, parts.scores.size());
  parts.byte_fallback = file.flag(model, "byte_fallback", false);
  parts.special = special_of(added);
  parts.around = read_template(file, added, vocabulary);
  parts.decoder = read_decoder(file, vocabulary);
  parts.rules = read_rules(file, model, vocabulary);
  added = found_in_text(std::move(added));
  parts.steps = ruled ? read_rules_steps(file, *parts.rules, vocabulary, std::move(added), {})
                      : TextSteps(std::move(added), Normalizer(read_normalizer(file)));
  return std::make_shared<Unigram>(std::move(vocabulary), std::move(parts));
}

NewTokenizer read_word_level(const TokenizerJson& file, element model, std::string& remark) {
  WordLevel::Options options;
  options.unknown = std::string(file.text(model, "unk_token", ""));
  const auto split = file.find(file.root(), "pre_tokenizer");
  const auto normalizer = file.find(file.root(), "normalizer");
  const std::string_view type = split ? file.text(*split, "type", "") : "none";
  options.newline.clear();
  if (type == "Split") {
    const auto pattern = file.find(*split, "pattern");
    if (!pattern || file.text(*pattern, "String", "") != " " ||
        file.text(*split, "behavior", "") != "Removed" || file.flag(*split, "invert", false))
      file.refuse(
          "a WordLevel model with this pre-tokenizer is not supported; it must split at single "
          "spaces or white space");
    const auto replaced = normalizer ? file.find(*normalizer, "pattern") : std::nullopt;
    const std::string_view content = normalizer ? file.text(*normalizer, "content", "") : "";
    if (!replaced || file.text(*normalizer, "type", "") != "Replace" ||
        file.text(*replaced, "String", "") != "\n" || content.size() < 3 ||
        content.front() != ' ' || content.back() != ' ' ||
        content.substr(1, content.size() - 2).find_first_of(" \n") != content.npos)
      file.refuse(
          "a WordLevel model split at spaces needs the normalizer that makes newlines a token");
    options.newline = std::string(content.substr(1, content.size() - 2));
  } else if (type != "WhitespaceSplit" || normalizer) {
    file.refuse("WordLevel with pre-tokenizer {}{} is not supported", type,
        normalizer ? " and a normalizer" : "");
  }
  expect_only(file, "decoder", "");
  expect_only(file, "post_processor", "");
  auto added = read_added(file);
  refuse_found_in_text(file, added);
  auto vocabulary = read_vocabulary(file, model, added, remark, as_is);
  return std::make_shared<WordLevel>(std::move(vocabulary), std::move(options));
}

// GPT-2's encoder.json: each member is a token's id (among the tokens are `model` and `padding`).
bool is_vocabulary(element root) {
  simdjson::dom::object members;
  if (root.get(members) != simdjson::SUCCESS || members.size() == 0) return false;
  return std::ranges::all_of(members, [](const auto& member) { return member.value.is_uint64(); });
}

}  // namespace

TokenizerPtr parse_tokenizer(std::string_view json, const std::string& origin) {
  json = core::without_byte_order_mark(json);
  const FileKind kind = kind_of(json);
  if (kind != FileKind::json) core::bad_data("{}: {}", origin, not_a_tokenizer(kind));
  simdjson::dom::parser parser;
  if (parser.allocate(std::max<std::size_t>(json.size(), 64), kMaxDepth) != simdjson::SUCCESS)
    core::bad_data("{}: cannot be read as JSON: too large", origin);
  element root;
  auto error = parser.parse(json.data(), json.size()).get(root);
  if (error != simdjson::SUCCESS && error != simdjson::DEPTH_ERROR) {
    const core::MendedJson mended = core::mend_json(json);
    if (!mended.constant.empty())
      core::bad_data("{}: {}", origin, core::why_no_constant(mended.constant));
    if (mended.only_numbers()) error = parser.parse(mended.text).get(root);
  }
  if (error == simdjson::DEPTH_ERROR) core::bad_data("{}: JSON nested too deeply", origin);
  if (error != simdjson::SUCCESS)
    core::bad_data("{}: not JSON: {}", origin, simdjson::error_message(error));
  const TokenizerJson file(root, origin);
  if (is_vocabulary(root)) file.refuse("{}", kVocabularyAlone);
  const auto model = file.find(root, "model");
  if (!model) file.refuse("not a tokenizer.json: it has no \"model\"");
  for (const char* part : {"truncation", "padding"})  // they would give other ids
    if (file.find(root, part)) file.refuse("{} is not supported; set it to null in the file", part);
  const std::string_view type =
      file.text(*model, "type", file.find(*model, "merges") ? "BPE" : "none");
  constexpr std::pair<std::string_view, decltype(&read_bpe)> kReaders[] = {{"BPE", read_bpe},
      {"Unigram", read_unigram}, {"WordLevel", read_word_level}, {"WordPiece", read_byte_level}};
  for (const auto& reader : kReaders) {
    if (reader.first != type) continue;
    std::string remark;
    NewTokenizer tokenizer = named(origin, [&] { return reader.second(file, *model, remark); });
    tokenizer->set_remark(std::move(remark));
    return tokenizer;
  }
  file.refuse("model {} is not supported (BPE, Unigram, WordLevel and WordPiece are)", type);
}

void export_gpt2(const Tokenizer& tokenizer, const std::string& folder) {
  const auto* bpe = dynamic_cast<const ByteLevel*>(&tokenizer);
  if (bpe == nullptr || bpe->kind() != TokenizerKind::bpe || bpe->whole_words() ||
      bpe->split().kind() != Split::Kind::gpt2 || !bpe->steps().empty())
    core::bad_usage(
        "--export gpt2 takes a byte-level BPE tokenizer with GPT-2's splitting, not {}{}",
        bpe == nullptr || bpe->kind() != TokenizerKind::bpe ? "" : "another ",
        name_of(tokenizer.kind()));
  const std::vector<std::string> names = bpe->file_names();
  JsonText vocabulary;
  vocabulary.open('{');
  for (std::uint32_t id = 0; id < tokenizer.size(); ++id)
    if (!names[id].empty()) vocabulary.key(names[id]).number(id);
  vocabulary.close('}');
  std::string merges = "#version: 0.2\n";
  for (const Merge& merge : bpe->merges().list())
    merges.append(names[merge.left]).append(" ").append(names[merge.right]).append("\n");
  core::make_folder(folder);
  core::write_file(folder + "/merges.txt", merges);
  core::write_file(folder + "/vocab.json", std::move(vocabulary).text() + "\n");
}

}  // namespace text
