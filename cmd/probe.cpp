// probe weights: prints the maps of a model that forecasts vectors, as moduli.
//
// probe lambda: prints how slowly the leaky averages of a mosaic forget.
//
// probe attention: prints the mean attention of a text's last token. FILE: shards of tokens.
//
// stdout: a line per number, after the names of the columns.

#include <cmath>
#include <string>
#include <vector>

#include "cli/progress.h"
#include "cli/run.h"
#include "cli/summary.h"
#include "core/error.h"
#include "core/io.h"
#include "forecast/forecast_model.h"
#include "infer/score/attended.h"
#include "model/adapter.h"
#include "model/folder.h"
#include "nn/arch/mosaic.h"
#include "nn/base/runtime.h"

namespace {

struct ProbeOptions {
  std::string model;
  void fields(core::FieldList& f) {
    f("model", model, "folder of the model [required]").short_name = 'm';
  }
  void check() const {
    if (model.empty()) core::bad_usage("give -m MODEL");
  }
};

struct AttentionOptions {
  ProbeOptions common;
  std::string adapter;
  infer::AttendedOptions attended;
  nn::DeviceOptions compute;
  std::vector<std::string> files;
  void fields(core::FieldList& f) {
    f.positional("FILE", files, "shards of tokens; stdin if - or not given");
    common.fields(f);
    model::adapter_field(f, adapter);
    attended.fields(f);
    compute.fields(f);
  }
};

int probe_weights(const ProbeOptions& options, const cli::Context& context) {
  options.check();
  const auto model = forecast::load(options.model);
  core::Output out(context.output);
  cli::Columns columns(context, out, {"map", "row", "column", "modulus"});
  const auto points = model.shape.points;
  for (const auto& [name, map] : model.named_weights()) {  // (points, points, 2)
    const float* w = map.const_data_ptr<float>();
    for (std::int64_t i = 0; i < points * points; ++i, w += 2)
      columns.row({name, i / points, i % points, std::hypot(w[0], w[1])});
  }
  out.commit();
  return 0;
}

int probe_lambda(const ProbeOptions& options, const cli::Context& context) {
  options.check();
  nn::start(context.jobs, static_cast<std::uint64_t>(context.seed), cli::noter(context));
  const auto loaded = model::load(options.model);
  const auto* const mosaic = dynamic_cast<const nn::Mosaic*>(loaded.model->architecture.get());
  if (mosaic == nullptr)
    core::bad_usage(
        "{}: a {} has no leaky averages; give a mosaic", options.model, loaded.model->options.arch);
  core::Output out(context.output);
  cli::Columns columns(context, out, {"layer", "unit", "head", "lambda"});
  for (const auto& decay : mosaic->decays())
    for (std::int64_t head = 0; head < decay.lambda.size(0); ++head)
      columns.row({decay.layer, decay.unit, head, decay.lambda[head].item<double>()});
  out.commit();
  return 0;
}

int probe_attention(const AttentionOptions& options, const cli::Context& context) {
  options.common.check();
  nn::start(context.jobs, static_cast<std::uint64_t>(context.seed), cli::noter(context));
  const auto device = nn::device(options.compute.device);
  const auto loaded = model::load(options.common.model, device, torch::kFloat32, options.adapter);
  const shard::Dataset data(options.files);
  shard::expect_kind(data.header(), {shard::Kind::tokens}, data.name());
  model::check_tokenizer(loaded, data.header(), data.name());
  auto attended = options.attended;
  attended.seed = static_cast<std::uint64_t>(context.seed);
  attended.settle(loaded.facts);
  core::Output out(context.output);
  const auto mean = infer::mean_attention(*loaded.model, data, attended, device);
  cli::Columns columns(context, out, {"layer", "head", "position", "attention"});
  const auto values = mean.accessor<double, 3>();
  for (std::int64_t layer = 0; layer < mean.size(0); ++layer)
    for (std::int64_t head = 0; head < mean.size(1); ++head)
      for (std::int64_t position = 0; position < mean.size(2); ++position)
        columns.row({layer, head, position, values[layer][head][position]});
  out.commit();
  return 0;
}

}  // namespace

int probe_main(int argc, char** argv) {
  ProbeOptions weights, lambda;
  AttentionOptions attention;
  auto of_attention = cli::command("attention",
      "Print the attention weights of the last position, averaged over sequences.",
      "  probe attention -m mosaic --window 1536 valid.shard.zst", attention, probe_attention,
      {"model", "adapter"});
  of_attention.program.draws = true;
  return cli::run(argc, argv,
      {"probe", "Print quantities inside a model.",
          "  probe weights -m three-heads\n  probe lambda -m mosaic\n"
          "  probe attention -m mosaic --window 1536 valid.shard.zst"},
      {cli::command("weights",
           "Print the moduli of the complex maps of a model that forecasts vectors.",
           "  probe weights -m three-heads", weights, probe_weights, {"model"}),
          cli::command("lambda", "Print the decay rate of a mosaic's leaky averages, per head.",
              "  probe lambda -m mosaic", lambda, probe_lambda, {"model"}),
          std::move(of_attention)});
}
