#include "infer/generate/generator_prompts.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/json.h"
#include "core/json_line.h"
#include "core/json_member.h"
#include "core/plain_text.h"
#include "infer/generate/generator_options.h"
#include "shard/unpacked_source.h"

namespace infer {
namespace {

// The member `key` by `read`; none where it is absent or null.
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
      core::fail(core::Code::bad_data,
                 "{}: stop: takes a text that is not empty, or a list of them", origin);
    stops.push_back(stop.get<std::string>());
  }
  return stops;
}

Prompt prompt_of(const std::string& text, const std::string& field, const std::string& origin) {
  const core::Json line = core::parse_json_line(text, origin, {field, "stop"});
  const auto whole = [&](const char* key, std::int64_t least, std::int64_t most) {
    return [=, &origin](const core::Json& value) {
      const auto number = value.is_number_integer() ? value.get<std::int64_t>() : least - 1;
      if (number < least || number > most)
        core::fail(core::Code::bad_data, "{}: {}: takes a whole number from {} to {}", origin, key,
                   least, most);
      return number;
    };
  };
  Prompt prompt;
  prompt.text = core::get<std::string>(line, field.c_str(), origin);
  prompt.origin = origin;
  prompt.id = member(line, "id", [&](const core::Json&) { return *core::member_text(text, "id"); });
  prompt.max_tokens = member(line, "max_tokens", whole("max_tokens", 1, kMostTokens));
  prompt.stop =
      member(line, "stop", [&](const core::Json& value) { return stops_of(value, origin); });
  prompt.temperature = member(line, "temperature", [&](const core::Json& value) {
    const double number = value.is_number() ? value.get<double>() : -1;
    if (!(number >= 0 && number <= kHottest))
      core::fail(core::Code::bad_data, "{}: temperature: takes a number from 0 to {}", origin,
                 kHottest);
    return number;
  });
  const auto seed = member(line, "seed", whole("seed", 0, std::int64_t{1} << 62));
  if (seed) prompt.seed = static_cast<std::uint64_t>(*seed);
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

std::vector<Prompt> PromptReader::next(std::size_t most) {
  std::vector<Prompt> prompts;
  while (!given_.empty() && prompts.size() < most) {
    prompts.emplace_back();
    prompts.back().text = std::move(given_.back());
    prompts.back().origin = "--prompt";
    given_.pop_back();
  }
  while (lines_ && prompts.size() < most && (prompts.empty() || lines_->ready())) {
    auto line = lines_->next();
    if (!line) break;
    if (!jsonl_) {
      if (const auto fault = any_bytes_ ? "" : core::utf8_fault(*line); !fault.empty())
        core::fail(core::Code::bad_data, "{}: {}", lines_->origin(), fault);
      Prompt& prompt = prompts.emplace_back();
      prompt.text = std::move(*line), prompt.origin = lines_->origin();
    } else if (line->find_first_not_of(" \t\r") != line->npos) {
      prompts.push_back(prompt_of(*line, field_, lines_->origin()));
    }
  }
  return prompts;
}

void PromptOptions::fields(core::FieldList& f) {
  f.positional("FILE", file, "prompts; - or none is stdin");
  f("prompt", prompt, "the prompt itself, instead of a FILE");
  f("format", format, "of FILE: lines, jsonl; auto: jsonl if its name says so",
    {"auto", "lines", "jsonl"});
  f("field", field, "jsonl: the member that is the prompt");
}

PromptReader PromptOptions::open(const std::set<std::string>& given) const {
  using core::Code;
  if (given.count("prompt") > 0) {
    if (!file.empty()) core::fail(Code::usage, "give --prompt or a FILE, not both");
    return PromptReader({prompt});
  }
  try {
    return {file.empty() ? "-" : file, format, field};
  } catch (const core::Error& error) {
    if (error.code() != Code::no_input) throw;
    core::fail(Code::no_input, "{}; a prompt itself goes behind --prompt", error.what());
  }
}

}  // namespace infer
