// Folders that are exchanged between Tessera and transformers in both directions.
// tests/golden/hf_gpt2.py is transformers' side.

#include <stdio.h>
#include <sys/wait.h>

#include <cstdlib>
#include <sstream>

#include "folder_of_test.h"
#include "model/folder.h"
#include "small_models.h"

namespace {

struct Answer {
  int status;
  std::string text;
};

/// Returns the peer's python: $TESSERA_PEERS, else the bench's, else python3.
std::string python() {
  if (const char* given = std::getenv("TESSERA_PEERS"); given && *given) return given;
  const std::string bench = "build/peers/bin/python";
  return std::filesystem::exists(bench) ? bench : "python3";
}

Answer ask_peer(const std::string& arguments) {
  const std::string command = python() + " tests/golden/hf_gpt2.py " + arguments + " 2>/dev/null";
  FILE* pipe = ::popen(command.c_str(), "r");
  DOCTEST_REQUIRE(pipe != nullptr);
  Answer answer{0, ""};
  char buffer[4096];
  while (const std::size_t n = ::fread(buffer, 1, sizeof buffer, pipe))
    answer.text.append(buffer, n);
  const int status = ::pclose(pipe);
  answer.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return answer;
}

/// Returns false, and prints the reason, if the peer cannot run.
bool peer_is_there() {
  const Answer answer = ask_peer("none none");
  if (answer.status == 0) return true;
  DOCTEST_MESSAGE("SKIP transformers as peer: "
                  << (answer.status == 77 ? answer.text : python() + " does not run"));
  return false;
}

std::string arguments_of(const torch::Tensor& ids) {
  std::string text;
  for (std::int64_t i = 0; i < ids.numel(); ++i)
    text += " " + std::to_string(ids[i].item<std::int64_t>());
  return text;
}

}  // namespace

DOCTEST_TEST_CASE(
    "transformers reads a GPT-2 shaped model and gives its loss; saved by it, it is the same model") {
  if (!peer_is_there()) return;
  const auto ids = some_ids();
  auto untied = small_gpt2();
  untied.vocabulary.tied = false;
  auto exact = small_gpt2();
  exact.transformer.activation = "gelu-exact";
  exact.shape.d_ff = 40;
  exact.transformer.norm_epsilon = 1e-3;
  for (const auto& options : {small_gpt2(), untied, exact}) {
    const TemporaryFolder folder;
    const auto model = random_model(options);
    model::save(folder / "ours", *model, {{"memory", "local"}}, "");
    const Answer answer = ask_peer("loss " + (folder / "ours") + arguments_of(ids));
    DOCTEST_REQUIRE_MESSAGE(answer.status == 0, answer.text);
    DOCTEST_CHECK(std::abs(std::stod(answer.text) - loss_of(*model, ids)) < 1e-4);

    const Answer resaved = ask_peer("resave " + (folder / "ours") + " " + (folder / "theirs"));
    DOCTEST_REQUIRE_MESSAGE(resaved.status == 0, resaved.text);
    const auto loaded = model::load(folder / "theirs");
    DOCTEST_CHECK((loaded.fingerprint == model::fingerprint(*model)));
    DOCTEST_CHECK(loaded.facts.memory == "local");
  }
}

DOCTEST_TEST_CASE(
    "a GPT-2 folder of transformers is read, however its tensors are named and typed") {
  if (!peer_is_there()) return;
  const auto ids = some_ids();
  const TemporaryFolder folder;
  const Answer answer = ask_peer("make " + folder.path.string() + arguments_of(ids));
  DOCTEST_REQUIRE_MESSAGE(answer.status == 0, answer.text);
  std::istringstream lines(answer.text);
  std::string name;
  double expected = 0;
  int kinds = 0;
  core::Digest prefixed;
  while (lines >> name >> expected) {
    DOCTEST_CAPTURE(name);
    const auto loaded = model::load(folder / name);
    DOCTEST_CHECK(std::abs(loss_of(*loaded.model, ids) - expected) < 1e-4);
    DOCTEST_CHECK(loaded.facts.memory == "none");
    if (name == "prefixed") prefixed = loaded.fingerprint;
    if (name == "bare" || name == "with_head") DOCTEST_CHECK((loaded.fingerprint == prefixed));
    ++kinds;
  }
  DOCTEST_CHECK(kinds == 7);
}

DOCTEST_TEST_CASE(
    "a folder's tokenizer is the same from tokenizer.json and from vocab.json with merges.txt") {
  if (!peer_is_there()) return;
  const TemporaryFolder folder;
  for (const char* name : {"whole", "parts"}) {
    model::save(folder / name, *random_model(small_gpt2(), 280), {}, "");
    auto config = core::parse_json(core::read_text(folder / name + "/config.json"), "config.json");
    config.erase("tessera");
    overwrite(folder / name + "/config.json", core::dump(config));
  }
  const Answer answer = ask_peer("tokenizer " + (folder / "whole") + " " + (folder / "parts"));
  DOCTEST_REQUIRE_MESSAGE(answer.status == 0, answer.text);
  const auto whole = model::load(folder / "whole"), parts = model::load(folder / "parts");
  DOCTEST_CHECK(!whole.tokenizer.empty());
  DOCTEST_CHECK(whole.tokenizer == parts.tokenizer);
  shard::Header header;
  header.tokenizer = whole.tokenizer;
  header.vocabulary = 280;
  model::check_tokenizer(parts, header, "x.shard.zst");
}
