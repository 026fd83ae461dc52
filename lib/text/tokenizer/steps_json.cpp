#include "text/tokenizer/steps_json.h"

#include "text/tokenizer/byte_level.h"

namespace text {
namespace {

core::Json json_of(const NormalStep& step) {
  using What = NormalStep::What;
  const auto replace = [](const char* kind, std::string_view from, std::string_view to) {
    return core::Json{{"content", to}, {"pattern", {{kind, from}}}, {"type", "Replace"}};
  };
  switch (step.what) {
    case What::nfc: return {{"type", "NFC"}};
    case What::nfkc: return {{"type", "NFKC"}};
    case What::lowercase: return {{"type", "Lowercase"}};
    case What::prepend: return {{"prepend", step.to}, {"type", "Prepend"}};
    case What::replace: return replace("String", step.from, step.to);
    case What::trim: return replace("Regex", kTrimmed, "");
    case What::squeeze: return replace("Regex", kSqueezed, " ");
    case What::charsmap: break;
  }
  return {{"precompiled_charsmap", to_base64(step.from)}, {"type", "Precompiled"}};
}

// Returns a template's special tokens around the sequence A, and around B in a pair.
core::Json around_json(const Tokenizer& tokenizer, bool pair) {
  auto list = core::Json::array();
  const auto put = [&](const char* kind, std::string_view id, int type) {
    list.push_back(core::Json{{kind, {{"id", id}, {"type_id", type}}}});
  };
  const auto& [begin, end] = tokenizer.text_template();
  for (int i = 0; i < (pair ? 2 : 1); ++i) {
    for (const auto id : begin) put("SpecialToken", tokenizer.token(id), i);
    put("Sequence", i == 0 ? "A" : "B", i);
    for (const auto id : end) put("SpecialToken", tokenizer.token(id), i);
  }
  return list;
}

// Returns "post_processor": null or the template.
core::Json template_json(const Tokenizer& tokenizer) {
  const auto& around = tokenizer.text_template();
  if (around.empty()) return nullptr;
  auto tokens = core::Json::object();
  for (const auto* ids : {&around.begin, &around.end})
    for (const auto id : *ids) {
      const std::string token(tokenizer.token(id));
      tokens[token] = {
          {"id", token}, {"ids", core::Json::array({id})}, {"tokens", core::Json::array({token})}};
    }
  return {{"pair", around_json(tokenizer, true)}, {"single", around_json(tokenizer, false)},
      {"special_tokens", tokens}, {"type", "TemplateProcessing"}};
}

// Returns an object with the members `small`, and `large` as JSON.
std::string object_text(const core::Json& small, std::map<std::string, std::string> large) {
  for (const auto& [key, value] : small.items()) large[key] = core::dump(value);
  JsonText json;
  json.open('{');
  for (const auto& [key, value] : large) json.key(key).raw(value);
  json.close('}');
  return std::move(json).text();
}

}  // namespace

JsonText& JsonText::item() {
  // Only called between items and after a bracket: a string that ends in one is closed by its
  // quote.
  if (!out_.empty() && out_.back() != '{' && out_.back() != '[') out_ += ',';
  return *this;
}

JsonText& JsonText::key(std::string_view name) { return item().string(name).raw(":"); }

JsonText& JsonText::string(std::string_view text) { return raw(core::dump(core::Json(text))); }

std::vector<std::string> names_of(const Tokenizer& tokenizer) {
  return core::generated(static_cast<std::uint32_t>(tokenizer.size()),
      [&](std::uint32_t id) { return std::string(tokenizer.token(id)); });
}

std::string vocabulary_text(
    const Vocabulary& vocabulary, const std::vector<std::string>& names, const TextSteps& steps) {
  std::vector<bool> outside(vocabulary.size());
  for (const AddedToken& token : steps.added()) outside[token.id] = !token.in_model;
  // Most names differ in their first bytes, which are compared as one number.
  struct Name {
    std::uint64_t start;
    std::uint32_t id;
  };
  std::vector<Name> sorted;
  sorted.reserve(vocabulary.count());
  for (std::uint32_t id = 0; id < vocabulary.size(); ++id) {
    if (!vocabulary.has(id) || vocabulary.is_nameless(id) || outside[id]) continue;
    std::uint64_t start = 0;
    for (std::size_t i = 0; i < 8; ++i)
      start = start << 8 | (i < names[id].size() ? static_cast<unsigned char>(names[id][i]) : 0);
    sorted.push_back({start, id});
  }
  std::ranges::sort(sorted, [&](const Name& a, const Name& b) {
    return a.start != b.start ? a.start < b.start : names[a.id] < names[b.id];
  });
  JsonText json;
  json.open('{');
  for (const Name& name : sorted) json.key(names[name.id]).number(name.id);
  json.close('}');
  return std::move(json).text();
}

std::string merges_text(
    const std::vector<Merge>& merges, const std::vector<std::string>& names, bool lists) {
  JsonText json;
  json.open('[');
  for (const Merge& merge : merges) {
    const auto &left = names[merge.left], &right = names[merge.right];
    if (lists || left.find(' ') != left.npos || right.find(' ') != right.npos)
      json.item().open('[').item().string(left).item().string(right).close(']');
    else json.item().string(left + " " + right);
  }
  json.close(']');
  return std::move(json).text();
}

core::Json bpe_model(const core::Json& own) {
  core::Json model = {{"byte_fallback", false}, {"continuing_subword_prefix", nullptr},
      {"dropout", nullptr}, {"end_of_word_suffix", nullptr}, {"fuse_unk", false},
      {"ignore_merges", false}, {"type", "BPE"}, {"unk_token", nullptr}};
  model.update(own);
  return model;
}

std::string tokenizer_text(const Tokenizer& tokenizer, core::Json parts, const core::Json& model,
    std::map<std::string, std::string> large) {
  parts["padding"] = parts["truncation"] = nullptr;
  parts["post_processor"] = template_json(tokenizer);
  parts["version"] = "1.0";
  return object_text(parts, {{"model", object_text(model, std::move(large))}});
}

core::Json added_tokens_json(const TextSteps& steps, const std::vector<SpecialToken>& special) {
  const auto tokens = steps.added().empty() ? as_added(special) : steps.added();
  auto list = core::Json::array();
  for (const auto& token : tokens)
    list.push_back({{"content", token.content}, {"id", token.id}, {"lstrip", token.lstrip},
        {"normalized", token.normalized}, {"rstrip", token.rstrip},
        {"single_word", token.single_word}, {"special", token.special}});
  return list;
}

core::Json sequence_json(const char* list, std::vector<core::Json> steps) {
  if (steps.empty()) return nullptr;
  if (steps.size() == 1) return std::move(steps[0]);
  return {{list, std::move(steps)}, {"type", "Sequence"}};
}

core::Json normalizer_json(const Normalizer& normalizer) {
  std::vector<core::Json> steps;
  for (const auto& step : normalizer.steps())
    // A pre-tokenizer makes the prefix that a text gets once.
    if (!normalizer.prefix_once() || step.what != NormalStep::What::prepend)
      steps.push_back(json_of(step));
  return sequence_json("normalizers", std::move(steps));
}

core::Json split_step_json(const SplitStep& step) {
  using What = SplitStep::What;
  if (step.what == What::numbers || step.what == What::each_number)
    return {{"individual_digits", step.what == What::each_number}, {"type", "Digits"}};
  constexpr std::string_view kNames[] = {
      "Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"};
  const auto text = step.what == What::gpt2 ? pattern_of(Split::Kind::gpt2) : step.text;
  return {{"behavior", kNames[static_cast<std::size_t>(step.behaviour)]}, {"invert", step.invert},
      {"pattern", {{step.what == What::string ? "String" : "Regex", text}}}, {"type", "Split"}};
}

core::Json rules_split_json(const TextSteps& steps, const std::string& pattern) {
  const auto& normalizer = steps.normalizer();
  auto list = core::Json::array();
  if (normalizer.prefix_once())
    list.push_back({{"prepend_scheme", "first"}, {"replacement", normalizer.steps().back().to},
        {"split", false}, {"type", "Metaspace"}});
  if (!pattern.empty())
    list.push_back(split_step_json({.what = SplitStep::What::pattern, .text = pattern}));
  if (list.empty()) return nullptr;
  return {{"pretokenizers", std::move(list)}, {"type", "Sequence"}};
}

}  // namespace text
