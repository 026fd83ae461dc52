#include "serve/token_api.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/json.h"
#include "serve/http_request.h"

namespace serve {
namespace {

constexpr int kWrong = 400;

core::OrderedJson text_of(const text::Tokenizer& tokenizer, std::optional<std::int64_t> id) {
  if (!id || *id < 0) return nullptr;
  return std::string(tokenizer.token(static_cast<std::uint32_t>(*id)));
}

}  // namespace

std::string tokenizer_info(const ServedTokenizer& served) {
  const auto& tokenizer = *served.tokenizer;
  return core::dump(core::OrderedJson{
      {"tokenizer_class", std::string(text::name_of(tokenizer.kind()))},
      {"bos_token", text_of(tokenizer, served.beginning)},
      {"eos_token", text_of(tokenizer, tokenizer.end_of_document())},
      {"model_max_length", served.window},
  });
}

std::string tokenize(const ServedTokenizer& served, const std::string& body) {
  const auto json = json_object(body);
  const auto prompt = json.find("prompt");
  if (prompt == json.end() || !prompt->is_string()) throw HttpError(kWrong, "prompt: takes a text");
  const auto special = json.find("add_special_tokens");
  if (special != json.end() && !special->is_boolean())
    throw HttpError(kWrong, "add_special_tokens: takes true or false");
  std::vector<std::int64_t> tokens;
  if (special == json.end() || special->get<bool>()) tokens = served.begin;
  for (const auto id : served.tokenizer->encode(prompt->get_ref<const std::string&>()))
    tokens.push_back(id);
  return core::dump(core::OrderedJson{
      {"count", tokens.size()}, {"max_model_len", served.window}, {"tokens", tokens}});
}

std::string detokenize(const ServedTokenizer& served, const std::string& body) {
  const auto json = json_object(body);
  const auto tokens = json.find("tokens");
  if (tokens == json.end() || !tokens->is_array())
    throw HttpError(kWrong, "tokens: takes a list of ids");
  std::vector<std::uint32_t> ids;
  for (const auto& id : *tokens) {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= served.tokenizer->size())
      throw HttpError(kWrong,
                      fmt::format("tokens: {} is no id of a token", core::dump(id).substr(0, 40)));
    ids.push_back(id.get<std::uint32_t>());
  }
  try {
    return core::dump(core::OrderedJson{{"prompt", served.tokenizer->decode(ids)}});
  } catch (const core::Error& error) {
    throw HttpError(kWrong, fmt::format("tokens: {}", error.what()));
  }
}

}  // namespace serve
