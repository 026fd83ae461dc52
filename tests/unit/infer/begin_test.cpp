// The tokens before a text.

#include "infer/windows/window_plan.h"

#include <doctest/doctest.h>

#include "core/error.h"
#include "core/io.h"
#include "text/formats/tokenizer_json.h"
#include "tiny.h"

namespace {

constexpr const char* kLlama3 = "tests/golden/tokenizers/pipelines/llama3.json";

}  // namespace

DOCTEST_TEST_CASE("--bos auto is what the tokenizer's template says, for data that lack it") {
  const auto tokenizer = text::load_tokenizer(kLlama3);
  const auto mark = tokenizer->id_of("<|begin_of_text|>");
  DOCTEST_REQUIRE(mark);
  DOCTEST_CHECK(batch::chosen_beginning("auto", tokenizer.get(), "x") == *mark);
  DOCTEST_CHECK(batch::chosen_beginning("none", tokenizer.get(), "x") == -1);
  DOCTEST_CHECK(batch::chosen_beginning("<|endoftext|>", tokenizer.get(), "x") ==
                tokenizer->id_of("<|endoftext|>"));
  DOCTEST_CHECK(batch::chosen_beginning("auto", nullptr, "x") == std::nullopt);
  DOCTEST_CHECK_THROWS_WITH_AS(batch::chosen_beginning("<s>", tokenizer.get(), "x"),
      "--bos <s>: not a token of the tokenizer of x; give auto, none or a token", core::Error);

  nn::Model model =
      tiny::model_of("transformer", "learned", static_cast<std::int64_t>(tokenizer->size()));
  auto text = tiny::text_of({9, 8}, 300);
  text.vocabulary = tokenizer->size();
  const auto plan = [&](const char* begin) {
    const tiny::Shard shard(text, tokenizer->json());
    infer::WindowOptions options;
    options.begin = begin;
    return infer::plan_windows(options, model, {}, shard.data());
  };
  DOCTEST_CHECK(plan("auto").beginning == *mark);
  DOCTEST_CHECK(plan("auto").begin == "<|begin_of_text|>");
  DOCTEST_CHECK(plan("none").beginning == -1);
  DOCTEST_CHECK(plan("none").begin.empty());  // unchanged without a template
  text.documents[0].insert(text.documents[0].begin(), *mark);
  DOCTEST_CHECK(plan("auto").beginning == -1);
  DOCTEST_CHECK(plan("<|begin_of_text|>").beginning == *mark);
  text.documents[0].push_back(*tokenizer->id_of("<|endoftext|>"));
  DOCTEST_CHECK(plan("none").begin == "none");
  DOCTEST_CHECK(plan("<|endoftext|>").begin.empty());
}
