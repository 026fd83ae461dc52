#include "serve/completion.h"

#include "serve/http_request.h"
#include "serve/job_queue.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

namespace {

using Kind = serve::CompletionJob::Event::Kind;

serve::CompletionRequest parse(const std::string& body, bool chat = false) {
  return serve::parse_completion(body, chat, {});
}

// Returns the text of a refusal, or an empty text for a valid request.
std::string refused(const std::string& body, bool chat = false) {
  try {
    parse(body, chat);
  } catch (const serve::HttpError& error) {
    DOCTEST_CHECK(error.status() == 400);
    return error.what();
  }
  return {};
}

serve::JobPtr job(const std::string& body) {
  return std::make_shared<serve::CompletionJob>(parse(body));
}

}  // namespace

DOCTEST_TEST_CASE("members of a request, and what they are by themselves") {
  const auto plain = parse(R"({"prompt": "a", "seed": null, "user": "me", "logit_bias": {}})");
  DOCTEST_CHECK(plain.prompts.size() == 1);
  DOCTEST_CHECK(plain.max_tokens == 16);
  DOCTEST_CHECK(plain.temperature == 1);
  DOCTEST_CHECK(!plain.logprobs);
  DOCTEST_CHECK(!plain.seed);
  const auto all = parse(
      R"({"model": "m", "prompt": ["a", [1, 2]], "max_tokens": 5.0, "temperature": 0, "top_p": 0.5,
          "top_k": 7, "stop": ["x", "y"], "seed": 3, "n": 2, "echo": true, "logprobs": 0})");
  DOCTEST_CHECK(all.model == "m");
  DOCTEST_CHECK(all.prompts[0].text == "a");
  DOCTEST_CHECK(all.prompts[1].tokens == std::vector<std::int64_t>{1, 2});
  DOCTEST_CHECK(all.max_tokens == 5);
  DOCTEST_CHECK(all.top_p == 0.5);
  DOCTEST_CHECK(all.stop == std::vector<std::string>{"x", "y"});
  DOCTEST_CHECK(all.seed == 3u);
  DOCTEST_CHECK(all.n == 2);
  DOCTEST_CHECK(all.echo);
  DOCTEST_CHECK(all.logprobs == 0);
  DOCTEST_CHECK(serve::texts_of(all) == 4);
  const auto chat = parse(R"({"messages": [], "max_completion_tokens": 9, "logprobs": true,
                              "top_logprobs": 2, "stop": "x"})",
      true);
  DOCTEST_CHECK(chat.max_tokens == 9);
  DOCTEST_CHECK(chat.logprobs == 2);
  DOCTEST_CHECK(chat.stop == std::vector<std::string>{"x"});
}

DOCTEST_TEST_CASE("a member that is wrong, or would change a text unseen, is named") {
  struct Case {
    const char *body, *part;
  };
  for (const Case& wrong :
      std::vector<Case>{{"", "the request"}, {"[]", "not a JSON object"},
          {"{}", "prompt: is missing"}, {R"({"prompt": 1})", "prompt:"},
          {R"({"prompt": []})", "prompt:"}, {R"({"prompt": [[]]})", "prompt:"},
          {R"({"prompt": [-1]})", "prompt: -1"}, {R"({"prompt": [1, "a"]})", "prompt:"},
          {R"({"prompt": [99999999999]})", "prompt:"},
          {R"({"prompt": "a", "max_tokens": -2})", "max_tokens: takes a whole number"},
          {R"({"prompt": "a", "max_tokens": 1.5})", "max_tokens"},
          {R"({"prompt": "a", "max_tokens": 1e300})", "max_tokens"},
          {R"({"prompt": "a", "temperature": -0.1})", "temperature"},
          {R"({"prompt": "a", "temperature": "hot"})", "temperature"},
          {R"({"prompt": "a", "top_p": -0.1})", "top_p"}, {R"({"prompt": "a", "n": 65})", "n:"},
          {R"({"prompt": ["a", "b"], "n": 64})",
              "prompt: takes at most 64 texts, 64 of each prompt"},
          {R"({"prompt": "a", "stop": [1]})", "stop"}, {R"({"prompt": "a", "echo": 1})", "echo"},
          {R"({"prompt": "a", "logprobs": 21})", "logprobs"},
          {R"({"prompt": "a", "presence_penalty": 101})", "presence_penalty: takes a number"},
          {R"({"prompt": "a", "repetition_penalty": 0})", "repetition_penalty: takes a number"},
          {R"({"prompt": "a", "repeat_penalty": 1.1})", "repeat_penalty: is not supported"},
          {R"({"prompt": "a", "presence_penalty": 1, "repeat_last_n": 64})", "repeat_last_n"},
          {R"({"prompt": "a", "no_such_member": 0})",
              "no_such_member: is not a member that this server knows"},
          {R"({"prompt": "a", "messages": [1]})", "messages: is not a member"},
          {R"({"prompt": "a", "response_format": {"type": "json_schema"}})",
              "response_format: is not supported"},
          {R"({"prompt": "a", "grammar": "root ::= [0-9]+"})", "grammar: is not supported"},
          {R"({"prompt": "a", "allowed_token_ids": 1})", "allowed_token_ids: takes a list"},
          {R"({"prompt": "a", "allowed_token_ids": [-1]})", "allowed_token_ids: -1 is not"},
          {R"({"prompt": "a", "top_n_sigma": 1.5})", "top_n_sigma: is not supported"},
          {R"({"prompt": "a", "dynatemp_range": 0.5})", "dynatemp_range: is not supported"},
          {R"({"prompt": "a", "samplers": ["top_k"]})", "samplers: is not supported"},
          {R"({"prompt": "a", "n_keep": 4})", "n_keep: is not supported"},
          {R"({"prompt": "a", "prompt_embeds": "AAAA"})", "prompt_embeds: is not supported"},
          {R"({"prompt": "a", "best_of": 2})", "best_of"},
          {R"({"prompt": "a", "suffix": "x"})", "suffix"},
          {R"({"prompt": "a", "min_tokens": 2})", "min_tokens: is not supported"},
          {R"({"prompt": "a", "typical_p": 0.5})", "typical_p: is not supported"},
          {R"({"prompt": "a", "ignore_eos": true})", "ignore_eos: is not supported"},
          {R"({"prompt": "a", "stop_token_ids": [1]})", "stop_token_ids: is not supported"},
          {R"({"prompt": "a", "guided_json": {"a": 1}})", "guided_json: is not supported"},
          {R"({"prompt": "a", "seed": 1.5})", "seed: takes a whole number"},
          {R"({"prompt": "a", "logit_bias": {"the": 2}})", "logit_bias: \"the\" is not a token id"},
          {R"({"prompt": "a", "logit_bias": [1]})", "logit_bias: takes an object"},
          {R"({"prompt": "a", "logit_bias": {"1": "x"}})", "logit_bias: takes a number"},
          {R"({"prompt": "a", "web_search_options": {}})", "web_search_options: is not supported"},
          {R"({"prompt": "a", "json_schema": {}})", "json_schema: is not supported"},
          {R"({"prompt": "a", "guided_json": {}})", "guided_json: is not supported"},
          {R"({"prompt": "a", "stream_options": {"include_usage": 1}})",
              "include_usage: takes true or false"},
          {R"({"prompt": "a", "stream_options": {"continuous_usage_stats": true}})",
              "stream_options: continuous_usage_stats is not supported"},
          {R"({"prompt": "a", "stream_options": {"include_obfuscation": true}})",
              "stream_options: include_obfuscation is not supported"},
          {R"({"prompt": "a", "stream_options": {"other": false}})",
              "stream_options: other is not supported"},
          {R"({"prompt": "a", "memory": [1]})", "memory: takes an object"}})
    DOCTEST_CHECK_MESSAGE(refused(wrong.body).find(wrong.part) != std::string::npos,
        std::string(wrong.body), ": ", refused(wrong.body));
  DOCTEST_CHECK(refused("{}", true).find("messages") != std::string::npos);
  DOCTEST_CHECK(
      refused(R"({"messages": [], "tools": [1]})", true).find("tools") != std::string::npos);
  DOCTEST_CHECK(
      refused(R"({"messages": [], "echo": true})", true).find("echo") != std::string::npos);
  DOCTEST_CHECK(refused(R"({"messages": [], "top_logprobs": 2})", true) ==
                "top_logprobs: requires logprobs, true");
  DOCTEST_CHECK(refused(R"({"messages": [], "logprobs": false, "top_logprobs": 2})", true)
                    .starts_with("top"));
  DOCTEST_CHECK(refused(R"({"messages": [], "top_logprobs": 0})", true).empty());
  for (const char* name : {"reasoning_effort", "tool_choice"})
    DOCTEST_CHECK(refused(fmt::format(R"({{"messages": [], "{}": "required"}})", name), true) ==
                  fmt::format("{}: is not supported; leave it out", name));
  DOCTEST_CHECK(refused(R"({"messages": [], "documents": [{"text": "a"}]})", true) ==
                "documents: is not supported; leave it out");
  DOCTEST_CHECK(!refused(std::string(100'000, '[')).empty());
  DOCTEST_CHECK(refused(R"({"prompt": "a", "min_tokens": 0, "repeat_penalty": 1.0, "echo": true,
                            "ignore_eos": false, "bad_words": [], "top_n_sigma": -1.0,
                            "response_format": {"type": "text"}, "repeat_last_n": 64,
                            "mirostat": 0, "mirostat_tau": 5, "grammar": "", "tools": [],
                            "json_schema": null, "stream_options": {"include_usage": true,
                            "include_obfuscation": false, "continuous_usage_stats": false}})")
                    .empty());
}

DOCTEST_TEST_CASE("the values by which clients ask for nothing") {
  const auto none = parse(R"({"prompt": "a", "top_k": -1, "seed": -1, "stop": "", "top_p": 1,
                              "max_tokens": -1, "logit_bias": {}, "presence_penalty": 0})");
  DOCTEST_CHECK(none.top_k == 0);
  DOCTEST_CHECK(!none.seed);
  DOCTEST_CHECK(none.stop.empty());
  DOCTEST_CHECK(none.max_tokens == 4096);
  DOCTEST_CHECK(none.biases.empty());
  DOCTEST_CHECK(
      parse(R"({"prompt": "a", "stop": ["", "x"]})").stop == std::vector<std::string>{"x"});
  DOCTEST_CHECK(parse(R"({"prompt": "a", "max_tokens": 1000000})").max_tokens == 4096);
  DOCTEST_CHECK(parse(R"({"prompt": "a", "n_predict": 7})").max_tokens == 7);
  DOCTEST_CHECK(parse(R"({"prompt": "a", "seed": 18446744073709551615})").seed == UINT64_MAX);
  DOCTEST_CHECK(parse(R"({"prompt": "a", "seed": -2})").seed == UINT64_MAX - 1);
  DOCTEST_CHECK(parse(R"({"prompt": "a", "top_p": 0})").top_p > 0);
}

DOCTEST_TEST_CASE(
    "changes of logits: OpenAI's object of biases, llama.cpp's pairs, allowed tokens") {
  using Biases = std::vector<std::pair<std::int64_t, double>>;
  DOCTEST_CHECK(parse(R"({"prompt": "a", "logit_bias": {"7": -1.5, "40": 3}})").biases ==
                Biases{{40, 3}, {7, -1.5}});
  DOCTEST_CHECK(parse(R"({"prompt": "a", "logit_bias": [[7, 1], ["8", false]]})").biases ==
                Biases{{7, 1}, {8, -1e9}});
  const auto rules = parse(R"({"prompt": "a", "presence_penalty": 1, "frequency_penalty": -0.5,
                               "repetition_penalty": 1.3, "allowed_token_ids": [3, 4.0]})");
  DOCTEST_CHECK(rules.presence_penalty == 1);
  DOCTEST_CHECK(rules.frequency_penalty == -0.5);
  DOCTEST_CHECK(rules.repetition_penalty == 1.3);
  DOCTEST_CHECK(rules.allowed == std::vector<std::int64_t>{3, 4});
}

DOCTEST_TEST_CASE("characters before a byte, of texts that are not UTF-8 and of texts that grow") {
  const std::string text = "a\xC3\xA9\x80\xE2\x82z\xE2\x82\xAC";
  serve::CharacterCount count;
  std::vector<std::int64_t> before;
  for (std::size_t byte = 0; byte <= text.size(); ++byte)
    before.push_back(count.before(text, byte));
  DOCTEST_CHECK(before == std::vector<std::int64_t>{0, 1, 1, 2, 3, 3, 4, 5, 5, 5, 6});
  serve::CharacterCount growing;
  DOCTEST_CHECK(growing.before(text.substr(0, 2), 1) == 1);
  DOCTEST_CHECK(growing.before(text, 3) == 2);
}

DOCTEST_TEST_CASE("answers have the shapes that clients read; a token that is no text is bytes") {
  const serve::CompletionHead head{"id-1", "m", 5, false}, chat{"id-2", "m", 5, true};
  serve::CompletionChoice choice{1, "ab", "stop"};
  choice.tokens = {
      {"a", std::nullopt, {}, 0}, {"\xC3", -0.5, {{"b", -0.25}}, 1}, {"b", -1.5, {}, 2}};
  const auto json = serve::completion_json(head, {choice}, {3, 2, 1});
  DOCTEST_CHECK(
      json.dump() ==
      R"({"id":"id-1","object":"text_completion","created":5,"model":"m","choices":[{"index":1,)"
      R"("text":"ab","logprobs":{"tokens":["a","bytes:\\xc3","b"],"token_logprobs":[null,-0.5,-1.5],)"
      R"("top_logprobs":[null,{"b":-0.25},{}],"text_offset":[0,1,2]},"finish_reason":"stop"}],)"
      R"("usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5,)"
      R"("prompt_tokens_details":{"cached_tokens":1}}})");
  // Of two tokens with one text, the more probable.
  choice.tokens = {{"A", -0.5, {{"A", -0.5}, {"A", -3}}}};
  DOCTEST_CHECK(
      serve::completion_json(head, {choice}, {})["choices"][0]["logprobs"]["top_logprobs"].dump() ==
      R"([{"A":-0.5}])");
  choice.tokens.reset();
  choice.extra = {{"citations", {}}};
  DOCTEST_CHECK(serve::completion_json(chat, {choice}, {})["choices"].dump() ==
                R"([{"index":1,"message":{"role":"assistant","content":"ab"},"logprobs":null,)"
                R"("finish_reason":"stop","tessera":{"citations":null}}])");
  DOCTEST_CHECK(serve::completion_chunk(head, {0, "x"}, true)["choices"].dump() ==
                R"([{"index":0,"text":"x","logprobs":null,"finish_reason":null}])");
  DOCTEST_CHECK(
      serve::completion_chunk(head, {0, "x", "", {{{"x", -0.5, {}, 4}}}}, true)["choices"].dump() ==
      R"([{"index":0,"text":"x","logprobs":{"tokens":["x"],"token_logprobs":[-0.5],)"
      R"("top_logprobs":[{}],"text_offset":[4]},"finish_reason":null}])");
  DOCTEST_CHECK(serve::completion_chunk(chat, {0, "x"}, true)["choices"][0]["delta"].dump() ==
                R"({"role":"assistant","content":"x"})");
  DOCTEST_CHECK(serve::completion_chunk(chat, {0, "", "length"}, false)["choices"].dump() ==
                R"([{"index":0,"delta":{},"logprobs":null,"finish_reason":"length"}])");
}

DOCTEST_TEST_CASE("requests are taken in their order, and past those that do not fit") {
  serve::JobQueue queue(4);
  const auto a = job(R"({"prompt": "a"})"), b = job(R"({"prompt": "b", "memory": {"cache": 9}})"),
             c = job(R"({"prompt": "c", "memory": {}})"), d = job(R"({"prompt": "d"})"),
             e = job(R"({"prompt": "e"})");
  for (const auto& one : {a, b, c, d}) DOCTEST_CHECK(queue.push(one));
  DOCTEST_CHECK(!queue.push(e));
  DOCTEST_CHECK(b->request.memory == R"({"cache":9})");
  const auto plain = [](const auto& request) { return request.memory.empty(); };
  const auto any = [](const auto&) { return true; };
  DOCTEST_CHECK(queue.take(plain) == a);
  c->cancel();
  DOCTEST_CHECK(queue.size() == 2);
  DOCTEST_CHECK(queue.take(plain) == d);
  DOCTEST_CHECK(queue.take(plain) == nullptr);
  DOCTEST_CHECK(queue.push(e));
  queue.close();
  DOCTEST_CHECK(!queue.push(d));
  DOCTEST_CHECK(queue.take(any) == b);
  DOCTEST_CHECK(queue.take(any) == e);
  DOCTEST_CHECK(queue.take(any) == nullptr);
  DOCTEST_CHECK(queue.closed());
}

DOCTEST_TEST_CASE("jobs whose clients have left take no room in the queue") {
  serve::JobQueue queue(2);
  const auto a = job(R"({"prompt": "a"})"), b = job(R"({"prompt": "b"})"),
             c = job(R"({"prompt": "c"})");
  for (const auto& one : {a, b}) DOCTEST_CHECK(queue.push(one));
  DOCTEST_CHECK(!queue.push(c));
  a->cancel();
  DOCTEST_CHECK(queue.size() == 1);
  DOCTEST_CHECK(queue.push(c));
  DOCTEST_CHECK(queue.take([](const auto&) { return true; }) == b);
}

DOCTEST_TEST_CASE("a client sees what is told, in order") {
  const auto one = job(R"({"prompt": "a"})");
  DOCTEST_CHECK(!one->next(std::chrono::milliseconds(1)));
  one->send({Kind::piece});
  one->fail(400, "why");
  DOCTEST_CHECK(one->next(std::chrono::milliseconds(1))->kind == Kind::piece);
  const auto event = one->next(std::chrono::milliseconds(1));
  DOCTEST_CHECK(event->kind == Kind::failed);
  DOCTEST_CHECK(event->status == 400);
  DOCTEST_CHECK(event->choice.text == "why");
}
