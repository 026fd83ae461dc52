#include "serve/members.h"

namespace serve {
namespace {

using core::Json;

constexpr std::string_view kAnything = "*";

// Members of requests to OpenAI, vLLM and llama.cpp that are not read here, by the values that ask
// for nothing: a JSON list, or kAnything for members that never change an answer here. null, [], {}
// and "" always ask for nothing. serve(1) has the same table.
constexpr std::pair<std::string_view, std::string_view> kKnown[] = {
    {kAnything,
        "cache_prompt cache_salt id_slot metadata n_cache_reuse parallel_tool_calls "
        "parse_tool_calls penalize_nl prediction priority prompt_cache_key prompt_cache_options "
        "prompt_cache_retention request_id return_progress safety_identifier service_tier "
        "spaces_between_special_tokens store timings_per_token user dry_allowed_length dry_base "
        "dry_penalty_last_n dry_sequence_breakers dynatemp_exponent mirostat_eta mirostat_tau "
        "xtc_threshold"},
    {"[]",
        "bad_words logits_processors lora repetition_detection samplers stop_token_ids "
        "functions grammar grammar_triggers guided_choice guided_decoding_backend "
        "guided_grammar guided_json guided_regex guided_whitespace_pattern json_schema "
        "preserved_tokens structural_tag structured_outputs tools web_search_options "
        "chat_template chat_template_kwargs documents image_data media_io_kwargs "
        "mm_processor_kwargs multi_modal_data prompt_embeds reasoning_effort suffix "
        "truncate_prompt_tokens audio kv_transfer_params logprob_token_ids moderation "
        "response_fields thinking_token_budget vllm_xargs"},
    {"[0, -1]", "t_max_predict_ms top_n_sigma"},
    {"[0, 1]", "min_keep"},
    {"[0]",
        "dry_multiplier dynatemp_range min_p min_tokens mirostat n_discard n_indent n_keep "
        "xtc_probability n_probs prompt_logprobs"},
    {"[1]", "length_penalty repeat_penalty tfs_z typ_p typical_p"},
    {"[false]",
        "ignore_eos include_stop_str_in_output use_beam_search grammar_lazy "
        "continue_final_message thinking_forced_open post_sampling_probs return_token_ids "
        "return_tokens return_tokens_as_token_ids"},
    {"[true]", "add_generation_prompt include_reasoning skip_special_tokens"},
    {R"(["medium"])", "verbosity"},
    {R"(["none", "auto"])", "function_call tool_choice reasoning_format"},
    {R"([["text"]])", "modalities"},
    {R"([{"type": "text"}])", "response_format"},
};

// Returns the values with which a member asks for nothing; empty for an unknown member.
std::string_view neutral_values(const std::string& name) {
  for (const auto& [values, names] : kKnown)
    if (name.find(' ') == name.npos &&
        fmt::format(" {} ", names).find(fmt::format(" {} ", name)) != name.npos)
      return values;
  return {};
}

}  // namespace

std::optional<std::int64_t> whole_number(const Json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    return number <= INT64_MAX ? std::optional(static_cast<std::int64_t>(number)) : std::nullopt;
  }
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (!value.is_number_float()) return std::nullopt;
  const double number = value.get<double>();
  if (!(std::abs(number) <= 0x1p53) || number != std::floor(number)) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

const Json* Members::find(const char* name) const {
  asked_.insert(name);
  const auto found = json_.find(name);
  return found == json_.end() || found->is_null() ? nullptr : &*found;
}

void Members::take(
    const char* name, std::int64_t least, std::int64_t most, std::int64_t& to) const {
  const Json* const value = find(name);
  if (value == nullptr) return;
  const auto number = whole_number(*value);
  if (!number || *number < least || *number > most)
    refuse("{}: takes a whole number from {} to {}", name, least, most);
  to = *number;
}

void Members::take(const char* name, double least, double most, double& to) const {
  const Json* const value = find(name);
  if (value == nullptr) return;
  const double number = value->is_number() ? value->get<double>() : std::nan("");
  if (!(number >= least && number <= most))
    refuse("{}: takes a number from {} to {}", name, least, most);
  to = number;
}

void Members::take(const char* name, bool& to) const {
  const Json* const value = find(name);
  if (value == nullptr) return;
  if (!value->is_boolean()) refuse("{}: takes true or false", name);
  to = value->get<bool>();
}

void Members::refuse_others() const {
  for (const auto& [name, value] : json_.items()) {
    if (value.is_null() || asked_.contains(name)) continue;
    const auto values = neutral_values(name);
    if (values.empty()) {
      if (name.starts_with("speculative.")) continue;
      refuse("{}: is not a member that this server knows; leave it out", name.substr(0, 80));
    }
    if (values == kAnything) continue;
    if (value.is_structured() && value.empty()) continue;
    if (value.is_string() && value.get_ref<const std::string&>().empty()) continue;
    const Json neutral = core::parse_json(values, name);
    if (std::find(neutral.begin(), neutral.end(), value) == neutral.end())
      refuse("{}: is not supported; leave it out", name);
  }
}

}  // namespace serve
