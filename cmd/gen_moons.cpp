// gen-moons: writes the three-moons time series, for models that forecast vectors.
//
// stdout, or -o: a shard of vectors (man 5 shard), rows of 6: (sin, cos) of each moon. Each
// document is a triple of periods.

#include "cli/run.h"
#include "shard/writer.h"
#include "task/sequences.h"

namespace {

struct Options {
  std::string split = "train";
  std::vector<double> periods;
  std::int64_t n = 10'800;
  double per_unit = 800.0 / 18, phase = 0.3;
  void fields(core::FieldList& f) {
    f("split", split, "train: the first eight of the nine triples of periods; valid: the ninth",
        {"train", "valid"});
    f("periods", periods, "use these three periods instead, in time units").above(0, 1e9);
    f("count", n, "observations per triple").between(1, 1e9).short_name = 'n';
    f("per-unit", per_unit, "observations per time unit").above(0, 1e9);
    f("phase", phase, "initial angle of all moons, in radians").between(-1e6, 1e6);
  }
};

int generate(const Options& options, const cli::Context& context) {
  if (!options.periods.empty() && options.periods.size() != task::kMoons)
    core::bad_usage("--periods takes three numbers");
  cli::refuse_binary_to_terminal(context);
  std::vector<task::Periods> triples = task::chosen_periods();
  if (options.split == "valid") triples.erase(triples.begin(), triples.end() - 1);
  else triples.pop_back();
  if (!options.periods.empty())
    triples = {{options.periods[0], options.periods[1], options.periods[2]}};
  shard::Header header;
  header.kind = shard::Kind::vectors;
  header.dtype = shard::Dtype::f32;
  header.width = 2 * task::kMoons;
  core::Output out(context.output);
  shard::Writer writer(out, header, {}, static_cast<int>(context.jobs));
  core::OrderedJson made;
  for (const auto& periods : triples) {
    writer.write(std::span<const float>(
        task::observe(periods, options.per_unit, options.phase, 0, options.n)));
    writer.end_document();
    made["periods"].push_back(periods);
  }
  made["per_unit"] = options.per_unit;
  made["phase"] = options.phase;
  writer.add_provenance(shard::provenance_entry("gen-moons", made, {}));
  writer.finish();
  out.commit();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return cli::run(argc, argv,
      {"gen-moons", "Generate the time series of the three moons, for models of vectors.",
          "  gen-moons -o train.shard.zst\n"
          "  gen-moons --split valid -o valid.shard.zst\n"
          "  gen-moons --periods 0.5,1,1.5 -o one.shard.zst"},
      options, generate);
}
