// clean-babistories: plain stories out of what a language model wrote.
//
// FILE, or stdin: JSON lines (strings, objects with the story in --field, or the answers to a batch
// of chat completions), or texts with --separator between them. stdout, or -o: the stories that are
// kept, one a line, as JSON strings or as text. stderr: how many were dropped and cut, and why;
// with --json one line.

#include <fmt/format.h>

#include <string>
#include <vector>

#include "cli/progress.h"
#include "cli/run.h"
#include "core/error.h"
#include "core/io.h"
#include "core/json.h"
#include "task/story_cleaning.h"

namespace {

using core::Code;

struct Options {
  std::vector<std::string> files;
  std::string format = "jsonl", field = "story", prompt_field = "prompt";
  std::string separator = "<|endoftext|>", form = "json";
  std::int64_t least_words = 20;
  void fields(core::FieldList& f) {
    f.positional("FILE", files, "what the model wrote; none or -: stdin");
    f("format", format, "of the input; openai: the answers to a batch of chat completions",
      {"jsonl", "openai", "text"});
    f("field", field, "jsonl: the member that is the story, where a line is an object");
    f("prompt-field", prompt_field,
      "jsonl: the member that is the prompt, cut off the front of a story that repeats it");
    f("separator", separator, "text: what stands between stories");
    f("form", form, "of the output: a JSON string a line, or the text with the separator after it",
      {"json", "text"});
    f("least-words", least_words, "shorter stories are dropped");
  }
};

/// Pieces of a stream between separators, without holding more than one.
class Pieces {
 public:
  Pieces(core::ByteSource& source, std::string separator)
      : source_(source), separator_(std::move(separator)) {}

  bool next(std::string& piece) {
    for (;;) {
      const auto end = held_.find(separator_, searched_);
      if (end != std::string::npos) {
        piece.assign(held_, begin_, end - begin_);
        begin_ = searched_ = end + separator_.size();
        return true;
      }
      held_.erase(0, begin_);
      begin_ = 0;
      searched_ = held_.size() - std::min(held_.size(), separator_.size() - 1);
      if (ended_) {
        piece = std::exchange(held_, {});
        searched_ = 0;
        return !piece.empty();
      }
      const auto old = held_.size();
      held_.resize(old + kRead);
      const auto got = source_.read(std::as_writable_bytes(std::span(held_.data() + old, kRead)));
      held_.resize(old + got);
      ended_ = got == 0;
    }
  }

 private:
  static constexpr std::size_t kRead = 1 << 20;
  core::ByteSource& source_;
  std::string separator_, held_;
  std::size_t begin_ = 0, searched_ = 0;
  bool ended_ = false;
};

task::CleanStory clean_json(const std::string& line, const Options& options,
                            const std::string& origin) {
  const auto json = core::parse_json(line, origin);
  if (json.is_string())
    return task::clean_story(json.get_ref<const std::string&>(), {}, options.least_words);
  const auto story = core::get<std::string>(json, options.field.c_str(), origin);
  const bool asked = json.contains(options.prompt_field) && json[options.prompt_field].is_string();
  return task::clean_story(story, asked ? json[options.prompt_field].get<std::string>() : "",
                           options.least_words);
}

/// A line of the answers to a batch of chat completions; a request that failed is dropped.
task::CleanStory clean_answer(const std::string& line, const Options& options,
                              const std::string& origin) {
  static const core::Json::json_pointer kAnswer("/response/body/choices/0/message/content");
  const auto json = core::parse_json(line, origin);
  if (!json.is_object() || !json.contains("custom_id"))
    core::fail(Code::bad_data, "{}: no \"custom_id\" in it", origin);
  if (json.contains(kAnswer) && json[kAnswer].is_string())
    return task::clean_story(json[kAnswer].get<std::string>(), {}, options.least_words);
  task::CleanStory failed;
  failed.dropped = "no answer";
  return failed;
}

void write(core::Output& out, const task::CleanStory& story, const Options& options) {
  if (!story.dropped.empty()) return;
  if (options.form == "json")
    out.write(core::dump(core::Json(story.text)));
  else
    out.write(story.text + "\n" + options.separator);
  out.write("\n");
}

void report(const task::StoryTally& tally, const cli::Context& context) {
  core::OrderedJson figures;
  const auto mean = [&](std::uint64_t sum) {
    return tally.kept == 0 ? 0.0 : static_cast<double>(sum) / static_cast<double>(tally.kept);
  };
  figures["read"] = tally.read;
  figures["kept"] = tally.kept;
  figures["words"] = tally.words;
  figures["characters"] = tally.characters;
  figures["words_per_story"] = mean(tally.words);
  figures["characters_per_story"] = mean(tally.characters);
  if (context.json) {
    figures["dropped"] = tally.dropped;
    figures["cut"] = tally.cut;
    fmt::print(stderr, "{}\n", core::dump(figures));
    return;
  }
  cli::note(context, fmt::format("{} of {} stories kept, {} words, {:.1f} characters a story",
                                 tally.kept, tally.read, tally.words, mean(tally.characters)));
  for (const auto& [reason, count] : tally.dropped)
    cli::note(context, fmt::format("dropped, {}: {}", reason, count));
  for (const auto& [marker, count] : tally.cut)
    cli::note(context, fmt::format("cut at '{}': {}", marker, count));
}

int clean(const Options& options, const cli::Context& context) {
  if (options.format == "text" && options.separator.empty())
    core::fail(Code::usage, "--separator: a text needs one");
  task::StoryTally tally;
  core::Output out(context.output);
  const auto files = options.files.empty() ? std::vector<std::string>{"-"} : options.files;
  for (const auto& file : files) {
    const auto source = core::open_source(file);
    const bool lines = options.format != "text";
    const auto clean_line = options.format == "openai" ? clean_answer : clean_json;
    Pieces pieces(*source, lines ? "\n" : options.separator);
    std::string piece;
    for (std::uint64_t number = 1; pieces.next(piece); ++number) {
      if (piece.find_first_not_of(" \t\r\n") == std::string::npos) continue;
      const auto story =
          lines ? clean_line(piece, options, fmt::format("{}:{}", source->name(), number))
                : task::clean_story(piece, {}, options.least_words);
      tally.add(story);
      write(out, story, options);
    }
  }
  out.commit();
  report(tally, context);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return cli::run(argc, argv,
                  {"clean-babistories", "Plain stories out of what a language model wrote.",
                   "  clean-babistories stories.jsonl -o clean.jsonl\n"
                   "  clean-babistories --format text --form text TinyStories.txt | tokenize -t "
                   "gpt2.json --document-separator '<|endoftext|>' -o stories.shard.zst"},
                  options, clean);
}
