#include "infer/generate/generator_output.h"

#include "core/json.h"
#include "core/json_member.h"

namespace infer {
namespace {

std::string json_line(const Prompt& prompt, const Sample& sample) {
  core::OrderedJson json;
  json["prompt"] = prompt.text;
  json["sample"] = sample.sample;
  json["text"] = sample.text;
  json["tokens"] = sample.tokens;
  json["log_prob"] = sample.log_prob;
  json["finish"] = name_of(sample.finish);
  if (!sample.given.empty()) json["memories"] = memories_json(sample);
  if (!sample.cited.empty()) json["citations"] = to_json(sample.cited);
  if (auto spans = to_json(sample.spans); !spans.empty()) json["spans"] = std::move(spans);
  if (!sample.retrieved.empty()) json["retrieved"] = sample.retrieved;
  if (!prompt.passages.empty())
    json["retrieved"] =
        core::OrderedJson::array({core::OrderedJson{{"token", 0}, {"passages", prompt.passages}}});
  const std::string line = core::dump(json) + "\n";
  return prompt.id ? core::with_member("id", *prompt.id, line) : line;
}

}  // namespace

void OutputOptions::fields(core::FieldList& f) {
  f("echo", echo, "print each prompt before its continuation");
  f("separator", separator, "line printed between texts");
}

SampleOutput::SampleOutput(core::ByteSink& sink, OutputOptions options, std::int64_t samples,
                           std::function<void()> flush)
    : sink_(sink), options_(std::move(options)), samples_(samples), flush_(std::move(flush)) {}

void SampleOutput::begin(std::vector<Prompt> prompts) {
  for (auto& prompt : prompts) prompts_[begun_++] = std::move(prompt);
}

void SampleOutput::open(const Key& key) {
  open_ = true;
  if (options_.json) return;
  if (any_ && !options_.separator.empty()) sink_.write(options_.separator + "\n");
  if (options_.echo) sink_.write(prompts_[key.first].text);
}

void SampleOutput::close() {
  if (!options_.json) sink_.write("\n");
  open_ = false, any_ = true;
  if (++next_.second == samples_) next_ = {next_.first + 1, 0};
}

void SampleOutput::piece(std::uint64_t prompt, std::int64_t sample, std::string_view piece) {
  if (options_.json) return;
  held_[{prompt, sample}].text += piece;
  pass_on();
}

void SampleOutput::finished(const Sample& sample) {
  auto& held = held_[{sample.prompt, sample.sample}];
  held.whole = true;
  if (options_.json) held.text = json_line(prompts_[sample.prompt], sample);
  pass_on();
}

// Writes the next samples as far as they are available.
void SampleOutput::pass_on() {
  bool wrote = false;
  for (auto at = held_.find(next_); at != held_.end(); at = held_.find(next_)) {
    if (!open_) open(next_);
    sink_.write(at->second.text);
    at->second.text.clear();
    wrote = true;
    if (!at->second.whole) break;
    held_.erase(at);
    close();
  }
  if (wrote && flush_) flush_();
}

void SampleOutput::cut() {
  held_.clear();
  if (open_) close();
  if (flush_) flush_();
}

void SampleOutput::end() {
  while (!held_.empty()) {  // a search may find fewer samples than requested
    next_ = held_.begin()->first;
    pass_on();
  }
  next_ = {begun_, 0};
  prompts_.clear();
}

}  // namespace infer
