// gen-ruler: writes questions about long texts that contain the answers.
//
// stdout, or -o: JSON lines. A line is a problem with its prompt and its expected answers, for
// sample(1) and eval-ruler(1), or the prompt with its answer, for training.

#include "cli/progress.h"
#include "core/plain_text.h"
#include "shard/unpacked_source.h"
#include "task/ruler_documents.h"
#include "text/formats/tokenizer_json.h"

namespace {

struct Options {
  std::int64_t n = 500, first = 0;
  std::string task = "documents", tokenizer = "bytes", form = "problems";
  task::RulerLength length{.answer = 0};
  task::NeedleShape needles;
  std::string haystack = "noise", text, documents;
  std::int64_t chains = 1, hops = 4;
  void fields(core::FieldList& f) {
    f("count", n, "number of problems").between(0, 1e12).short_name = 'n';
    f("first", first, "number of the first problem; use another range for a test set")
        .between(0, 1e12);
    f("task", task, "task of the problems", {"needles", "variables", "documents"});
    f("length", length.tokens, "maximum tokens of a prompt with its answer").between(16, 1e9);
    f("tokenizer", tokenizer, "tokenizer.json, or `bytes`, that counts the tokens").short_name =
        't';
    f("answer-tokens", length.answer,
        "tokens of --length reserved for the answer; auto: 128, 30 or 32, by task, or the answer's "
        "number of tokens if that is larger")
        .auto_or(1, 1e9);
    f("shots", length.shots, "solved examples before each problem, with little filler")
        .between(0, 100);
    f("output-format", form,
        "problems: for evaluation; answered: each prompt with its answer as one text, for "
        "training; completions: prompt and completion, for tokenize --loss-on completion",
        {"problems", "answered", "completions"});
    f("haystack", haystack, "needles: text around the needles", {"noise", "needles", "text"});
    f("text", text, "needles: file of the text, for --haystack text");
    needles.fields(f);
    f("chains", chains, "variables: number of chains").between(1, 1000);
    f("hops", hops, "variables: assignments from another variable in each chain").between(0, 1000);
    f("squad", documents,
        "documents: a file in SQuAD's format; without it, documents are generated");
  }
};

/// Returns the contents of a text file, compressed or not.
std::string text_of(const std::string& path) {
  return core::read_utf8(*shard::open_unpacked(path));
}

std::unique_ptr<task::RulerTask> task_of(const Options& options) {
  if (options.task == "variables")
    return std::make_unique<task::VariableTask>(options.chains, options.hops);
  if (options.task == "documents") {
    if (options.documents.empty()) return std::make_unique<task::MadeDocumentTask>();
    return std::make_unique<task::DocumentTask>(
        task::read_squad(text_of(options.documents), options.documents));
  }
  using Haystack = task::NeedleTask::Haystack;
  if (options.haystack != "text")
    return std::make_unique<task::NeedleTask>(options.needles,
        options.haystack == "noise" ? Haystack::noise : Haystack::needles,
        std::vector<std::string>());
  return std::make_unique<task::NeedleTask>(options.needles, Haystack::sentences,
      task::sentences_of(text_of(options.text), options.text));
}

/// The published defaults.
std::int64_t answer_tokens(const Options& options) {
  if (options.length.answer > 0) return options.length.answer;
  return options.task == "needles" ? 128 : options.task == "variables" ? 30 : 32;
}

core::OrderedJson line_of(const Options& options, const task::RulerTask& task, std::int64_t number,
    const task::FittedProblem& made) {
  const auto& [prompt, answers] = made.problem;
  const auto answer = task.answer_of(made.problem);
  if (options.form == "answered") return {{"text", prompt + answer}};
  if (options.form == "completions") return {{"prompt", prompt}, {"completion", answer}};
  return {{"id", number}, {"task", options.task}, {"length", options.length.tokens},
      {"prompt", prompt}, {"outputs", answers}, {"max_tokens", made.answer},
      {"tokens", made.tokens}};
}

int generate(const Options& options, const cli::Context& context) {
  if ((options.haystack == "text") == options.text.empty())
    core::bad_usage("--haystack text: requires --text FILE, and --text requires it");
  const auto task = task_of(options);
  const auto tokenizer = text::load_tokenizer(options.tokenizer);
  const auto encoder = tokenizer->encoder();
  std::vector<std::uint32_t> ids;
  const auto count = [&](std::string_view text) {
    ids.clear();
    encoder->encode(text, ids);
    return static_cast<std::int64_t>(ids.size());
  };
  auto length = options.length;
  length.longer_answers = length.answer == 0;
  length.answer = answer_tokens(options);
  core::Output out(context.output);
  cli::Progress progress(context, "making", "problems", static_cast<std::uint64_t>(options.n));
  for (std::int64_t i = options.first; i < options.first + options.n; ++i) {
    const auto made = task::fitted_problem(*task, length, static_cast<std::uint64_t>(context.seed),
        static_cast<std::uint64_t>(i), count);
    out.write(core::dump(line_of(options, *task, i, made)) + "\n");
    progress.update(static_cast<std::uint64_t>(i - options.first + 1));
  }
  out.commit();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return cli::run(argc, argv,
      {"gen-ruler", "Generate questions about long texts, as RULER does.",
          "  gen-ruler --length 4096 -t model/tokenizer.json -n 100 -o problems.jsonl\n"
          "  gen-ruler --task needles --haystack needles --first 5000 -n 100\n"
          "  gen-ruler --output-format answered -n 5000 | tokenize -t bytes --format "
          "jsonl -o train.shard.zst",
          {"tokenizer", "text", "squad"}},
      options, generate);
}
