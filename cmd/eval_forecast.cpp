// eval-forecast: measures the forecasts of a model of vectors for every length of the context.
//
// FILE: shards of vectors. stdout: a line per context length: the number of rows, and the mean
// absolute error of the following rows. Each forecast is fed back as if it had been observed.

#include <string>
#include <vector>

#include "cli/progress.h"
#include "cli/run.h"
#include "cli/summary.h"
#include "core/error.h"
#include "core/io.h"
#include "core/rng.h"
#include "forecast/forecast_model.h"
#include "nn/base/runtime.h"

namespace {

struct EvalForecastOptions {
  std::string model, identity = "none";
  forecast::Task task;
  std::int64_t sequences = 128, document = -1;
  std::vector<std::string> files;
  void fields(core::FieldList& f) {
    f.positional("FILE", files, "shards of vectors; stdin if - or not given");
    f("model", model, "folder of the model [required without --identity]").short_name = 'm';
    f("identity", identity,
        "use identity maps with this number of heads and beta 50 instead of a model",
        {"none", "1", "3"});
    f("length", task.length, "rows per sequence").between(2, 1e9);
    f("horizon", task.horizon, "rows to forecast").between(1, 1e9);
    f("every", task.every, "measure contexts of 1, 1 + N, 1 + 2N, ... rows").between(1, 1e9);
    f("sequences", sequences, "number of sequences, each from a random start").between(1, 1e6);
    f("document", document, "use only this document of the shard, counted from 0; none: use all")
        .between(0, 1e12)
        .or_none(-1);
  }
};

std::vector<const float*> draw(
    const forecast::Series& series, const EvalForecastOptions& options, std::uint64_t seed) {
  const auto& documents = series.documents;
  if (options.document >= std::ssize(documents))
    core::bad_usage("--document: out of range; {} has {} documents", series.name, documents.size());
  core::Rng rng(seed, 0);
  std::vector<const float*> sequences;
  for (std::int64_t i = 0; i < options.sequences; ++i) {
    const auto d = options.document >= 0 ? static_cast<std::size_t>(options.document)
                                         : static_cast<std::size_t>(rng.below(documents.size()));
    const auto starts = documents[d].size() - options.task.length + 1;
    if (starts < 1)
      core::bad_data("{}: document {} has fewer than {} rows; give a smaller --length", series.name,
          d, options.task.length);
    sequences.push_back(series.row(documents[d].begin + static_cast<std::int64_t>(rng.below(
                                                            static_cast<std::uint64_t>(starts)))));
  }
  return sequences;
}

int eval_forecast(const EvalForecastOptions& options, const cli::Context& context) {
  if ((options.identity != "none") != options.model.empty())
    core::bad_usage("give -m MODEL or --identity HEADS");
  const auto& task = options.task;
  if (task.length <= task.horizon) core::bad_usage("--length must be more than --horizon");
  nn::start(context.jobs, static_cast<std::uint64_t>(context.seed), cli::noter(context));
  const auto series = forecast::read_series(options.files);
  const auto points = series.width / 2;
  const auto model = options.model.empty()
                         ? forecast::identity({points, options.identity == "1" ? 1 : points, 50})
                         : forecast::load(options.model);
  if (model.shape.width() != series.width)
    core::bad_data("{} has rows of {} numbers, {} takes {}", series.name, series.width,
        options.model, model.shape.width());
  const auto sequences = draw(series, options, static_cast<std::uint64_t>(context.seed));
  core::Output out(context.output);
  cli::Columns columns(context, out, {"context", "error"});
  for (const auto& [length, error] : forecast::errors_by_context(model, sequences, task))
    columns.row({length, error});
  out.commit();
  return 0;
}

}  // namespace

int eval_forecast_main(int argc, char** argv) {
  EvalForecastOptions options;
  return cli::run(argc, argv,
      {"eval-forecast",
          "Measure the forecasts of a model of vectors for each length of the context.",
          "  eval-forecast -m three-heads valid.shard.zst >errors.tsv\n"
          "  eval-forecast --identity 3 --document 5 train.shard.zst",
          {"model"}},
      options, eval_forecast);
}
