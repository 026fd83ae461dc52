#include "tessera/train.h"

#include "nn/base/runtime.h"
#include "tessera/inside.h"
#include "text/documents/encode_shard.h"
#include "text/learn/learn.h"
#include "train/token_objective.h"
#include "train/trainer.h"

namespace tessera {

bool train(const std::vector<std::string>& files, const std::string& folder, const Options& options,
    const std::function<bool(const TrainProgress&)>& progress) {
  return translated([&] {
    const auto& here = process();
    train::Job job;
    train::KeepOptions keep;
    nn::DeviceOptions compute;
    auto fields = core::list_fields(job);
    keep.fields(fields);
    compute.fields(fields);
    const auto given = set_fields(fields, options);
    job.asked = core::chosen_to_json(core::list_fields(job.model), given);
    keep.start_clock();
    job.seed = here.seed;
    job.folder = folder;
    job.device = nn::device(compute.device);
    const auto group = ranks::Group::alone();
    job.recipe.settle_reduce(group->connects(job.device));
    const auto run = train::open_run(folder, files, *group);
    job.shards = run.shards;
    const auto threads = static_cast<int>(here.threads);
    // Texts may still be read after this call.
    const auto tokenizer = [from = job.from, shards = run.shards, valid = job.valid, threads] {
      return train::tokenizer_for_texts(from, shards, valid, [&](const auto& texts) {
        const auto quiet = [](std::uint64_t) {};
        return text::learn_for_training(texts, threads, {quiet, quiet, send_note});
      });
    };
    text::read_texts({tokenizer, "the run's", threads, send_note});
    train::TokenObjective objective(train::prepare(job), group);
    send_note(objective.settings().note);
    bool goes_on = true;
    train::Callbacks watch;
    watch.note = send_note;
    watch.stop = [&] { return !goes_on; };
    watch.progress = [&](const train::Callbacks::Progress& now) {
      if (progress) goes_on = progress({now.step, now.steps, now.loss, now.valid_loss});
    };
    return train::train_in(*run.folder, objective, keep, watch, group) != train::Outcome::stopped;
  });
}

}  // namespace tessera
