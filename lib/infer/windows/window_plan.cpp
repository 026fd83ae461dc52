#include "infer/windows/window_plan.h"

#include "infer/windows/windows.h"
#include "text/formats/tokenizer_json.h"

namespace infer {
namespace {

constexpr std::int64_t kDefaultWindow = 512;

// Data that already begin with the template's beginning do not get it again.
void choose_beginning(const WindowOptions& options, const shard::Dataset& data, WindowPlan& plan) {
  text::TokenizerPtr tokenizer;
  if (!data.header().tokenizer.empty())
    tokenizer = text::parse_tokenizer(data.header().tokenizer, data.name());
  const Protocol* const protocol = find_protocol(options.protocol);
  auto chosen = options.begin == "auto"
                    ? open_beginning(protocol, tokenizer.get(), data.name())
                    : batch::chosen_beginning(options.begin, tokenizer.get(), data.name());
  if (options.bos_at == "window") plan.window_token = chosen.value_or(plan.beginning);
  if (options.bos_at == "window" && plan.window_token < 0 && protocol == nullptr)
    core::bad_usage("--bos-at window: {} has no BOS token; give --bos", data.name());
  if (chosen && options.begin == "auto" && data.size() > 0) {
    std::uint32_t first = 0;
    data.read(0, std::span(&first, 1));
    if (first == *chosen) chosen = -1;
  }
  if (!chosen || *chosen == plan.beginning) return;
  plan.beginning = *chosen;
  plan.begin = *chosen < 0 ? "none" : tokenizer->token(static_cast<std::uint32_t>(*chosen));
}

void take(const Protocol& protocol, WindowPlan& plan) {
  if (plan.carried)
    core::bad_usage(
        "--protocol {}: cannot be combined with --carry on, since it encodes each window "
        "separately",
        protocol.name);
  plan.protocol = protocol.name;
  plan.layout = protocol.layout;
  if (plan.inputs() <= plan.unscored())
    core::bad_usage(
        "--window {}: with --protocol {}, no token of it is scored; give a larger window",
        plan.window, protocol.name);
}

}  // namespace

WindowPlan plan_windows(
    const WindowOptions& options, const nn::Model& model, const model::TrainingFacts& facts) {
  const auto& architecture = *model.architecture;
  const auto context = architecture.context();
  const Protocol* const protocol = find_protocol(options.protocol);
  WindowPlan plan{.window = options.window,
      .stride = options.stride,
      .positions = context.value_or(facts.positions),
      .by_document = options.restart == "document",
      .batch_tokens = options.batch_tokens};
  if (plan.window == 0 && protocol != nullptr)
    plan.window = protocol->window > 0 ? protocol->window : plan.positions;
  if (plan.window == 0) plan.window = facts.segment > 0 ? facts.segment : plan.positions;
  if (plan.window == 0) plan.window = kDefaultWindow;
  if (options.window == 0 && plan.positions > 0)
    plan.window = std::min(plan.window, plan.positions);
  plan.carried = options.carry == "auto"
                     ? protocol == nullptr && architecture.carry() == nn::Carry::constant
                     : options.carry == "on";
  if (plan.carried && architecture.carry() == nn::Carry::reencode)
    core::bad_usage(
        "--carry on: this model has absolute positions, so its state cannot be carried beyond a "
        "window; use --carry off and a smaller --stride");
  if (plan.carried && options.bos_at == "window")
    core::bad_usage(
        "--bos-at window: cannot be combined with a carried state; leave it out, or give "
        "--carry off");
  if (plan.stride == 0 && protocol != nullptr)
    plan.stride = std::min(protocol->stride, plan.window);
  if (plan.stride == 0) {
    // A State that forgets keeps window - stride tokens: with stride = window it would keep none.
    const bool forgets = plan.carried && architecture.carry() == nn::Carry::forget;
    plan.stride = forgets ? std::max<std::int64_t>(1, plan.window / 2) : plan.window;
  }
  if (context && plan.window > *context && architecture.carry() != nn::Carry::constant)
    core::bad_usage("--window {}: the model has only {} positions", plan.window, *context);
  if (plan.stride > plan.window)
    core::bad_usage("--stride {}: takes 1 to --window, {}", plan.stride, plan.window);
  if (protocol != nullptr) take(*protocol, plan);
  return plan;
}

WindowPlan plan_windows(const WindowOptions& options, const nn::Model& model,
    const model::TrainingFacts& facts, const shard::Dataset& data) {
  if (data.header().kind == shard::Kind::pairs)
    return pair_windows(data, model, options.batch_tokens);
  WindowPlan plan = plan_windows(options, model, facts);
  plan.beginning = beginning_token(data);
  plan.marked = plan.beginning >= 0;
  choose_beginning(options, data, plan);
  return plan;
}

void CutTexts::add(std::int64_t own_tokens, std::int64_t own_left_out) {
  ++texts;
  if (own_left_out == 0) return;
  ++cut;
  tokens += static_cast<std::uint64_t>(own_tokens);
  left_out += static_cast<std::uint64_t>(own_left_out);
}

std::string CutTexts::note(const char* what, std::int64_t window) const {
  if (cut == 0) return {};
  return fmt::format(
      "truncated {} of {} {} to the window of {} tokens: left out the first {} of their {} tokens; "
      "a larger --window keeps more",
      cut, texts, what, window, left_out, tokens);
}

std::string long_window_note(const WindowPlan& plan, const std::string& model) {
  if (plan.pairs || plan.positions == 0 || plan.window <= plan.positions) return {};
  return fmt::format("--window {}: {} has only {} positions; later tokens may be scored badly",
      plan.window, model, plan.positions);
}

core::Json to_json(const WindowPlan& plan) {
  if (plan.pairs) return {{"unit", "pair"}, {"batch-tokens", plan.batch_tokens}};
  core::Json json = {{"window", plan.window}, {"stride", plan.stride},
      {"restart", plan.by_document ? "document" : "none"}, {"carry", plan.carried ? "on" : "off"},
      {"batch_tokens", plan.batch_tokens}};
  if (!plan.begin.empty()) json["begin"] = plan.begin;
  if (plan.window_token >= 0) json["begin_of"] = "window";
  return json;
}

text::TokenizerPtr tokenizer_of(const model::Loaded& loaded, const char* what) {
  if (loaded.tokenizer.empty())
    core::bad_data("{}: has no tokenizer to {} with; give --tokenizer", loaded.folder, what);
  auto tokenizer = text::parse_tokenizer(loaded.tokenizer, loaded.folder + ": tokenizer");
  if (static_cast<std::int64_t>(tokenizer->size()) > loaded.model->vocabulary)
    core::bad_data("{}: the tokenizer has {} tokens, but the model has {}", loaded.folder,
        tokenizer->size(), loaded.model->vocabulary);
  return tokenizer;
}

std::optional<std::int64_t> open_beginning(
    const Protocol* protocol, const text::Tokenizer* tokenizer, const std::string& name) {
  if (protocol == nullptr) return batch::chosen_beginning("auto", tokenizer, name);
  std::optional<std::int64_t> chosen;
  if (protocol->beginning != Beginning::mark)
    chosen = batch::chosen_beginning("auto", tokenizer, name);
  if (chosen) return chosen;
  if (protocol->beginning == Beginning::template_only) return -1;
  if (tokenizer != nullptr) chosen = tokenizer->end_of_document();
  if (!chosen && tokenizer != nullptr && tokenizer->counts_newlines())
    chosen = tokenizer->id_of("<eos>");
  if (!chosen)
    core::bad_usage(
        "--protocol {}: the tokenizer of {} has no end-of-document token to use as BOS; give "
        "--bos",
        protocol->name, name);
  return chosen;
}

}  // namespace infer
