#include "text/formats/json_parts.h"

#include "text/tokenizer/byte_level.h"
#include "text/tokenizer/utf8.h"

namespace text {
namespace {

using simdjson::dom::element;

// Limits: each step processes every text, and each token of a template is added to every text.
constexpr std::size_t kMaxSteps = 256, kMaxTemplate = 1024;
// Limit of the bytes of an added token: this much text is held in memory on both sides of a
// possible cut.
constexpr std::size_t kMaxAdded = std::size_t{1} << 20;

// Returns the steps of a part that may be a sequence of steps under `list`. Returns none if it is
// null.
std::vector<element> steps_of(
    const TokenizerJson& file, std::string_view part, std::string_view list) {
  std::vector<element> steps;
  const auto found = file.find(file.root(), part);
  if (!found) return steps;
  if (file.text(*found, "type", "") != "Sequence") return {*found};
  for (const element inner : file.list(*found, list)) {
    if (file.text(inner, "type", "") == "Sequence")
      file.refuse(
          "a Sequence in the Sequence of {} is not supported; write its steps in one", part);
    steps.push_back(inner);
  }
  return steps;
}

NormalStep read_normal_step(const TokenizerJson& file, element step) {
  using What = NormalStep::What;
  const std::string_view type = file.text(step, "type", "");
  if (type == "NFC") return {What::nfc, "", ""};
  if (type == "NFKC") return {What::nfkc, "", ""};
  if (type == "Lowercase") return {What::lowercase, "", ""};
  if (type == "Prepend") return {What::prepend, "", std::string(file.text(step, "prepend", ""))};
  if (type == "Precompiled") {
    auto rules = of_base64(file.text(step, "precompiled_charsmap", ""));
    if (!rules) file.refuse("the normalizer Precompiled has no base64");
    return {What::charsmap, *std::move(rules), ""};
  }
  if (type != "Replace")
    file.refuse(
        "the normalizer {} is not supported (NFC, NFKC, Lowercase, Prepend, Precompiled and "
        "Replace are)",
        type);
  const auto pattern = file.find(step, "pattern");
  const std::string_view regex = pattern ? file.text(*pattern, "Regex", "") : "",
                         becomes = file.text(step, "content", "");
  if (regex == kTrimmed && becomes.empty()) return {What::trim, "", ""};
  if (regex == kSqueezed && becomes == " ") return {What::squeeze, "", ""};
  const std::string_view from = pattern ? file.text(*pattern, "String", "") : "";
  if (from.empty())
    file.refuse("the normalizer Replace of a Regex is not supported (of a String it is)");
  return {What::replace, std::string(from), std::string(file.text(step, "content", ""))};
}

SplitStep read_split_step(const TokenizerJson& file, element step) {
  SplitStep made{SplitStep::What::pattern};
  if (file.text(step, "type", "") == "Digits") {
    made.what = file.flag(step, "individual_digits", false) ? SplitStep::What::each_number
                                                            : SplitStep::What::numbers;
    return made;
  }
  constexpr std::array<std::string_view, 5> kNames = {
      "Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"};
  const std::string_view name = file.text(step, "behavior", "");
  const auto behaviour = std::ranges::find(kNames, name);
  if (behaviour == kNames.end()) file.refuse("the pre-tokenizer Split has no behavior {}", name);
  made.behaviour = static_cast<SplitStep::Behaviour>(behaviour - kNames.begin());
  made.invert = file.flag(step, "invert", false);
  if (made.behaviour == SplitStep::Behaviour::removed && !made.invert)
    file.refuse(
        "the pre-tokenizer Split with the behavior Removed is not supported, since decoding could "
        "not restore the text");
  const auto pattern = file.find(step, "pattern");
  const std::string_view string = pattern ? file.text(*pattern, "String", "") : "",
                         regex = pattern ? file.text(*pattern, "Regex", "") : "";
  if (string.empty() == regex.empty())
    file.refuse("the pre-tokenizer Split has no pattern, a String or a Regex");
  made.text = string.empty() ? regex : string;
  if (!string.empty()) made.what = SplitStep::What::string;
  return made;
}

// Uses the state machine for known steps, else compiles their patterns.
Split made_of(std::vector<SplitStep> steps) {
  using What = SplitStep::What;
  using Behaviour = SplitStep::Behaviour;
  if (steps.empty()) return Split(Split::Kind::none);
  // A pattern that matches every character leaves nothing to remove.
  const auto machine = [](const SplitStep& step) -> std::optional<Split::Kind> {
    const bool all = step.behaviour == Behaviour::isolated ||
                     (step.behaviour == Behaviour::removed && step.invert);
    return step.what == What::pattern && all ? split_kind_of(step.text) : std::nullopt;
  };
  for (SplitStep& step : steps)
    if (machine(step) == Split::Kind::gpt2) step = {What::gpt2};
  if (steps.size() == 1) {
    if (steps[0].what == What::gpt2) return Split(Split::Kind::gpt2);
    if (const auto kind = machine(steps[0])) return Split(*kind);
  }
  if (steps.size() == 2 && steps[1].what == What::gpt2) {
    if (steps[0].what == What::each_number) return Split(Split::Kind::digits_gpt2);
    if (steps[0].what == What::numbers) return Split(Split::Kind::runs_gpt2);
  }
  for (SplitStep& step : steps) {
    if (step.what != What::pattern) continue;
    if (const auto groups = digit_groups_of(step.text)) {
      step.what = What::digit_groups;
      step.groups = *groups;
    } else {
      step.regex = std::make_shared<const Regex>(step.text);
    }
  }
  return Split(std::move(steps));
}

}  // namespace

std::vector<AddedToken> read_added(const TokenizerJson& file) {
  std::vector<AddedToken> tokens;
  if (!file.find(file.root(), "added_tokens")) return tokens;
  for (const element entry : file.list(file.root(), "added_tokens")) {
    const auto id = file.find(entry, "id");
    const std::string_view content = file.text(entry, "content", "");
    if (!id || content.empty()) file.refuse("an added token without id or content");
    if (content.size() > kMaxAdded)
      file.refuse(
          "an added token of {} bytes is not supported (of {} it is)", content.size(), kMaxAdded);
    AddedToken token{file.id(*id), std::string(content)};
    token.special = file.flag(entry, "special", false);
    token.normalized = file.flag(entry, "normalized", !token.special);
    token.lstrip = file.flag(entry, "lstrip", false);
    token.rstrip = file.flag(entry, "rstrip", false);
    token.single_word = file.flag(entry, "single_word", false);
    tokens.push_back(std::move(token));
  }
  std::ranges::stable_sort(tokens, {}, &AddedToken::id);
  std::set<std::string_view> contents;
  for (std::size_t i = 0; i < tokens.size(); ++i)
    if ((i > 0 && tokens[i].id == tokens[i - 1].id) || !contents.insert(tokens[i].content).second)
      file.refuse("added token {} or its id occurs twice", tokens[i].content);
  return tokens;
}

std::vector<NormalStep> read_normalizer(const TokenizerJson& file) {
  std::vector<NormalStep> steps;
  for (const element step : steps_of(file, "normalizer", "normalizers")) {
    if (steps.size() == kMaxSteps)
      file.refuse("a normalizer of more than {} steps is not supported", kMaxSteps);
    steps.push_back(read_normal_step(file, step));
  }
  return steps;
}

Split read_byte_level_split(const TokenizerJson& file) {
  std::vector<SplitStep> steps;
  bool ended = false;
  for (const element step : steps_of(file, "pre_tokenizer", "pretokenizers")) {
    const std::string_view type = file.text(step, "type", "");
    if (steps.size() == kMaxSteps)
      file.refuse("a pre-tokenizer of more than {} steps is not supported", kMaxSteps);
    if (ended) file.refuse("the pre-tokenizer {} after ByteLevel is not supported", type);
    if (type == "ByteLevel") {
      if (file.flag(step, "add_prefix_space", true))
        file.refuse("the pre-tokenizer ByteLevel with add_prefix_space is not supported");
      if (file.flag(step, "use_regex", true)) steps.push_back({SplitStep::What::gpt2});
      ended = true;
    } else if (type == "Split" || type == "Digits") {
      steps.push_back(read_split_step(file, step));
    } else {
      file.refuse("the pre-tokenizer {} is not supported (ByteLevel, Split and Digits are)", type);
    }
  }
  return made_of(std::move(steps));
}

void read_pieces_split(const TokenizerJson& file, bool spaces_replaced, Pieces::Parts& parts) {
  std::vector<SplitStep> numbers;
  for (const element step : steps_of(file, "pre_tokenizer", "pretokenizers")) {
    const std::string_view type = file.text(step, "type", "");
    auto& metaspace = parts.metaspace;
    if (type == "Metaspace" && metaspace.mark.empty() && numbers.empty()) {
      metaspace.mark = std::string(file.text(step, "replacement", "\xE2\x96\x81"));
      if (metaspace.mark.empty()) file.refuse("the pre-tokenizer Metaspace has no replacement");
      metaspace.split = file.flag(step, "split", true);
      const bool prefix = file.flag(step, "add_prefix_space", true);
      const std::string_view scheme =
          file.text(step, "prepend_scheme", prefix ? "always" : "never");
      using Prepend = Pieces::Metaspace::Prepend;
      if (scheme != "always" && scheme != "first" && scheme != "never")
        file.refuse("the pre-tokenizer Metaspace has no prepend_scheme {}", scheme);
      metaspace.prepend = scheme == "always"  ? Prepend::always
                          : scheme == "first" ? Prepend::first
                                              : Prepend::never;
    } else if (type == "Digits" && numbers.empty()) {
      numbers.push_back(read_split_step(file, step));
    } else if (type == "Split") {
      // Gemma's pre-tokenizer splits at spaces, but its normalizer has removed them all.
      const SplitStep split = read_split_step(file, step);
      if (split.what != SplitStep::What::string || split.text != " " ||
          (!spaces_replaced && metaspace.mark.empty()))
        file.refuse(
            "the pre-tokenizer Split is not supported with a model of characters, except to split "
            "at spaces that are already marks");
    } else {
      file.refuse(
          "the pre-tokenizer {} is not supported here (Metaspace and Digits are, "
          "and ByteLevel for a model of bytes)",
          type);
    }
  }
  if (!numbers.empty()) parts.split = Split(std::move(numbers));
}

std::optional<PieceRules> read_rules(
    const TokenizerJson& file, element model, const Vocabulary& vocabulary) {
  const auto found = file.find(model, "sentencepiece");
  if (!found) return std::nullopt;
  PieceRules rules;
  rules.unknown = std::string(file.text(*found, "unknown", ""));
  const auto read = [&](std::string_view key, std::vector<std::uint32_t>& ids) {
    for (const element value : file.list(*found, key)) {
      ids.push_back(file.id(value));
      if (vocabulary.token(ids.back()).empty())
        file.refuse("\"{}\" has the id {}, which is not a token", key, ids.back());
    }
    std::ranges::sort(ids);
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  };
  read("symbols", rules.symbols);
  read("unused", rules.unused);
  read("tied", rules.tied);
  return rules;
}

TextSteps read_rules_steps(const TokenizerJson& file, const PieceRules& rules,
    const Vocabulary& vocabulary, std::vector<AddedToken> added,
    const std::vector<AddedToken>& symbols) {
  auto steps = read_normalizer(file);
  bool once = false;
  std::string pattern;
  for (const element step : steps_of(file, "pre_tokenizer", "pretokenizers")) {
    const std::string_view type = file.text(step, "type", "");
    if (type == "Metaspace" && !once && !steps.empty() &&
        file.text(step, "replacement", "") == steps.back().to &&
        file.text(step, "prepend_scheme", "") == "first" && !file.flag(step, "split", true)) {
      once = true;
      steps.insert(steps.end() - 1, {NormalStep::What::prepend, "", steps.back().to});
    } else if (type == "Split" && pattern.empty() && !file.flag(step, "invert", false)) {
      const auto regex = file.find(step, "pattern");
      if (regex) pattern = file.text(*regex, "Regex", "");
    } else {
      file.refuse("the pre-tokenizer {} is not that of a model with \"sentencepiece\"", type);
    }
  }
  if (pattern != pattern_of(symbols))
    file.refuse("the pre-tokenizer does not split at the symbols of \"sentencepiece\"");
  return {
      std::move(added), Normalizer(std::move(steps), symbols_of(rules, vocabulary), once), symbols};
}

Tokenizer::Template read_template(
    const TokenizerJson& file, const std::vector<AddedToken>& added, const Vocabulary& vocabulary) {
  Tokenizer::Template around;
  std::unordered_map<std::string_view, std::uint32_t> ids;
  for (const AddedToken& token : added) ids.emplace(token.content, token.id);
  bool any = false;
  for (const element step : steps_of(file, "post_processor", "processors")) {
    const std::string_view type = file.text(step, "type", "");
    if (type == "ByteLevel") continue;
    if (type != "TemplateProcessing")
      file.refuse(
          "the post_processor {} is not supported (ByteLevel and TemplateProcessing are)", type);
    if (std::exchange(any, true)) file.refuse("two TemplateProcessing are not supported");
    bool behind = false;
    for (const element part : file.list(step, "single")) {
      if (file.find(part, "Sequence")) {
        if (behind) file.refuse("the post_processor has the text twice");
        behind = true;
        continue;
      }
      const auto special = file.find(part, "SpecialToken");
      const std::string_view name = special ? file.text(*special, "id", "") : "";
      const auto put = [&, &side = behind ? around.end : around.begin](std::uint32_t id) {
        if (!vocabulary.has(id))
          file.refuse("the post_processor uses {}, which is not a token", id);
        if (around.begin.size() + around.end.size() == kMaxTemplate)
          file.refuse("the post_processor puts more than {} tokens around a text", kMaxTemplate);
        side.push_back(id);
      };
      // The file names a special token's ids, which may be several.
      const auto listed = file.find(step, "special_tokens");
      if (const auto own = listed ? file.find(*listed, name) : std::nullopt) {
        for (const element id : file.list(*own, "ids")) put(file.id(id));
        continue;
      }
      const auto token = ids.find(name);
      const auto id = token != ids.end() ? std::optional(token->second) : vocabulary.id_of(name);
      if (!id) file.refuse("the post_processor uses {}, which is not a token", name);
      put(*id);
    }
    if (!behind) file.refuse("the post_processor does not have the text");
  }
  return around;
}

std::optional<PieceDecoder> read_decoder(const TokenizerJson& file, const Vocabulary& vocabulary) {
  if (!file.find(file.root(), "decoder")) return std::nullopt;
  PieceDecoder decoder;
  // Replace changes single tokens and Strip the whole text, so Fuse must stand between them.
  enum Stage : std::uint8_t { replaces, has_bytes, fused, stripped } stage = replaces;
  const auto reach = [&](Stage next, std::string_view type) {
    if (stage > next || (stage == next && next != replaces))
      file.refuse("the decoder {} after other steps is not supported", type);
    stage = next;
  };
  for (const element step : steps_of(file, "decoder", "decoders")) {
    const std::string_view type = file.text(step, "type", "");
    if (decoder.replaced.size() == kMaxSteps)
      file.refuse("a decoder of more than {} steps is not supported", kMaxSteps);
    if (type == "Replace") {
      reach(replaces, type);
      const auto pattern = file.find(step, "pattern");
      const std::string_view old = pattern ? file.text(*pattern, "String", "") : "";
      if (old.empty())
        file.refuse("the decoder Replace of a Regex is not supported (of a String it is)");
      decoder.replaced.emplace_back(old, file.text(step, "content", ""));
    } else if (type == "ByteFallback") {
      reach(has_bytes, type);
      decoder.bytes = true;
    } else if (type == "Fuse") {
      if (stage < fused) stage = fused;
    } else if (type == "Strip") {
      if (stage != fused) file.refuse("the decoder Strip is supported after Fuse only");
      stage = stripped;
      const bool one = file.number(step, "start", 0) == 1 && file.number(step, "stop", 0) == 0;
      if (!one || file.text(step, "content", "") != " ")
        file.refuse("the decoder Strip is supported for one space at the start only");
      decoder.strips_space = true;
    } else if (type == "Metaspace" && decoder.replaced.empty()) {
      reach(replaces, type);
      const bool prefix = file.flag(step, "add_prefix_space", true);
      decoder.replaced.emplace_back(file.text(step, "replacement", "\xE2\x96\x81"), " ");
      decoder.strips_space =
          file.text(step, "prepend_scheme", prefix ? "always" : "never") != "never";
      if (decoder.replaced[0].first.empty())
        file.refuse("the decoder Metaspace has no replacement");
      for (std::uint32_t id = 0; decoder.strips_space && id < vocabulary.size(); ++id)
        if (vocabulary.token(id).starts_with(' '))
          file.refuse("the decoder Metaspace is not supported with token {}, a space first", id);
    } else {
      file.refuse(
          "the decoder {} is not supported here (Replace, ByteFallback, Fuse, Strip and Metaspace "
          "are)",
          type);
    }
  }
  return decoder;
}

void expect_only(const TokenizerJson& file, std::string_view part, std::string_view known) {
  const std::string list = part == "decoder" ? "decoders" : "processors";
  for (const element step : steps_of(file, part, list)) {
    const std::string_view type = file.text(step, "type", "");
    if (type == known) continue;
    file.refuse("the {} {} is not supported with this model{}", part, type,
        known.empty() ? "" : fmt::format(" ({} is)", known));
  }
}

}  // namespace text
