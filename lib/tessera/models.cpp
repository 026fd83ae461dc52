#include <thread>

#include "infer/generate/generator.h"
#include "infer/score/evaluation.h"
#include "infer/sources/cache_source.h"
#include "infer/sources/ensemble.h"
#include "infer/sources/ngram_source.h"
#include "infer/sources/store_source.h"
#include "model/tokenizer_file.h"
#include "tessera/evaluate.h"
#include "tessera/generate.h"
#include "tessera/inside.h"
#include "text/formats/tokenizer_json.h"

namespace tessera {
namespace {

std::optional<Process> g_process;

infer::MemoryOptions memory_options(const Memory& memory) {
  infer::MemoryOptions options;
  const auto flags = set_fields(core::list_fields(options), memory.options);
  const auto add = [](std::vector<std::string>& to, const std::vector<std::string>& more) {
    to.insert(to.end(), more.begin(), more.end());
  };
  add(options.of<infer::StoreOptions>().folders, memory.datastores);
  add(options.of<infer::NgramOptions>().folders, memory.ngrams);
  add(options.of<infer::EnsembleOptions>().models, memory.ensemble);
  if (memory.cache > 0) options.of<infer::CacheOptions>().positions = memory.cache;
  options.choose(flags);
  return options;
}

infer::Evaluation evaluation(const Model& model, const Memory& memory, const Options& settings) {
  infer::EvaluationOptions options;
  core::FieldList fields;
  options.windows.fields(fields);
  options.windows.protocol_field(fields);
  set_fields(fields, settings);
  options.memory = memory_options(memory);
  options.model = model.loaded().folder;
  options.adapter = model.settings().adapter;
  options.compute.device = model.settings().device;
  options.compute.precision = model.settings().dtype;
  model::read_texts_for(options.model, process().threads, send_note);
  return {options, model.loaded()};
}

}  // namespace

void start(int threads, std::uint64_t seed, std::function<void(const std::string&)> note) {
  translated([&] {
    Process begun;
    begun.threads = threads > 0 ? threads : std::max(1u, std::thread::hardware_concurrency());
    begun.seed = seed;
    if (note) begun.note = std::move(note);
    nn::start(begun.threads, seed, begun.note);
    g_process = std::move(begun);
  });
}

const Process& process() {
  if (!g_process) start();
  return *g_process;
}

void send_note(const std::string& note) {
  if (!note.empty()) process().note(note);
}

std::set<std::string> set_fields(const core::FieldList& fields, const Options& options) {
  const auto defaults = core::values_of(fields);
  std::map<std::string, std::vector<std::string>> values;
  for (const auto& [name, value] : options) values[name].push_back(value);
  for (const auto& [name, texts] : values) {
    const auto& all = fields.all();
    const auto field = std::ranges::find(all, name, &core::Field::name);
    if (field == all.end()) {
      const auto names = core::mapped(all, &core::Field::name);
      core::bad_usage("{}: no such option{}", name, core::did_you_mean(name, names));
    }
    core::assign(*field, texts);
  }
  core::expect_needed(fields, defaults);
  const auto given = core::keys_of(values);
  return {given.begin(), given.end()};
}

Model::Model(const std::string& path, const ModelSettings& settings)
    : settings_(settings), loaded_(translated([&] {
        process();
        return std::make_shared<const model::Loaded>(model::load(
            path, nn::device(settings.device), nn::dtype(settings.dtype), settings.adapter));
      })) {}

std::int64_t Model::vocabulary() const { return loaded_->model->vocabulary; }
std::int64_t Model::parameters() const { return loaded_->model->parameter_count(); }
std::string Model::fingerprint() const { return loaded_->fingerprint.hex(); }

Tokenizer Model::tokenizer() const {
  return translated([&] {
    if (loaded_->tokenizer.empty())
      core::bad_data("{}: the model has no tokenizer", loaded_->folder);
    return Tokenizer(text::parse_tokenizer(loaded_->tokenizer, loaded_->folder));
  });
}

Evaluation evaluate(const Model& model, const std::vector<std::string>& files, const Memory& memory,
    const Options& options) {
  return translated([&] {
    const auto work = evaluation(model, memory, options);
    const auto data = work.open(files);
    for (const auto& note : work.notes_on(data)) send_note(note);
    const auto totals = work.score(data, {});
    return Evaluation{totals.nats, totals.tokens, totals.loss(), totals.perplexity(),
        totals.bits_per_byte(), work.signature(data)};
  });
}

Memory tune(
    const Model& model, const std::string& valid, const Memory& memory, const Options& options) {
  return translated([&] {
    auto work = evaluation(model, memory, options);
    const auto data = work.open({valid});
    infer::TuneOptions grid;
    grid.data = valid;
    send_note(work.tune(data, grid, [](std::uint64_t) {}).summary());
    Memory tuned;
    auto chosen = work.memory_options();
    const auto fields = core::list_fields(chosen);
    for (const auto& field : fields.all())
      for (const auto& value : core::to_strings(field))
        tuned.options.emplace_back(field.name, value);
    return tuned;
  });
}

struct Generator::Impl {
  infer::Generator generator;
};

Generator::Generator(const Model& model, const Memory& memory, const Options& options)
    : impl_(translated([&] {
        infer::GeneratorOptions settings;
        auto fields = core::list_fields(settings);
        settings.reach.fields(fields);
        settings.retrieve.fields(fields);
        set_fields(fields, options);
        settings.settle();
        settings.check();
        settings.seed = process().seed;
        std::unique_ptr<Impl> made(new Impl{{model.loaded(), settings, memory_options(memory),
            nn::device(model.settings().device)}});
        send_note(made->generator.window_note());
        return made;
      })) {}
Generator::~Generator() = default;
Generator::Generator(Generator&&) noexcept = default;

std::vector<Text> Generator::generate(const std::vector<std::string>& prompts) {
  return translated([&] {
    auto& generator = impl_->generator;
    const auto samples = static_cast<std::size_t>(generator.options().samples);
    const std::uint64_t first = generator.prompts();
    std::vector<infer::Prompt> asked;
    for (const auto& prompt : prompts) asked.emplace_back().text = prompt;
    std::vector<Text> texts(prompts.size() * samples);
    infer::GeneratorCallbacks watch;
    watch.warn = send_note;
    watch.finished = [&](const infer::Sample& sample) {
      texts[(sample.prompt - first) * samples + static_cast<std::size_t>(sample.sample)] = {
          sample.text, sample.tokens, sample.log_prob, sample.finish == infer::Finish::length};
    };
    generator.run(asked, watch);
    send_note(generator.long_prompts_note());
    send_note(generator.special_note());
    return texts;
  });
}

}  // namespace tessera
