// eval-forecast: how well a model of vectors goes on, for every length of the context.
//
// FILE: shards of vectors. stdout: a line a context: its rows, and the mean absolute error of the
// rows that follow, each forecast fed back as if it had been seen.

#include <fmt/format.h>

#include <string>
#include <vector>

#include "cli/run.h"
#include "core/error.h"
#include "core/io.h"
#include "core/rng.h"
#include "infer/forecast.h"
#include "nn/runtime.h"
#include "shard/dataset.h"

namespace {

using core::Code;

struct Options {
  std::string model, identity = "none";
  infer::ForecastTask task;
  std::int64_t sequences = 512, document = -1;
  std::vector<std::string> files;
  void fields(core::FieldList& f) {
    f.positional("FILE", files, "shards of vectors; - or none is stdin");
    f("model", model, "the model's folder").short_name = 'm';
    f("identity", identity, "no model: all maps are the identity, so many heads, beta 50",
      {"none", "1", "3"});
    f("length", task.length, "rows of a sequence");
    f("horizon", task.horizon, "rows that are forecast");
    f("every", task.every, "contexts of 1, 1 + N, ... rows");
    f("sequences", sequences, "sequences, each with a random start");
    f("document", document, "only from this document of the shard, from 0; -1: from all");
  }
};

std::vector<const float*> draw(const std::vector<float>& rows, const shard::Dataset& data,
                               const Options& options, std::uint64_t seed) {
  const auto width = static_cast<std::int64_t>(data.header().width);
  const auto& ends = data.documents().end;
  if (options.document >= static_cast<std::int64_t>(ends.size()))
    core::fail(Code::usage, "--document: {} has {} documents", data.name(), ends.size());
  core::Rng rng(seed, 0);
  std::vector<const float*> sequences;
  for (std::int64_t i = 0; i < options.sequences; ++i) {
    const auto d = options.document >= 0 ? static_cast<std::size_t>(options.document)
                                         : static_cast<std::size_t>(rng.below(ends.size()));
    const auto begin = d == 0 ? 0 : static_cast<std::int64_t>(ends[d - 1]) / width;
    const auto starts =
        static_cast<std::int64_t>(ends[d]) / width - begin - options.task.length + 1;
    if (starts < 1)
      core::fail(Code::bad_data, "{}: document {} has fewer than {} rows; give a smaller --length",
                 data.name(), d, options.task.length);
    const auto first =
        begin + static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(starts)));
    sequences.push_back(rows.data() + first * width);
  }
  return sequences;
}

int eval_forecast(const Options& options, const cli::Context& context) {
  if ((options.identity != "none") != options.model.empty())
    core::fail(Code::usage, "give -m MODEL or --identity HEADS");
  const auto& task = options.task;
  if (task.horizon < 1 || task.every < 1 || task.length <= task.horizon || options.sequences < 1)
    core::fail(Code::usage, "--length must be more than --horizon, and all numbers positive");
  nn::start(context.jobs, static_cast<std::uint64_t>(context.seed));
  const shard::Dataset data(options.files);
  shard::expect_kind(data.header(), {shard::Kind::vectors}, data.name());
  const auto points = static_cast<std::int64_t>(data.header().width) / 2;
  const auto model =
      options.model.empty()
          ? model::identity_forecast({points, options.identity == "1" ? 1 : points, 50})
          : model::load_forecast(options.model);
  if (model.shape.width() != static_cast<std::int64_t>(data.header().width))
    core::fail(Code::bad_data, "{} has rows of {} numbers, {} takes {}", data.name(),
               data.header().width, options.model, model.shape.width());
  std::vector<float> rows(data.size());
  data.read(0, std::span<float>(rows));
  const auto sequences = draw(rows, data, options, static_cast<std::uint64_t>(context.seed));
  core::Output out(context.output);
  if (!context.json) out.write("context\terror\n");
  for (const auto& [length, error] : infer::forecast_errors(model, sequences, task))
    out.write(context.json ? fmt::format("{{\"context\":{},\"error\":{:.6g}}}\n", length, error)
                           : fmt::format("{}\t{:.6g}\n", length, error));
  out.commit();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return cli::run(
      argc, argv,
      {"eval-forecast", "How well a model of vectors goes on, for every length of the context.",
       "  eval-forecast -m three-heads valid.shard.zst >errors.tsv\n"
       "  eval-forecast --identity 3 --document 5 train.shard.zst"},
      options, eval_forecast);
}
