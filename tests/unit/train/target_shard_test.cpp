// Targets of a teacher with their text: the token of each target, refusals, and resumed runs with
// the same bytes.
#include "train/job.h"

#include <doctest/doctest.h>

#include <fstream>

#include "store/targets.h"
#include "unit/thrown.h"
#include "unit/train/tiny.h"

namespace {

constexpr std::size_t kKeep = 3;

// Token i has the tokens i, i + 1, i + 2 modulo 40, with probabilities that depend on i.
std::vector<float> vector_of(std::uint64_t i) {
  const auto word = [&](std::uint64_t n) { return static_cast<float>((i + n) % 40); };
  const float share = 0.2f + 0.1f * static_cast<float>(i % 4);
  return {word(0), word(1), word(2), share, 0.25f, 0.1f};
}

void write_targets(const std::string& path, const shard::Dataset& data, std::uint64_t wrong = ~0ull,
    const std::string& program = store::kTargetsProgram) {
  store::TargetOptions options;
  options.keep = kKeep;
  core::Output out(path);
  shard::Writer writer(out, store::targets_header(options),
      {shard::provenance_entry(program, {}, {data.fingerprint()})});
  for (std::uint64_t i = 0; i < data.size(); ++i) {
    auto vector = vector_of(i);
    if (i == wrong) vector[1] = vector[0];
    writer.write(std::span<const float>(vector));
  }
  writer.finish();
  out.commit();
}

}  // namespace

DOCTEST_TEST_CASE("an input's target has its own vector, whatever the rows") {
  const TemporaryFolder folder;
  tiny::write_text(folder / "text");
  const shard::Dataset data({folder / "text"});
  write_targets(folder / "targets", data);
  const train::TargetShard targets(folder / "targets", data);
  const std::vector<train::Row> rows = {{0, 5, 0, 0}, {100, 3, 1, 1}, {7, 0, 2, 2}};
  const auto teachers = targets.read(rows, 5);
  for (std::int64_t r = 0; r < 3; ++r)
    for (std::int64_t i = 0; i < 5; ++i) {
      const auto& row = rows[static_cast<std::size_t>(r)];
      const bool there = i < row.length;
      const auto vector = vector_of(row.begin + 1 + static_cast<std::uint64_t>(i));
      for (std::size_t j = 0; j < kKeep; ++j) {
        const auto at = static_cast<std::int64_t>(j);
        DOCTEST_CHECK(
            teachers.shares[r][i][at].item<float>() == (there ? vector[kKeep + j] : 0.0f));
        if (there)
          DOCTEST_CHECK(teachers.words[r][i][at].item<std::int64_t>() ==
                        static_cast<std::int64_t>(vector[j]));
      }
    }
}

DOCTEST_TEST_CASE("targets of another text, of none, damaged or no distribution are refused") {
  const TemporaryFolder folder;
  tiny::write_text(folder / "text");
  tiny::write_text(folder / "other", 900, 7);
  const shard::Dataset data({folder / "text"}), other({folder / "other"});
  const auto refused = [&](const std::string& path, const char* why) {
    const auto error = thrown([&] {
      const train::TargetShard targets(path, data);
      targets.read({{0, 11, 0, 0}}, 11);
    });
    DOCTEST_CHECK(error.code == 65);
    DOCTEST_CHECK_MESSAGE(error.names(why), error.text);
  };
  write_targets(folder / "theirs", other);
  refused(folder / "theirs", "was built for a text with fingerprint");
  write_targets(folder / "vectors", data, ~0ull, "gen-moons");
  refused(folder / "vectors", "not a file of targets; create it with build-targets");
  write_targets(folder / "twice", data, 5);
  refused(folder / "twice", "the target of token 5 is not a distribution");
  refused(folder / "text", "expected a shard of vectors");
  write_targets(folder / "damaged", data);
  std::fstream file(folder / "damaged", std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(std::filesystem::file_size(folder / "damaged") / 2));
  file.write("\xAA\x55\xAA\x55", 4);
  file.close();
  DOCTEST_CHECK(thrown([&] {
    const train::TargetShard targets(folder / "damaged", data);
    targets.read({{0, 1400, 0, 0}}, 1400);
  }).code == 65);
}

DOCTEST_TEST_CASE("a run with targets that was killed goes on to the same bytes; targets matter") {
  const TemporaryFolder folder;
  tiny::write_text(folder / "text");
  const shard::Dataset data({folder / "text"});
  write_targets(folder / "targets", data);
  for (const char* batches : {"shuffled", "streams"}) {
    auto job = tiny::job(folder);
    job.recipe.batches.batches = batches;
    job.recipe.objective.targets = folder / "targets";
    train::KeepOptions keep;
    keep.checkpoint_every = 3;
    const std::string whole = folder / (std::string("whole-") + batches),
                      parts = folder / (std::string("parts-") + batches);
    DOCTEST_CHECK(tiny::train(whole, job, -1, false, keep) == train::Outcome::finished);
    tiny::train(parts, job, 8, /*kill=*/true, keep);
    DOCTEST_CHECK(tiny::train(parts, job, -1, false, keep) == train::Outcome::finished);
    DOCTEST_CHECK(tiny::files(whole) == tiny::files(parts));
    job.recipe.objective.targets_weight = 0;  // like no targets
    tiny::train(whole + "0", job, -1, false, keep);
    job.recipe.objective.targets.clear();
    tiny::train(whole + "-without", job, -1, false, keep);
    const auto loss = [](const std::string& path) {
      std::ifstream metrics(path + "/metrics.jsonl");
      std::string line, last;
      while (std::getline(metrics, line)) last = line;
      return core::parse_json(last, path).at("loss").get<double>();
    };
    DOCTEST_CHECK(loss(whole + "0") == doctest::Approx(loss(whole + "-without")).epsilon(1e-4));
    DOCTEST_CHECK(std::abs(loss(whole) - loss(whole + "-without")) > 0.01);
  }
}
