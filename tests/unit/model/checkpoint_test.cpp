#include "model/checkpoint.h"

#include <array>

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

// What process `part` of three has of a tensor of 4 x 3 numbers 0 to 11, and one of its own.
model::Checkpoint part_of(std::size_t part) {
  const std::array<std::int64_t, 4> cuts = {0, 2, 7, 12};
  const std::int64_t begin = cuts.at(part), size = cuts.at(part + 1) - begin;
  model::Checkpoint checkpoint;
  checkpoint.facts["step"] = 5;
  checkpoint.tensors["shared"] = torch::arange(12, torch::kFloat32).narrow(0, begin, size);
  checkpoint.parts["shared"] = {{4, 3}, begin};
  checkpoint.tensors["own." + std::to_string(part)] = torch::full({2}, double(part));
  return checkpoint;
}

// Saves the parts as process 0 joins them; `last` is in the place of process 2's.
std::string save_parts(const std::string& folder, const model::Checkpoint& last) {
  const auto building = model::begin_checkpoint(folder, 5);
  const std::vector<std::string> digests = {
      model::save_part(building, 1, part_of(1)), model::save_part(building, 2, last)};
  return model::end_checkpoint(building, folder, 5, part_of(0), digests);
}

double value_of(const std::string& path) {
  return model::load_checkpoint(path).tensor("w")[0].item<double>();
}

}  // namespace

DOCTEST_TEST_CASE("a checkpoint gives back tensors, facts and states") {
  const TemporaryFolder folder;
  nn::State state;
  state.tensors["keys"] = torch::randn({2, 3});
  state.counts["used"] = 5;
  state.by_step = {"keys"};
  auto checkpoint = some_checkpoint(1.5);
  checkpoint.put_state("carried", state);
  const auto path = model::save_checkpoint(folder.path, 12, checkpoint);
  DOCTEST_CHECK(path == folder / "step-12");

  const auto loaded = model::load_checkpoint(path);
  DOCTEST_CHECK(loaded.facts == checkpoint.facts);
  DOCTEST_CHECK(loaded.tensor("w").equal(checkpoint.tensors["w"]));
  const auto carried = loaded.get_state("carried");
  DOCTEST_CHECK(carried.tensors.size() == 1);
  DOCTEST_CHECK(carried.tensors.at("keys").equal(state.tensors["keys"]));
  DOCTEST_CHECK(carried.counts == state.counts);
  DOCTEST_CHECK(carried.by_step == state.by_step);
  expect_error(core::Code::bad_data, "\"nothing\"", [&] { loaded.get_state("nothing"); });
  expect_error(core::Code::bad_data, "step-12: has no tensor gone", [&] { loaded.tensor("gone"); });
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
      } catch (const core::Error&) {}
    }
    overwrite(file, core::read_text(other + "/" + name));
    DOCTEST_CHECK_THROWS_AS(model::load_checkpoint(path), core::Error);
    overwrite(file, whole);
  }
  DOCTEST_CHECK(value_of(path) == 1);
  fs::remove(path + "/state.safetensors");
  expect_error(core::Code::no_input, "state.safetensors", [&] { model::load_checkpoint(path); });
}

DOCTEST_TEST_CASE("a checkpoint of several processes: the tensors of one, whole or a range") {
  const TemporaryFolder folder;
  const auto path = save_parts(folder.path, part_of(2));
  DOCTEST_CHECK(path == folder / "step-5");
  const auto whole = torch::arange(12, torch::kFloat32);
  const auto loaded = model::load_checkpoint(path);
  DOCTEST_CHECK(loaded.tensors.size() == 4);
  DOCTEST_CHECK(loaded.tensor("shared").equal(whole.view({4, 3})));
  DOCTEST_CHECK(loaded.tensor("own.2").equal(torch::full({2}, 2.0)));
  const auto opened = model::open_checkpoint(path);
  DOCTEST_CHECK(opened.facts == part_of(0).facts);
  for (const auto* checkpoint : {&loaded, &opened}) {
    for (std::int64_t begin = 0; begin <= 12; ++begin)
      for (std::int64_t end = begin; end <= 12; ++end)
        DOCTEST_CHECK(checkpoint->numbers("shared", begin, end).equal(whole.slice(0, begin, end)));
    expect_error(core::Code::bad_data, "shared has 12 numbers, not 13",
        [&] { checkpoint->numbers("shared", 3, 13); });
    expect_error(core::Code::bad_data, "no tensor gone", [&] { checkpoint->tensor("gone"); });
  }
  model::remove_checkpoints(folder.path);
  DOCTEST_CHECK(fs::is_empty(folder.path));
}

DOCTEST_TEST_CASE("parts of a checkpoint that are damaged, missing or do not fit are found") {
  const TemporaryFolder folder;
  const auto path = save_parts(folder.path, part_of(2));
  const std::string file = path + "/state.2.safetensors", whole = core::read_text(file);
  const auto want = model::load_checkpoint(path).tensor("shared");
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string flipped = whole;
    flipped[i] = static_cast<char>(flipped[i] ^ (1 << (i % 8)));
    overwrite(file, flipped);
    try {
      const auto got = model::load_checkpoint(path).tensor("shared");
      DOCTEST_CHECK_MESSAGE(got.equal(want), i);
    } catch (const core::Error&) {}
  }
  overwrite(file, core::read_text(path + "/state.1.safetensors"));
  DOCTEST_CHECK_THROWS_AS(model::load_checkpoint(path), core::Error);
  fs::remove(file);
  expect_error(core::Code::no_input, "state.2.safetensors", [&] { model::load_checkpoint(path); });
  const auto refused = [&](const model::PartOf& place, const char* text) {
    auto last = part_of(2);
    last.parts["shared"] = place;
    const auto saved = save_parts(folder.path, last);
    expect_error(core::Code::bad_data, text, [&] { model::load_checkpoint(saved); });
  };
  refused({{4, 3}, 8}, "do not cover its numbers once");
  refused({{4, 3}, 6}, "do not cover its numbers once");
  refused({{3, 4}, 7}, "does not match the other files");
  refused({{4, 3}, -1}, "does not match the other files");
  // Ended before all was written: nothing but a temporary folder.
  const TemporaryFolder other;
  model::save_part(model::begin_checkpoint(other.path, 1), 1, part_of(1));
  DOCTEST_CHECK(!model::latest_checkpoint(other.path));
  model::remove_leftovers(other.path);
  DOCTEST_CHECK(fs::is_empty(other.path));
}
