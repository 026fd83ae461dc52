// Calibration of a store, compared with plain loops in float64.
#include "infer/keys/store_build.h"

#include <doctest/doctest.h>

#include "infer/score/scorer.h"
#include "store_of_keys.h"
#include "tiny.h"
#include "unit/thrown.h"

namespace {

using tiny::value;
using torch::Tensor;

constexpr std::int64_t kLabels = 11, kNeighbours = 6, kQueries = 60;

// A model with a uniform distribution, and neighbours of which the near ones are right.
infer::CalibrationPiece piece_of(double right) {
  torch::manual_seed(4);
  infer::CalibrationPiece piece;
  piece.labels = torch::randint(kLabels, {kQueries}, torch::kInt64);
  piece.log_prob = torch::rand({kQueries}, torch::kFloat64).mul(0.3).add(0.02).log();
  piece.log_z = torch::randn({kQueries}, torch::kFloat64) + 3;
  auto& found = piece.found = infer::no_neighbours(kQueries, kNeighbours);
  found.scores = -torch::rand({kQueries, kNeighbours}).cumsum(1) * 8;
  found.labels = torch::randint(kLabels, {kQueries, kNeighbours}, torch::kInt64);
  const Tensor good = torch::rand({kQueries}) < right;
  found.labels.select(1, 0).copy_(torch::where(good, piece.labels, found.labels.select(1, 0)));
  found.scores[7].fill_(-HUGE_VAL), found.labels[7].fill_(-1);  // no neighbours
  return piece;
}

// Returns the nats per token with entries at a temperature: with weight `share` as their own
// distribution, or in the softmax with a bias.
double plain_loss(
    const infer::CalibrationPiece& piece, double divisor, double share, double bias, bool joint) {
  double nats = 0;
  for (std::int64_t i = 0; i < kQueries; ++i) {
    double all = 0, hit = 0;
    for (std::int64_t j = 0; j < kNeighbours; ++j) {
      const double mass = std::exp(piece.found.scores[i][j].item<double>() / divisor + bias);
      all += mass;
      if (piece.found.labels[i][j].item<std::int64_t>() == piece.labels[i].item<std::int64_t>())
        hit += mass;
    }
    const double p = std::exp(value(piece.log_prob, i)), z = std::exp(value(piece.log_z, i));
    if (joint) nats -= std::log((p * z + hit) / (z + all));
    else nats -= std::log(all == 0 ? p : (1 - share) * p + share * hit / all);
  }
  return nats / kQueries;
}

}  // namespace

DOCTEST_TEST_CASE("what a store is calibrated to is the best of a fine grid, by plain loops") {
  const double root = std::sqrt(12.0), unit = 1.3;
  for (const double right : {0.1, 0.5, 0.9}) {
    const auto piece = piece_of(right);
    const auto found = infer::calibrate(piece, root, unit);
    DOCTEST_CHECK(found.tokens == kQueries);
    const double own = plain_loss(piece, found.temperature, found.share, 0, false);
    const double joint =
        plain_loss(piece, found.joint_temperature * root, 0, found.joint_bias, true);
    for (double step = 0.0125; step <= 4; step *= 1.5)
      for (double share = infer::kLeastWorth; share < infer::kMostWorth; share += 0.02)
        DOCTEST_CHECK(own < plain_loss(piece, step * root, share, 0, false) + 0.01);
    for (double step = 0.125; step <= 16; step *= 1.5)
      for (double bias = -1; bias < 6; bias += 0.25) {
        // Only if the store keeps a share.
        double mean = 0;
        for (std::int64_t i = 0; i < kQueries; ++i) {
          double all = 0;
          for (std::int64_t j = 0; j < kNeighbours; ++j)
            all += std::exp(piece.found.scores[i][j].item<double>() / (step * unit * root) + bias);
          mean += all / (all + std::exp(value(piece.log_z, i))) / kQueries;
        }
        if (mean > 0.05 && mean < 0.5)
          DOCTEST_CHECK(joint < plain_loss(piece, step * unit * root, 0, bias, true) + 0.03);
      }
    if (right > 0.8) DOCTEST_CHECK(found.share > 0.3);
    if (right < 0.2) DOCTEST_CHECK(found.share < 0.3);
    DOCTEST_CHECK(own < -piece.log_prob.mean().item<double>() + 0.02);
  }
}

DOCTEST_TEST_CASE(
    "store.json keeps what a store was calibrated to, programs go by it, and damage is named") {
  const nn::Model model = tiny::model_of("transformer", "learned", kLabels);
  const TemporaryFolder folder;
  tiny::make_store(
      folder / "s", tiny::entries_of(40, model.architecture->d_key(), kLabels, 1), kLabels);
  auto manifest = store::read_manifest(folder / "s");
  const auto fingerprint = manifest.fingerprint();
  const auto plan_of = [&](const std::function<void(infer::MemoryOptions&)>& change) {
    infer::MemoryOptions options;
    tiny::stores(options).folders = {folder / "s"}, tiny::context(options).combine = "both";
    change(options);
    return infer::plan_memory(options, tiny::windows_of(16, 8), model, {},
        tiny::opened(std::make_shared<const infer::Stores>(
            infer::open_each(tiny::stores(options).folders, torch::empty({0})), "m", "t", "model",
            model.architecture->d_key(), kLabels)));
  };
  DOCTEST_CHECK(tiny::stores(plan_of([](auto&) {})).joint.plain());
  manifest.calibration = store::Calibration{2048, 5.5, 0.125, 2.5, -1.75};
  store::write_manifest(folder / "s", manifest);
  const auto again = store::read_manifest(folder / "s");
  DOCTEST_REQUIRE(again.calibration.has_value());
  DOCTEST_CHECK(store::to_json(*again.calibration) == store::to_json(*manifest.calibration));
  DOCTEST_CHECK(again.fingerprint() == fingerprint);

  for (const char* weights : {"auto", "constant"}) {
    const auto plan = plan_of([&](auto& o) { o.weights = weights; });
    DOCTEST_CHECK(tiny::stores(plan).temperature == 5.5);
    DOCTEST_CHECK(tiny::stores(plan).lambda == 0.125);
    DOCTEST_CHECK(tiny::stores(plan).joint.temperature == 2.5);
    DOCTEST_CHECK(tiny::stores(plan).joint.bias == -1.75);
  }
  DOCTEST_CHECK(tiny::stores(plan_of([](auto& o) { o.joint_temperature = 1; })).joint.plain());
  DOCTEST_CHECK(tiny::stores(plan_of([](auto& o) {
    tiny::stores(o).joint.bias = "1";
  })).joint.temperature == 0);
  DOCTEST_CHECK(
      tiny::stores(plan_of([](auto& o) { tiny::stores(o).temperature = 3; })).temperature == 3);
  DOCTEST_CHECK(tiny::stores(plan_of([](auto& o) { tiny::stores(o).lambda = 0.2; })).lambda == 0.2);
  DOCTEST_CHECK(tiny::stores(plan_of([](auto& o) { o.tuned_on = "abc"; })).joint.plain());

  for (const auto& [name, value] :
      std::vector<std::pair<const char*, double>>{{"temperature", 0}, {"temperature", 1e7},
          {"share", -0.1}, {"share", 1}, {"joint_temperature", -1}, {"joint_bias", 2e6}}) {
    auto json = store::to_json(manifest);
    json.erase("hash");
    json["calibration"][name] = value;
    const auto error =
        thrown([&] { store::manifest_from(core::Json(core::sealed(std::move(json))), "it"); });
    DOCTEST_CHECK(error.code == 65);
    DOCTEST_CHECK(error.names("calibration"));
  }
}

DOCTEST_TEST_CASE("the piece is of the text, and finds nothing of itself or of what is around it") {
  nn::Model model = tiny::model_of("transformer", "learned", kLabels);
  const tiny::Text text = tiny::text_of({12'000, 9'000}, kLabels);
  const tiny::Shard shard(text);
  const auto windows = tiny::windows_of(32, 32);
  const infer::MakeWalk make_walk = [&]() -> std::unique_ptr<infer::EntryWalk> {
    return infer::make_walk(model, shard.data(), windows, torch::kCPU);
  };
  std::vector<Stored> entries;
  const auto walk = make_walk();
  walk->ask_log_probs();
  std::vector<double> log_probs;
  while (auto block = walk->next()) {
    block->arrive();
    for (std::int64_t i = 0; i < block->labels.size(0); ++i) {
      entries.push_back({block->keys[i], block->labels[i].item<std::int64_t>()});
      log_probs.push_back(value(block->log_probs, i));
    }
  }
  const TemporaryFolder folder;
  tiny::make_store(folder / "s", entries, kLabels);
  const infer::Stores stores(infer::open_each({folder / "s"}, torch::empty({0})), "m", "t", "model",
      model.architecture->d_key(), kLabels);
  const auto piece = infer::calibration_piece(stores, 0, {}, make_walk);
  DOCTEST_REQUIRE(piece.has_value());
  DOCTEST_CHECK(piece->labels.size(0) == infer::kPieceTokens);
  const auto ids = text.tokens();
  const std::int64_t each = infer::kPieceTokens / infer::kPieces;
  for (std::int64_t p = 0; p < infer::kPieces; ++p) {
    const auto first = static_cast<std::int64_t>(make_walk()->range_of({p, infer::kPieces}).begin);
    for (const std::int64_t i : {std::int64_t{0}, each / 2, each - 1}) {
      const std::int64_t row = p * each + i, position = first + i;
      const auto at = static_cast<std::size_t>(position);
      DOCTEST_CHECK(piece->labels[row].item<std::int64_t>() == ids[at + 1]);
      DOCTEST_CHECK(value(piece->log_prob, row) == doctest::Approx(log_probs[at]).epsilon(1e-5));
      const Tensor rows = piece->found.rows[row];
      DOCTEST_CHECK((rows >= 0).sum().item<std::int64_t>() > 0);
      for (std::int64_t j = 0; j < rows.size(0); ++j) {
        const auto found = rows[j].item<std::int64_t>();
        if (found >= 0) DOCTEST_CHECK(std::abs(found - position) > infer::kHiddenAround);
      }
    }
  }
  tiny::make_store(folder / "few", {entries.begin(), entries.begin() + 16'000}, kLabels);
  const infer::Stores few(infer::open_each({folder / "few"}, torch::empty({0})), "m", "t", "model",
      model.architecture->d_key(), kLabels);
  DOCTEST_CHECK(!infer::calibration_piece(few, 0, {}, make_walk).has_value());
}
