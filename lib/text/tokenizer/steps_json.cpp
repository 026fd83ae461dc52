#include "text/tokenizer/steps_json.h"

#include "core/json.h"
#include "text/tokenizer/byte_level.h"

namespace text {

void JsonText::comma() {
  if (!out_.empty() && out_.back() != '{' && out_.back() != '[') out_ += ',';
}

JsonText& JsonText::item() {
  // Only called between items and after '[': a string that ends in a bracket is closed by its
  // quote.
  comma();
  return *this;
}

JsonText& JsonText::key(std::string_view name) {
  comma();
  string(name);
  out_ += ':';
  return *this;
}

JsonText& JsonText::string(std::string_view text) { return raw(core::dump(core::Json(text))); }

JsonText& JsonText::number(std::uint64_t value) { return raw(std::to_string(value)); }

void append_special_tokens(JsonText& json, const std::vector<SpecialToken>& tokens) {
  json.key("added_tokens").open('[');
  for (const auto& token : tokens) {
    json.item().open('{');
    json.key("content").string(token.content).key("id").number(token.id);
    json.key("lstrip").raw("false").key("normalized").raw("false").key("rstrip").raw("false");
    json.key("single_word").raw("false").key("special").raw("true");
    json.close('}');
  }
  json.close(']');
}

void append_vocabulary(JsonText& json, const Vocabulary& vocabulary,
    const std::vector<std::string>& names, const std::vector<bool>& outside) {
  // Most names differ in their first bytes, which are compared as one number.
  struct Name {
    std::uint64_t start;
    std::uint32_t id;
  };
  std::vector<Name> sorted;
  sorted.reserve(vocabulary.count());
  for (std::uint32_t id = 0; id < vocabulary.size(); ++id) {
    if (!vocabulary.has(id) || (!outside.empty() && outside[id])) continue;
    std::uint64_t start = 0;
    for (std::size_t i = 0; i < 8; ++i)
      start = start << 8 | (i < names[id].size() ? static_cast<unsigned char>(names[id][i]) : 0);
    sorted.push_back({start, id});
  }
  std::sort(sorted.begin(), sorted.end(), [&](const Name& a, const Name& b) {
    return a.start != b.start ? a.start < b.start : names[a.id] < names[b.id];
  });
  json.open('{');
  for (const Name& name : sorted) json.key(names[name.id]).number(name.id);
  json.close('}');
}

namespace {

std::string_view bool_text(bool value) { return value ? "true" : "false"; }

void append_normal_step(JsonText& json, const NormalStep& step) {
  json.open('{');
  switch (step.what) {
    case NormalStep::What::nfc: json.key("type").string("NFC"); break;
    case NormalStep::What::nfkc: json.key("type").string("NFKC"); break;
    case NormalStep::What::lowercase: json.key("type").string("Lowercase"); break;
    case NormalStep::What::prepend:
      json.key("prepend").string(step.to).key("type").string("Prepend");
      break;
    case NormalStep::What::replace:
      json.key("content").string(step.to).key("pattern").open('{');
      json.key("String").string(step.from).close('}').key("type").string("Replace");
      break;
    case NormalStep::What::trim:
    case NormalStep::What::squeeze:
      json.key("content").string(step.what == NormalStep::What::trim ? "" : " ");
      json.key("pattern").open('{').key("Regex");
      json.string(step.what == NormalStep::What::trim ? kTrimmed : kSqueezed).close('}');
      json.key("type").string("Replace");
      break;
    case NormalStep::What::charsmap:
      json.key("precompiled_charsmap").string(to_base64(step.from));
      json.key("type").string("Precompiled");
      break;
  }
  json.close('}');
}

// Writes a template's special tokens around the sequence A, and around B in a pair.
void append_sequence(JsonText& json, const Tokenizer& tokenizer, bool pair) {
  const auto& around = tokenizer.text_template();
  const auto tokens = [&](const std::vector<std::uint32_t>& ids, int type) {
    for (const std::uint32_t id : ids) {
      json.item().open('{').key("SpecialToken").open('{');
      json.key("id").string(tokenizer.token(id)).key("type_id").number(static_cast<unsigned>(type));
      json.close('}').close('}');
    }
  };
  json.open('[');
  for (int i = 0; i < (pair ? 2 : 1); ++i) {
    tokens(around.begin, i);
    json.item().open('{').key("Sequence").open('{').key("id").string(i == 0 ? "A" : "B");
    json.key("type_id").number(static_cast<unsigned>(i)).close('}').close('}');
    tokens(around.end, i);
  }
  json.close(']');
}

}  // namespace

void append_added_tokens(
    JsonText& json, const TextSteps& steps, const std::vector<SpecialToken>& special) {
  if (steps.added().empty()) {
    append_special_tokens(json, special);
    return;
  }
  json.key("added_tokens").open('[');
  for (const AddedToken& token : steps.added()) {
    json.item().open('{').key("content").string(token.content).key("id").number(token.id);
    json.key("lstrip").raw(bool_text(token.lstrip));
    json.key("normalized").raw(bool_text(token.normalized));
    json.key("rstrip").raw(bool_text(token.rstrip));
    json.key("single_word").raw(bool_text(token.single_word));
    json.key("special").raw(bool_text(token.special)).close('}');
  }
  json.close(']');
}

std::vector<bool> outside_vocabulary(const TextSteps& steps, const Vocabulary& vocabulary) {
  std::vector<bool> outside(vocabulary.size());
  for (const AddedToken& token : steps.added()) outside[token.id] = !token.in_model;
  for (std::uint32_t id = 0; id < vocabulary.size(); ++id)
    if (vocabulary.is_nameless(id)) outside[id] = true;
  return outside;
}

void append_normalizer(JsonText& json, const Normalizer& normalizer) {
  json.key("normalizer");
  auto steps = normalizer.steps();
  if (normalizer.prefix_once())  // a pre-tokenizer makes the prefix
    std::erase_if(steps, [](auto& step) { return step.what == NormalStep::What::prepend; });
  if (steps.empty()) {
    json.raw("null");
  } else if (steps.size() == 1) {
    append_normal_step(json, steps[0]);
  } else {
    json.open('{').key("normalizers").open('[');
    for (const NormalStep& step : steps) append_normal_step(json.item(), step);
    json.close(']').key("type").string("Sequence").close('}');
  }
}

void append_split_step(JsonText& json, const SplitStep& step) {
  json.open('{');
  using What = SplitStep::What;
  if (step.what == What::numbers || step.what == What::each_number) {
    json.key("individual_digits").raw(bool_text(step.what == What::each_number));
    json.key("type").string("Digits");
  } else {
    constexpr std::string_view kNames[] = {
        "Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"};
    json.key("behavior").string(kNames[static_cast<std::size_t>(step.behaviour)]);
    json.key("invert").raw(bool_text(step.invert)).key("pattern").open('{');
    json.key(step.what == What::string ? "String" : "Regex");
    json.string(step.what == What::gpt2 ? pattern_of(Split::Kind::gpt2) : step.text).close('}');
    json.key("type").string("Split");
  }
  json.close('}');
}

void append_rules_split(JsonText& json, const TextSteps& steps, const std::string& pattern) {
  const auto& normalizer = steps.normalizer();
  json.key("pre_tokenizer");
  if (!normalizer.prefix_once() && pattern.empty()) {
    json.raw("null");
    return;
  }
  json.open('{').key("pretokenizers").open('[');
  if (normalizer.prefix_once()) {
    json.item().open('{').key("prepend_scheme").string("first").key("replacement");
    json.string(normalizer.steps().back().to).key("split").raw("false");
    json.key("type").string("Metaspace").close('}');
  }
  if (!pattern.empty())
    append_split_step(json.item(), {.what = SplitStep::What::pattern, .text = pattern});
  json.close(']').key("type").string("Sequence").close('}');
}

void append_template(JsonText& json, const Tokenizer& tokenizer) {
  json.key("post_processor");
  const auto& around = tokenizer.text_template();
  if (around.empty()) {
    json.raw("null");
    return;
  }
  json.open('{').key("pair");
  append_sequence(json, tokenizer, true);
  json.key("single");
  append_sequence(json, tokenizer, false);
  std::vector<std::uint32_t> ids = around.begin;
  ids.insert(ids.end(), around.end.begin(), around.end.end());
  std::sort(ids.begin(), ids.end(),
      [&](std::uint32_t a, std::uint32_t b) { return tokenizer.token(a) < tokenizer.token(b); });
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  json.key("special_tokens").open('{');
  for (const std::uint32_t id : ids) {
    json.key(tokenizer.token(id)).open('{').key("id").string(tokenizer.token(id));
    json.key("ids").open('[').item().number(id).close(']').key("tokens").open('[').item();
    json.string(tokenizer.token(id)).close(']').close('}');
  }
  json.close('}').key("type").string("TemplateProcessing").close('}');
}

}  // namespace text
