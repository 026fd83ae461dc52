#include "train/job.h"

#include "core/file_text.h"
#include "model/adapter.h"
#include "model/tokenizer_file.h"
#include "nn/base/runtime.h"
#include "nn/layers/layer_memory.h"
#include "shard/unpacked_source.h"
#include "store/targets.h"
#include "text/formats/tokenizer_json.h"
#include "train/memory_rows.h"

namespace train {
namespace {

// Returns the text that the targets say they are for, or an empty string.
std::string text_of(const shard::Dataset& targets) {
  std::string text;
  for (const auto& entry : targets.provenance())
    if (entry.value("program", "") == store::kTargetsProgram && entry.contains("inputs") &&
        !entry["inputs"].empty() && entry["inputs"][0].is_string())
      text = entry["inputs"][0].get<std::string>();
  return text;
}

// Refuses a text, which Dataset would otherwise tokenize.
std::vector<std::string> no_text(const std::string& path) {
  shard::refuse_text(path, "targets of build-targets");
  return {path};
}

// Model options that may differ from the loaded model's: they only affect training.
const std::set<std::string> kTrainingOnly = {"dropout", "attention-dropout", "activation-dropout",
    "head-dropout", "adaptive-softmax-dropout"};

// The model of --from, with the dropout rates of the command line.
struct From {
  std::shared_ptr<nn::Model> model;
  std::string fingerprint, family;
  model::Carried carried;
};

// Reports an impossible shape as an error of a flag instead of a model's config.json.
std::shared_ptr<nn::Model> new_model(const nn::ModelOptions& options, std::int64_t vocabulary) {
  try {
    return std::make_shared<nn::Model>(options, vocabulary);
  } catch (const core::Error& error) {
    if (error.code() != core::Code::bad_config) throw;
    core::bad_usage("--{}", error.what());
  }
}

From model_from(const Job& job, const shard::Dataset& data, std::string& tokenizer) {
  const auto loaded = model::load(job.from, torch::kCPU, torch::kFloat32, job.adapter);
  model::check_tokenizer(loaded, data.header(), data.name());
  if (!loaded.tokenizer.empty()) tokenizer = loaded.tokenizer;
  nn::ModelOptions options = loaded.model->options, asked = options;
  const auto mine = core::list_fields(options), theirs = core::list_fields(asked);
  core::fields_from_json(theirs, job.asked, "train");
  // Tables of n-grams can be added: they begin at 0, so that the model computes what it did.
  const bool adds = !options.memory_layer.any() && asked.memory_layer.kind == "ngram";
  for (std::size_t i = 0; i < mine.all().size(); ++i) {
    const auto& field = mine.all()[i];
    const auto now = core::to_strings(theirs.all()[i]);
    if (kTrainingOnly.count(field.name) || (adds && field.name.starts_with("memory-layer"))) {
      core::assign(field, now);
    } else if (now != core::to_strings(field)) {
      const auto has = core::to_strings(field);
      core::bad_usage("--{}: {} has {}, not {}; leave the option out", field.name, job.from,
          has.empty() ? "its default" : fmt::format("{}", fmt::join(has, ",")),
          fmt::join(now, ","));
    }
  }
  auto model = new_model(options, loaded.model->vocabulary);
  const torch::NoGradGuard no_grad;
  std::map<std::string, torch::Tensor> from;
  for (const auto& [name, weight] : loaded.model->named_weights()) from[name] = weight;
  for (auto& [name, weight] : model->named_weights()) {
    torch::Tensor to = weight;
    if (const auto found = from.find(name); found != from.end()) to.copy_(found->second);
    else if (is_memory_table(name)) to.zero_();
  }
  return {model, loaded.fingerprint.hex(), loaded.family, model::carried_of(loaded)};
}

// Checks that the validation data have the vocabulary of the training data.
void expect_vocabulary(
    const shard::Dataset& data, const std::string& valid_name, const shard::Header& valid) {
  shard::expect_kind(valid, {data.header().kind}, valid_name);
  if (valid.tokenizer != data.header().tokenizer || valid.vocabulary != data.header().vocabulary)
    core::bad_data(
        "{} (tokenizer {}, {} types) does not belong to {} (tokenizer {}, {} types); "
        "tokenize both with the same -t",
        valid_name, model::tokenizer_fingerprint(valid.tokenizer), valid.vocabulary, data.name(),
        model::tokenizer_fingerprint(data.header().tokenizer), data.header().vocabulary);
}

bool reads_pairs(const Run& run) { return run.data->header().kind == shard::Kind::pairs; }

// Returns the rules of a row's first token. For pairs the text gives it: a target follows the end
// of its source.
TokenRules rules_of(const Run& run) {
  const bool pairs = reads_pairs(run);
  const auto& options = run.recipe.batches;
  if (pairs && options.begin != "auto")
    core::bad_usage("--bos: not supported for sentence pairs; leave it out");
  text::TokenizerPtr tokenizer;
  if (!run.tokenizer.empty()) tokenizer = text::parse_tokenizer(run.tokenizer, run.data->name());
  const auto begin = batch::chosen_beginning(options.begin, tokenizer.get(), run.data->name());
  return {options.ignored_targets, pairs ? -1 : begin.value_or(-1)};
}

void add_note(Run& run, const std::string& line) {
  run.note += run.note.empty() ? line : "; " + line;
}

// Selects the targets of marked data.
void choose_targets(Run& run) {
  const std::string& loss_on = run.recipe.batches.loss_on;
  const auto& data = *run.data;
  if (!data.header().marked) {
    if (loss_on == "marked")
      core::bad_usage(
          "--loss-on marked: {} has no marks; encode it with tokenize --loss-on", data.name());
    return;
  }
  const auto& documents = data.documents();
  const auto marked =
      core::sum_of(documents.marks, [](const auto& mark) { return mark.end - mark.begin; });
  if (loss_on == "all")
    return add_note(
        run, fmt::format("--loss-on all: learns all {} tokens, not only the {} marked ones",
                 data.size(), marked));
  if (marked == 0)
    core::bad_data(
        "{}: has no marked tokens; to learn all tokens, give --loss-on all", data.name());
  // The first element of the data, or of each document, is never a target.
  const bool of_documents = run.recipe.batches.batches == "documents";
  const auto untold = [&](const shard::Span& mark) {
    return mark.end - mark.begin == 1 &&
           (mark.begin == 0 ||
               (of_documents && std::ranges::binary_search(documents.end, mark.begin)));
  };
  if (std::ranges::all_of(documents.marks, untold))
    core::bad_data("{}: nothing to learn: only first tokens are marked, which nothing comes before",
        data.name());
  run.rules.marks = &documents;
  add_note(run,
      fmt::format("learns the {} of {} tokens that are marked; to learn all, give --loss-on all{}",
          marked, data.size(),
          run.valid && !run.valid->header().marked
              ? "; --valid has no marks, so all its tokens count"
              : ""));
}

core::OrderedJson training_facts(const Job& job, const Run& run, const std::string& from) {
  // The data come first: if they differ, other values differ as a consequence.
  core::OrderedJson training{{"data", run.data->fingerprint().hex()},
      {"tokenizer", model::tokenizer_fingerprint(run.data->header().tokenizer)},
      {"valid", run.valid ? run.valid->fingerprint().hex() : ""},
      {"order", run.order_shard ? run.order_shard->fingerprint().hex() : ""},
      {"targets", run.targets ? run.targets->fingerprint().hex() : ""}, {"from", from},
      {"seed", job.seed}, {"device", run.device.is_cpu() ? "cpu" : "cuda"}};
  const auto model = core::to_json(run.model->options), recipe = core::to_json(run.recipe);
  for (const auto& [key, value] : model.items()) training[key] = value;
  if (!run.further.empty()) training["further"] = run.further;
  if (run.background) training["background"] = run.background->fingerprint().hex();
  for (const auto& [key, value] : recipe.items()) {
    if (!run.lora && key.starts_with("lora")) continue;
    if (run.recipe.only_memory_rows == 0 && key == "only_memory_rows") continue;
    if (key != "order" && key != "targets") training[key] = value;  // paths; fingerprints count
  }
  return training;
}

// Opens the data, the order and the validation shard, and resolves what the recipe leaves open.
void open_data(const Job& job, Run& run) {
  run.data = std::make_unique<shard::Dataset>(job.shards);
  const auto& header = run.data->header();
  shard::expect_kind(header, {shard::Kind::tokens, shard::Kind::pairs}, run.data->name());
  auto& batches = run.recipe.batches;
  const bool open = batches.batches == "auto" && batches.order.empty() && !reads_pairs(run);
  if (open && nn::arch_facts(job.model.arch).layer_memory &&
      !nn::MemoryRule::parse(run.recipe.objective.memory).ext)
    batches.batches = "streams";
  resolve_batches(run.recipe, reads_pairs(run));
  if (header.vocabulary == 0)
    core::bad_data("{}: does not state its vocabulary size", run.data->name());
  if (!batches.order.empty()) {
    shard::refuse_text(batches.order, "an order of bm25-pack");
    run.order_shard = std::make_unique<shard::Dataset>(std::vector{batches.order});
    if (batches.segment == 0)
      batches.segment = static_cast<std::int64_t>(run.order_shard->header().unit_length);
  }
  if (batches.segment == 0) batches.segment = kSegment;
  if (!job.valid.empty()) {
    run.valid = std::make_unique<shard::Dataset>(std::vector{job.valid});
    expect_vocabulary(*run.data, run.valid->name(), run.valid->header());
  }
  run.order = make_order(batches, *run.data, run.order_shard.get(), job.seed);
  resolve_steps(run.recipe, run.order->batches_per_epoch());
  run.tokenizer = header.tokenizer;
}

// Throws Error{usage} for data and a recipe that the model cannot train on.
void check_model(const Run& run) {
  const bool pairs = reads_pairs(run);
  const auto& options = run.model->options;
  if (run.recipe.objective.label_smoothing > 0 && !options.vocabulary.cutoffs.empty())
    core::bad_usage("--label-smoothing: cannot be combined with --cutoffs");
  if (nn::arch_facts(options.arch).reads_source != pairs)
    core::bad_usage("--arch {}: trains on {}, but {} has {}", options.arch,
        pairs ? "tokens" : "pairs of sentences", run.data->name(), pairs ? "pairs" : "tokens");
  const auto context = run.model->architecture->context();
  if (pairs && context) check_pair_lengths(*run.data, *context);
  const std::int64_t segment = run.recipe.batches.segment;
  if (!pairs && context && segment > *context)
    core::bad_usage(
        "--segment: {} exceeds the model's {} positions; raise --context", segment, *context);
}

void open_targets(Run& run) {
  const std::string& path = run.recipe.objective.targets;
  if (path.empty()) return;
  if (reads_pairs(run)) core::bad_usage("--targets: not supported for sentence pairs");
  if (!run.model->head->linear())
    core::bad_usage("--targets: cannot be combined with --cutoffs or --head-bias");
  run.targets = std::make_unique<TargetShard>(path, *run.data);
}

// Returns "training" of the config.json of a run that began from a model, or null.
core::Json begun_training(const std::string& folder) {
  const std::string path = folder + "/config.json";
  if (folder.empty() || !core::exists(path)) return nullptr;
  const auto config = core::read_json(path);
  const auto own = config.is_object() ? config.value("tessera", core::Json()) : core::Json();
  const auto training = own.is_object() ? own.value("training", core::Json()) : core::Json();
  const bool from = training.is_object() && training.contains("from") && training["from"] != "";
  return from ? training : nullptr;
}

// Sets the learning rate and the number of steps for fine-tuning. The defaults for a new model harm
// a trained one. A run that began with other defaults keeps them.
void settle_fine_tuning(const Job& job, Run& run) {
  if (job.from.empty()) return;
  auto& recipe = run.recipe;
  const auto begun = begun_training(job.folder);
  const auto kept = [&](const char* key) {
    return begun.is_object() && begun.contains(key) && begun[key].is_number();
  };
  std::vector<std::string> taken, flags;
  if (recipe.optimiser.lr == 0) {
    // LoRA terms begin at 0 and need larger steps than trained weights, as few rows do.
    const std::string rate = recipe.optimiser.optimiser == "nag" ? "2e-3"
                             : recipe.only_memory_rows > 0       ? "0.1"
                             : recipe.lora.any()                 ? "2e-4"
                                                                 : "2e-5";
    recipe.optimiser.lr = std::stod(rate);
    if (kept("lr")) recipe.optimiser.lr = begun["lr"].get<double>();
    else taken.emplace_back("rate " + rate), flags.emplace_back("--lr");
  }
  if (recipe.steps == 0 && recipe.epochs == 0) {
    if (kept("steps")) recipe.steps = begun["steps"].get<std::int64_t>();
    else recipe.epochs = 1, taken.emplace_back("one epoch"), flags.emplace_back("--steps");
  }
  if (!taken.empty())
    run.note = fmt::format("--from: {}; {} {}", fmt::join(taken, ", "), fmt::join(flags, " and "),
        flags.size() > 1 ? "set others" : "sets another");
}

// Adds the LoRA terms that are trained instead of the model's weights.
void add_terms(const Job& job, const From& from, Run& run) {
  const auto expect = [](bool holds, const char* what) {
    if (!holds) core::bad_usage("--lora: {}", what);
  };
  if (!run.recipe.lora.any()) return;
  expect(!job.from.empty(), "--from MODEL is missing; give the model of the adapter");
  expect(job.adapter.empty(),
      "an adapter cannot be trained on an adapted model; merge it with model merge and give the "
      "result to --from");
  expect(!run.model->options.memory_layer.any(),
      "cannot be combined with memory layers, which no model family of transformers has; train all "
      "weights instead");
  const auto* const family = model::family_of(run.model->options, from.family);
  if (family == nullptr)
    core::bad_usage(
        "--lora: {} belongs to no model family of transformers, which an adapter needs; train all "
        "weights instead",
        job.from);
  run.part = run.lora = std::make_shared<Lora>(run.model, *family, run.recipe.lora);
}

// Trains rows of memory tables instead of all weights.
void choose_memory_rows(const Job& job, Run& run) {
  const std::int64_t most = run.recipe.only_memory_rows;
  if ((most == 0) != job.background.empty())
    core::bad_usage("--only-memory-rows and --background: each requires the other");
  if (most == 0) return;
  if (job.from.empty())
    core::bad_usage("--only-memory-rows: --from MODEL is missing; give the model to train");
  if (reads_pairs(run)) core::bad_usage("--only-memory-rows: not supported for sentence pairs");
  run.background = std::make_unique<shard::Dataset>(std::vector{job.background});
  expect_vocabulary(*run.data, run.background->name(), run.background->header());
  auto batches = run.recipe.batches;
  batches.order = "", batches.batches = "sequential";
  const auto order = make_order(batches, *run.background, nullptr, job.seed);
  run.model->to(job.device);
  const auto rows = std::make_shared<MemoryRows>(run.model, most);
  const auto read = rows->read_background(*run.background, *order, {{}, run.rules.begin});
  add_note(run, fmt::format("--background: {} micro-batches read {} of {} rows",
                    order->batches_per_epoch(), read, rows->rows()));
  run.part = rows;
}

// A run in the folder that has taken all its steps is trained further if more are asked for.
void settle_further(const Job& job, Run& run) {
  if (job.folder.empty() || run.recipe.lora.any()) return;
  const bool asked = job.recipe.steps > 0 || job.recipe.epochs > 0;
  run.further = further_from(job.folder, asked ? run.recipe.steps : 0);
  if (!run.further.empty()) run.recipe.further_from = run.further.back();
}

// What the model's folder says of the run.
void describe(const Job& job, const From& from, Run& run) {
  const auto& objective = run.recipe.objective;
  run.facts["memory"] = nn::MemoryRule::parse(objective.memory).name();
  run.facts["memory_temperature"] = objective.memory_temperature;
  run.facts["segment"] = run.recipe.batches.segment;
  // The model keeps its family, even if an earlier family has the same shape.
  const auto* const family = model::family_of(run.model->options);
  if (!run.lora) nn::say(model::without_family(run.model->options));
  const auto unused = nn::unused_options(run.model->options);
  if (!unused.empty() && job.from.empty())
    nn::say(fmt::format(
        "--{}: not used by --arch {}", fmt::join(unused, ", --"), run.model->options.arch));
  if (!from.family.empty() && (family == nullptr || family->type != from.family))
    run.facts["family"] = from.family;
  run.facts["training"] = training_facts(job, run, from.fingerprint);
  run.facts["builds"] = builds_of(job.folder);
  run.files = {{"data", {"FILE", run.data->name()}}, {"tokenizer", {"tokenizer", run.data->name()}},
      {"valid", {"--valid", job.valid}}, {"background", {"--background", job.background}},
      {"order", {"--order", run.recipe.batches.order}},
      {"targets", {"--targets", objective.targets}}, {"from", {"--from", job.from}}};
  run.config = model::make_config(run.model->options, run.model->vocabulary, run.facts,
      model::tokenizer_fingerprint(run.tokenizer), -1);
}

}  // namespace

TargetShard::TargetShard(const std::string& path, const shard::Dataset& data)
    : targets_(no_text(path)), vocabulary_(data.header().vocabulary) {
  const auto& header = targets_.header();
  shard::expect_kind(header, {shard::Kind::vectors}, targets_.name());
  const std::string text = text_of(targets_), own = data.fingerprint().hex();
  if (text.empty() || header.width % 2 != 0)
    core::bad_data("{}: not a file of targets; create it with build-targets", targets_.name());
  if (text != own)
    core::bad_data("{}: was built for a text with fingerprint {}, but {} has {}", targets_.name(),
        text, data.name(), own);
  if (targets_.size() / header.width != data.size())
    core::bad_data("{}: has targets of {} tokens, but {} has {}", targets_.name(),
        targets_.size() / header.width, data.name(), data.size());
}

nn::Teachers TargetShard::read(const std::vector<Row>& rows, std::int64_t steps) const {
  const auto width = static_cast<std::size_t>(targets_.header().width), keep = width / 2;
  const auto n = static_cast<std::int64_t>(rows.size()), words = static_cast<std::int64_t>(keep);
  nn::Teachers teachers{torch::zeros({n, steps, words}, torch::kInt64),
      torch::zeros({n, steps, words}, torch::kFloat32)};
  std::vector<float> read;
  for (std::int64_t r = 0; r < n; ++r) {
    const Row& row = rows[static_cast<std::size_t>(r)];
    read.resize(static_cast<std::size_t>(row.length) * width);
    if (read.empty()) continue;
    targets_.read((row.begin + 1) * width, std::span(read));  // input i's target is token i + 1
    auto* word = teachers.words.data_ptr<std::int64_t>() + r * steps * words;
    auto* share = teachers.shares.data_ptr<float>() + r * steps * words;
    for (std::int64_t i = 0; i < row.length; ++i, word += words, share += words) {
      const auto vector =
          std::span<const float>(read).subspan(static_cast<std::size_t>(i) * width, width);
      if (!store::is_distribution(vector.first(keep), vector.last(keep), vocabulary_))
        core::bad_data("{}: the target of token {} is not a distribution over {} tokens",
            targets_.name(), row.begin + 1 + static_cast<std::uint64_t>(i), vocabulary_);
      std::copy_n(vector.data() + keep, keep, share);
      std::transform(vector.begin(), vector.begin() + words, word,
          [](float id) { return static_cast<std::int64_t>(id); });
    }
  }
  return teachers;
}

void ValidationOptions::fields(core::FieldList& f) {
  f("valid-command", command,
      "command that scores the model at each validation ({} or $TESSERA_MODEL is its folder); "
      "its last printed number is the score");
  f("valid-better", better, "whether a higher or a lower score of --valid-command is better",
      {"higher", "lower"});
}

void Job::fields(core::FieldList& f) {
  model.fields(f);
  recipe.fields(f);
  {
    const auto in_layers = f.group("Memory layers");
    f("background", background, "with --only-memory-rows: text or shard that the model knows");
  }
  const auto in_run = f.group("Run");
  f("from", from, "initialize from a model (of Tessera or transformers): fine-tuning");
  model::adapter_field(f, adapter);
  f("valid", valid, "validation text or shard; the best weights are kept");
  validation.fields(f);
  thrift.fields(f);
}

Run prepare(const Job& job) {
  Run run;
  run.recipe = job.recipe;
  run.validation = job.validation;
  run.seed = job.seed;
  run.device = job.device;
  run.record = job.record;
  run.thrift = job.thrift;
  if (!job.adapter.empty() && job.from.empty())
    core::bad_usage("--adapter: requires --from MODEL, the model of the adapter");
  if (job.recipe.precision == "bfloat16")
    nn::note_half_products("--precision bfloat16",
        "factors are still rounded to bfloat16, without a gain in speed", job.device);
  settle_fine_tuning(job, run);
  open_data(job, run);
  settle_further(job, run);
  const From from = job.from.empty() ? From{} : model_from(job, *run.data, run.tokenizer);
  run.carried = from.carried;
  run.model = from.model
                  ? from.model
                  : new_model(job.model, static_cast<std::int64_t>(run.data->header().vocabulary));
  check_model(run);
  run.from = job.from;
  add_terms(job, from, run);
  open_targets(run);
  run.rules = rules_of(run);
  choose_targets(run);
  choose_memory_rows(job, run);
  describe(job, from, run);
  return run;
}

text::TokenizerPtr tokenizer_for_texts(const std::string& from,
    const std::vector<std::string>& files, const std::string& valid,
    const std::function<text::TokenizerPtr(const std::vector<std::string>&)>& learn) {
  if (!from.empty()) return model::tokenizer_of(from);
  std::vector<std::string> texts;
  for (const auto& file : files) {
    if (shard::is_text(file)) {
      texts.push_back(file);
    } else if (auto json = shard::File(file).header().tokenizer; !json.empty()) {
      return text::parse_tokenizer(json, file);
    }
  }
  if (texts.empty())
    core::bad_usage("{}: the shards contain no tokenizer; give --tokenizer", valid);
  return learn(texts);
}

}  // namespace train
