#include "model/checkpoint.h"

#include "folder_of_test.h"

namespace {

namespace fs = std::filesystem;

model::Checkpoint some_checkpoint(double value) {
  model::Checkpoint checkpoint;
  checkpoint.tensors["w"] = torch::full({4}, value);
  checkpoint.facts["step"] = 3;
  checkpoint.facts["loss"] = 0.1 + value;
  return checkpoint;
}

double value_of(const std::string& path) {
  return model::load_checkpoint(path).tensor("w")[0].item<double>();
}

}  // namespace

DOCTEST_TEST_CASE("a checkpoint gives back tensors, facts, states and generators") {
  const TemporaryFolder folder;
  nn::State state;
  state.tensors["keys"] = torch::randn({2, 3});
  state.counts["used"] = 5;
  state.by_step = {"keys"};
  core::Rng rng(7, 2);
  rng.next();
  auto checkpoint = some_checkpoint(1.5);
  checkpoint.put_state("carried", state);
  checkpoint.put_rng("order", rng);
  torch::manual_seed(11);
  torch::randn({3});
  checkpoint.put_generator("dropout");
  const auto expected_draw = torch::randn({9});
  const auto path = model::save_checkpoint(folder.path, 12, checkpoint);
  DOCTEST_CHECK(path == folder / "step-12");

  torch::manual_seed(1);
  const auto loaded = model::load_checkpoint(path);
  DOCTEST_CHECK(loaded.facts == checkpoint.facts);
  DOCTEST_CHECK(loaded.tensor("w").equal(checkpoint.tensors["w"]));
  const auto carried = loaded.get_state("carried");
  DOCTEST_CHECK(carried.tensors.size() == 1);
  DOCTEST_CHECK(carried.tensors.at("keys").equal(state.tensors["keys"]));
  DOCTEST_CHECK(carried.counts == state.counts);
  DOCTEST_CHECK(carried.by_step == state.by_step);
  DOCTEST_CHECK(loaded.get_rng("order").next() == rng.next());
  loaded.get_generator("dropout");
  DOCTEST_CHECK(torch::randn({9}).equal(expected_draw));
  expect_error(core::Code::bad_data, "\"nothing\"", [&] { loaded.get_rng("nothing"); });
  expect_error(core::Code::bad_data, "step-12: has no tensor gone", [&] { loaded.tensor("gone"); });
  expect_error(core::Code::bad_data, "is not a state of this random generator",
               [&] { loaded.get_generator("w"); });
}

DOCTEST_TEST_CASE("a checkpoint of the same step replaces the old one and leaves nothing else") {
  const TemporaryFolder folder;
  model::save_checkpoint(folder.path, 3, some_checkpoint(1));
  model::save_checkpoint(folder.path, 3, some_checkpoint(2));
  DOCTEST_CHECK(value_of(folder / "step-3") == 2);
  DOCTEST_CHECK(std::distance(fs::directory_iterator(folder.path), fs::directory_iterator()) == 1);
}

DOCTEST_TEST_CASE("the latest is the highest whole step, and only the latest are kept") {
  const TemporaryFolder folder;
  DOCTEST_CHECK(!model::latest_checkpoint(folder / "absent"));
  DOCTEST_CHECK(!model::latest_checkpoint(folder.path));
  for (const int step : {9, 10, 100})
    model::save_checkpoint(folder.path, step, some_checkpoint(step));
  for (const char* other : {"step-200.tmp.77", "step-7.old.tmp.8", "step-7.tmp.9", "x.tmp.77",
                            "step-", "step-x", "step-0300", "metrics.jsonl"})
    fs::create_directory(folder / other);
  core::write_file(folder / "step-7.tmp.9/mine", "x");
  core::write_file(folder / "x.tmp.tessera", "being written by another");
  core::write_file(folder / "step-200.tmp.77/state.json.tmp.tessera", "{");
  DOCTEST_CHECK(model::latest_checkpoint(folder.path)->step == 100);
  model::remove_leftovers(folder.path);
  DOCTEST_CHECK(!fs::exists(folder / "step-200.tmp.77"));
  DOCTEST_CHECK(!fs::exists(folder / "step-7.old.tmp.8"));
  for (const char* other : {"step-7.tmp.9/mine", "x.tmp.tessera", "x.tmp.77", "step-x"})
    DOCTEST_CHECK(fs::exists(folder / other));
  model::remove_checkpoints(folder.path, 10);
  const auto left = model::checkpoints(folder.path);
  DOCTEST_REQUIRE(left.size() == 1);
  DOCTEST_CHECK(value_of(left[0].path) == 10);
  model::remove_checkpoints(folder.path);
  DOCTEST_CHECK(model::checkpoints(folder.path).empty());
}

DOCTEST_TEST_CASE("a folder with the name of a checkpoint and other files in it is left alone") {
  const TemporaryFolder folder;
  fs::create_directory(folder / "step-3");
  core::write_file(folder / "step-3/mine", "x");
  model::remove_checkpoints(folder.path);
  expect_error(core::Code::cannot_create, "step-3",
               [&] { model::save_checkpoint(folder.path, 3, some_checkpoint(1)); });
  DOCTEST_CHECK(core::read_text(folder / "step-3/mine") == "x");
  DOCTEST_CHECK(std::distance(fs::directory_iterator(folder.path), fs::directory_iterator()) == 1);
}

DOCTEST_TEST_CASE("a checkpoint that cannot be written leaves nothing") {
  const TemporaryFolder folder;
  auto checkpoint = some_checkpoint(1);
  checkpoint.tensors["odd"] = torch::zeros({2}, torch::kComplexFloat);  // no name in the format
  DOCTEST_CHECK_THROWS_AS(model::save_checkpoint(folder.path, 1, checkpoint), core::Error);
  DOCTEST_CHECK(fs::is_empty(folder.path));
  core::write_file(folder / "file", "x");
  expect_error(core::Code::cannot_create, "file",
               [&] { model::save_checkpoint(folder / "file", 1, some_checkpoint(1)); });
}

DOCTEST_TEST_CASE(
    "damage to a checkpoint is found, cut or flipped, and so are files of two checkpoints") {
  const TemporaryFolder folder;
  const auto path = model::save_checkpoint(folder.path, 1, some_checkpoint(1));
  const auto other = model::save_checkpoint(folder.path, 2, some_checkpoint(2));
  for (const std::string name : {"state.json", "state.safetensors"}) {
    const std::string file = path + "/" + name, whole = core::read_text(file);
    for (std::size_t n = 0; n + 1 < whole.size(); ++n) {
      overwrite(file, whole.substr(0, n));
      DOCTEST_CHECK_THROWS_AS(model::load_checkpoint(path), core::Error);
    }
    for (std::size_t i = 0; i < whole.size(); ++i) {
      std::string flipped = whole;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << (i % 8)));
      overwrite(file, flipped);
      try {
        const auto loaded = model::load_checkpoint(path);
        const bool unharmed =
            loaded.facts == some_checkpoint(1).facts && loaded.tensor("w").equal(torch::ones({4}));
        DOCTEST_CHECK_MESSAGE(unharmed, name << " byte " << i);
      } catch (const core::Error&) {
      }
    }
    overwrite(file, core::read_text(other + "/" + name));
    DOCTEST_CHECK_THROWS_AS(model::load_checkpoint(path), core::Error);
    overwrite(file, whole);
  }
  DOCTEST_CHECK(value_of(path) == 1);
  fs::remove(path + "/state.safetensors");
  expect_error(core::Code::no_input, "state.safetensors", [&] { model::load_checkpoint(path); });
}
