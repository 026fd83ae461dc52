#include "serve/members.h"

namespace serve {
namespace {

using core::Json;

constexpr std::string_view kAnything = "*";

// Members of requests to OpenAI, vLLM and llama.cpp that are not read here, with the values that
// ask for nothing: a JSON list, or kAnything for a member that never changes an answer here. null,
// [], {} and "" always ask for nothing. serve(1) has the same table.
const std::map<std::string_view, std::string_view>& known_members() {
  static const std::map<std::string_view, std::string_view> kKnown = {
      // Who asks, and how the server should work.
      {"cache_prompt", kAnything},
      {"cache_salt", kAnything},
      {"id_slot", kAnything},
      {"metadata", kAnything},
      {"n_cache_reuse", kAnything},
      {"parallel_tool_calls", kAnything},
      {"parse_tool_calls", kAnything},
      {"penalize_nl", kAnything},
      {"prediction", kAnything},
      {"priority", kAnything},
      {"prompt_cache_key", kAnything},
      {"prompt_cache_options", kAnything},
      {"prompt_cache_retention", kAnything},
      {"request_id", kAnything},
      {"return_progress", kAnything},
      {"safety_identifier", kAnything},
      {"service_tier", kAnything},
      {"spaces_between_special_tokens", kAnything},
      {"store", kAnything},
      {"timings_per_token", kAnything},
      {"user", kAnything},
      // Details of what is refused.
      {"dry_allowed_length", kAnything},
      {"dry_base", kAnything},
      {"dry_penalty_last_n", kAnything},
      {"dry_sequence_breakers", kAnything},
      {"dynatemp_exponent", kAnything},
      {"mirostat_eta", kAnything},
      {"mirostat_tau", kAnything},
      {"xtc_threshold", kAnything},
      // How tokens are chosen and texts end.
      {"bad_words", "[]"},
      {"dry_multiplier", "[0]"},
      {"dynatemp_range", "[0]"},
      {"ignore_eos", "[false]"},
      {"include_stop_str_in_output", "[false]"},
      {"length_penalty", "[1]"},
      {"logits_processors", "[]"},
      {"lora", "[]"},
      {"min_keep", "[0, 1]"},
      {"min_p", "[0]"},
      {"min_tokens", "[0]"},
      {"mirostat", "[0]"},
      {"n_discard", "[0]"},
      {"n_indent", "[0]"},
      {"n_keep", "[0]"},
      {"repeat_penalty", "[1]"},
      {"repetition_detection", "[]"},
      {"samplers", "[]"},
      {"stop_token_ids", "[]"},
      {"t_max_predict_ms", "[0, -1]"},
      {"tfs_z", "[1]"},
      {"top_n_sigma", "[0, -1]"},
      {"typ_p", "[1]"},
      {"typical_p", "[1]"},
      {"use_beam_search", "[false]"},
      {"xtc_probability", "[0]"},
      // Grammars and tools.
      {"function_call", R"(["none", "auto"])"},
      {"functions", "[]"},
      {"grammar", "[]"},
      {"grammar_lazy", "[false]"},
      {"grammar_triggers", "[]"},
      {"guided_choice", "[]"},
      {"guided_decoding_backend", "[]"},
      {"guided_grammar", "[]"},
      {"guided_json", "[]"},
      {"guided_regex", "[]"},
      {"guided_whitespace_pattern", "[]"},
      {"json_schema", "[]"},
      {"preserved_tokens", "[]"},
      {"response_format", R"([{"type": "text"}])"},
      {"structural_tag", "[]"},
      {"structured_outputs", "[]"},
      {"tool_choice", R"(["none", "auto"])"},
      {"tools", "[]"},
      {"web_search_options", "[]"},
      // What the model reads.
      {"add_generation_prompt", "[true]"},
      {"chat_template", "[]"},
      {"chat_template_kwargs", "[]"},
      {"continue_final_message", "[false]"},
      {"documents", "[]"},
      {"image_data", "[]"},
      {"media_io_kwargs", "[]"},
      {"mm_processor_kwargs", "[]"},
      {"multi_modal_data", "[]"},
      {"prompt_embeds", "[]"},
      {"reasoning_effort", "[]"},
      {"suffix", "[]"},
      {"thinking_forced_open", "[false]"},
      {"truncate_prompt_tokens", "[]"},
      {"verbosity", R"(["medium"])"},
      // What the answer has.
      {"audio", "[]"},
      {"include_reasoning", "[true]"},
      {"kv_transfer_params", "[]"},
      {"logprob_token_ids", "[]"},
      {"modalities", R"([["text"]])"},
      {"moderation", "[]"},
      {"n_probs", "[0]"},
      {"post_sampling_probs", "[false]"},
      {"prompt_logprobs", "[0]"},
      {"reasoning_format", R"(["none", "auto"])"},
      {"response_fields", "[]"},
      {"return_token_ids", "[false]"},
      {"return_tokens", "[false]"},
      {"return_tokens_as_token_ids", "[false]"},
      {"skip_special_tokens", "[true]"},
      {"thinking_token_budget", "[]"},
      {"vllm_xargs", "[]"},
  };
  return kKnown;
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
  const auto& known_ones = known_members();
  for (const auto& [name, value] : json_.items()) {
    if (value.is_null() || asked_.contains(name)) continue;
    const auto known = known_ones.find(name);
    if (known == known_ones.end()) {
      if (name.starts_with("speculative.")) continue;
      refuse("{}: is not a member that this server knows; leave it out", name.substr(0, 80));
    }
    if (known->second == kAnything) continue;
    if (value.is_structured() && value.empty()) continue;
    if (value.is_string() && value.get_ref<const std::string&>().empty()) continue;
    const Json neutral = core::parse_json(known->second, name);
    if (std::find(neutral.begin(), neutral.end(), value) == neutral.end())
      refuse("{}: is not supported; leave it out", name);
  }
}

}  // namespace serve
