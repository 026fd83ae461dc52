// probe weights: the maps of a model that forecasts vectors, as moduli.
//
// stdout: a line a number: map, row, column, modulus.

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "cli/run.h"
#include "core/error.h"
#include "core/io.h"
#include "model/forecast_model.h"

namespace {

struct Options {
  std::string model;
  void fields(core::FieldList& f) { f("model", model, "the model's folder").short_name = 'm'; }
};

int probe_weights(const Options& options, const cli::Context& context) {
  if (options.model.empty()) core::fail(core::Code::usage, "give -m MODEL");
  const auto model = model::load_forecast(options.model);
  core::Output out(context.output);
  if (!context.json) out.write("map\trow\tcolumn\tmodulus\n");
  const float* w = model.weights.data();
  for (const auto* const map : {"key", "value", "c_proj"})
    for (std::int64_t row = 0; row < model.shape.points; ++row)
      for (std::int64_t column = 0; column < model.shape.points; ++column, w += 2)
        out.write(fmt::format(
            fmt::runtime(context.json
                             ? "{{\"map\":\"{}\",\"row\":{},\"column\":{},\"modulus\":{:.6g}}}\n"
                             : "{}\t{}\t{}\t{:.6g}\n"),
            map, row, column, std::hypot(w[0], w[1])));
  out.commit();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const auto body = [&](const cli::Context& context) { return probe_weights(options, context); };
  return cli::run(argc, argv, {"probe", "What is inside a model.", "  probe weights -m model"},
                  {{{"weights", "The moduli of the complex maps of a model that forecasts vectors.",
                     "  probe weights -m three-heads"},
                    core::list_fields(options),
                    body}});
}
