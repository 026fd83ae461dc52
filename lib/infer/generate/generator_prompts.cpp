#include "infer/generate/generator_prompts.h"

#include "core/json_line.h"
#include "core/plain_text.h"
#include "infer/loops/make_engine.h"
#include "model/tokenizer_file.h"
#include "shard/unpacked_source.h"

namespace infer {
namespace {

// Reads the member `key` with `read`. Returns nothing if it is absent or null.
template <class Read>
auto member(const core::Json& line, const char* key, Read read)
    -> std::optional<decltype(read(line))> {
  const auto found = line.find(key);
  if (found == line.end() || found->is_null()) return std::nullopt;
  return read(*found);
}

std::vector<std::string> stops_of(const core::Json& value, const std::string& origin) {
  std::vector<std::string> stops;
  const core::Json list = value.is_array() ? value : core::Json::array({value});
  for (const auto& stop : list) {
    if (!stop.is_string() || stop.get_ref<const std::string&>().empty())
      core::bad_data("{}: stop: takes a non-empty text, or a list of them", origin);
    stops.push_back(stop.get<std::string>());
  }
  return stops;
}

// Reads everything except the text.
Prompt prompt_of(const std::string& text, const core::Json& line, const std::string& origin) {
  const auto whole = [&](const char* key, std::int64_t least, std::int64_t most) {
    return [=, &origin](const core::Json& value) {
      const auto number = value.is_number_integer() ? value.get<std::int64_t>() : least - 1;
      if (number < least || number > most)
        core::bad_data("{}: {}: takes a whole number from {} to {}", origin, key, least, most);
      return number;
    };
  };
  Prompt prompt;
  prompt.origin = origin;
  prompt.id = member(line, "id", [&](const core::Json&) { return *core::member_text(text, "id"); });
  prompt.max_tokens = member(line, "max_tokens", whole("max_tokens", 1, kMostTokens));
  prompt.stop =
      member(line, "stop", [&](const core::Json& value) { return stops_of(value, origin); });
  prompt.temperature = member(line, "temperature", [&](const core::Json& value) {
    const double number = value.is_number() ? value.get<double>() : -1;
    if (!(number >= 0 && number <= kHottest))
      core::bad_data("{}: temperature: takes a number from 0 to {}", origin, kHottest);
    return number;
  });
  const auto seed = member(line, "seed", whole("seed", 0, std::int64_t{1} << 62));
  if (seed) prompt.seed = static_cast<std::uint64_t>(*seed);
  prompt.special = member(line, "special", [&](const core::Json& value) {
    if (!value.is_boolean()) core::bad_data("{}: special: takes true or false", origin);
    return value.get<bool>();
  });
  return prompt;
}

}  // namespace

PromptReader::PromptReader(const std::string& path, const std::string& format, std::string field)
    : lines_(shard::open_unpacked(path)),
      jsonl_(format == "jsonl" || (format == "auto" && core::is_named_json_lines(path))),
      field_(std::move(field)) {}

PromptReader::PromptReader(std::vector<std::string> prompts) : given_(std::move(prompts)) {
  std::reverse(given_.begin(), given_.end());
}

void PromptReader::talk(text::Chat chat, std::string system) {
  chat_ = std::move(chat);
  system_ = std::move(system);
}

void PromptReader::answered(const std::string& text) {
  turns_.push_back({{"role", "assistant"}, {"content", text}});
}

void PromptReader::say(Prompt& prompt, core::OrderedJson messages) const {
  prompt.text = chat_->prompt(std::move(messages), system_, prompt.origin, &prompt.passages);
  prompt.whole = true;
}

// Reads a JSON line.
Prompt PromptReader::read(const std::string& line, const std::string& origin) const {
  std::vector<std::string_view> used = {field_, "stop"};
  if (chat_) used.emplace_back("messages");
  const core::Json json = core::parse_json_line(line, origin, used);
  Prompt prompt = prompt_of(line, json, origin);
  const bool has_prompt = json.is_object() && json.contains(field_);
  const bool talks = json.is_object() && json.contains("messages");
  if (talks && has_prompt && chat_)
    core::bad_data("{}: \"{}\" and \"messages\" exclude each other; give one", origin, field_);
  if (talks && !has_prompt && !chat_)
    core::bad_data("{}: messages: a conversation requires --chat", origin);
  if (talks && chat_) {
    say(prompt, text::parse_messages(*core::member_text(line, "messages"), origin));
  } else {
    prompt.text = core::get<std::string>(json, field_.c_str(), origin);
    if (chat_) say(prompt, text::user_turn(prompt.text));
  }
  return prompt;
}

std::vector<Prompt> PromptReader::next(std::size_t most) {
  std::vector<Prompt> prompts;
  if (ask_) {
    most = 1;
    ask_();
  }
  while (!given_.empty() && prompts.size() < most) {
    prompts.emplace_back();
    prompts.back().text = std::move(given_.back());
    prompts.back().origin = "--prompt";
    if (chat_) say(prompts.back(), text::user_turn(prompts.back().text));
    given_.pop_back();
  }
  while (lines_ && prompts.size() < most && (prompts.empty() || lines_->ready())) {
    auto line = lines_->next();
    if (!line) break;
    if (!jsonl_) {
      if (const auto fault = any_bytes_ ? "" : core::utf8_fault(*line); !fault.empty())
        core::bad_data("{}: {}", lines_->origin(), fault);
      Prompt& prompt = prompts.emplace_back();
      prompt.text = std::move(*line), prompt.origin = lines_->origin();
      if (ask_) {
        turns_.push_back(text::user_turn(prompt.text)[0]);
        say(prompt, turns_);
      } else if (chat_) {
        say(prompt, text::user_turn(prompt.text));
      }
    } else if (line->find_first_not_of(" \t\r") != line->npos) {
      prompts.push_back(read(*line, lines_->origin()));
    }
  }
  return prompts;
}

void PromptOptions::fields(core::FieldList& f) {
  f.positional("FILE", file, "prompts; stdin if - or not given");
  f("prompt", prompts, "prompt, instead of FILE; may be repeated");
  f("format", format, "format of FILE; auto: jsonl if its name ends in .jsonl, else lines",
      {"auto", "lines", "jsonl"});
  f("field", field, "jsonl: field of the prompt");
  f("chat", chat,
      "format each prompt as a user's turn, and the \"messages\" of a JSON line as a "
      "conversation, by the model's chat template");
  f("system", system, "--chat: system message before each conversation").needs("chat");
}

PromptReader PromptOptions::open(const GeneratorOptions& options, const std::string& folder,
    text::Chat::Revision revision) const {
  if (chat && (options.translation.source || options.begin != "auto"))
    core::bad_usage("--{}: cannot be combined with --chat, whose template makes the whole text",
        options.translation.source ? "source" : "bos");
  PromptReader reader = open_plain();
  if (!chat) return reader;
  auto own = model::chat_of(folder);
  own.revise_by(std::move(revision));
  reader.talk(std::move(own), system);
  return reader;
}

PromptReader PromptOptions::open_plain() const {
  using core::Code;
  if (!prompts.empty()) {
    if (!file.empty()) core::bad_usage("--prompt and FILE exclude each other; give one");
    return PromptReader(prompts);
  }
  try {
    return {file.empty() ? "-" : file, format, field};
  } catch (const core::Error& error) {
    if (error.code() != Code::no_input) throw;
    core::fail(Code::no_input, "{}; use --prompt for a prompt as text", error.what());
  }
}

SourceReader::SourceReader(TranslationOptions options, text::TokenizerPtr tokenizer,
    std::optional<std::int64_t> context, const std::string& name)
    : options_(options), tokenizer_(std::move(tokenizer)) {
  const auto end = tokenizer_->end_of_document();
  if (!end)
    core::bad_data(
        "{}: its tokenizer has no end-of-document token, which a translation starts with", name);
  end_ = *end;
  most_ = std::min(options_.max_source, context.value_or(options_.max_source));
}

Start SourceReader::read(std::uint64_t number, const std::string& line,
    const std::function<void(const std::string&)>& warn) const {
  const auto ids = tokenizer_->encode(line);
  Start start{number, {end_}, {ids.begin(), ids.end()}, 0};
  auto& source = start.source;
  source.push_back(end_);
  if (std::ssize(source) > most_) {
    const auto what =
        fmt::format("line {}: has {} tokens, more than {}", number + 1, source.size(), most_);
    if (!options_.truncate)
      core::bad_data(
          "{}; shorten it, give --truncate-source, or raise --max-source if the model has more "
          "positions",
          what);
    if (warn) warn(what + "; truncated");
    source.resize(static_cast<std::size_t>(most_));
    source.back() = end_;
  }
  const double most = options_.max_len_a * static_cast<double>(source.size()) + options_.max_len_b;
  start.most = std::max<std::int64_t>(1, static_cast<std::int64_t>(std::min(most, 1e9)));
  return start;
}

decltype(TurnModel::words) word_vectors(const model::Loaded& loaded) {
  const auto vectors = [loaded](const torch::Tensor& ids) {
    const torch::NoGradGuard no_gradient;
    auto& embedding = *loaded.model->architecture->embedding();
    const auto* const packed = packed_in(loaded);
    const auto* const table = packed == nullptr ? nullptr : packed->find(embedding.tables.at(0));
    if (table == nullptr) return embedding.forward_wide(ids.to(embedding.tables[0].device())).cpu();
    auto rows = torch::empty({ids.size(0), embedding.bands().d_model});
    for (std::int64_t i = 0; i < ids.size(0); ++i)
      table->row(ids[i].item<std::int64_t>(), rows[i].data_ptr<float>());
    return rows;
  };
  const auto size = loaded.model->architecture->embedding()->bands().vocabulary;
  const auto mean = vectors(torch::arange(0, size, size / 4096 + 1)).mean(0);
  const auto tokenizer = tokenizer_of(loaded, "compare words");
  return [=](const std::vector<std::string_view>& words) {
    std::vector<torch::Tensor> rows;
    for (const auto word : words) {
      auto ids = tokenizer->encode(" " + std::string(word));
      const auto of = torch::from_blob(ids.data(), std::ssize(ids), torch::kInt);
      rows.push_back(vectors(of).mean(0) - mean);
    }
    const auto all = torch::stack(rows);
    return torch::nan_to_num(all / all.norm(2, 1, /*keepdim=*/true));
  };
}

}  // namespace infer
