// Chat templates: texts equal to jinja2's (tests/golden/chat_template.py), refusals, limits, and
// the location of a model's template.

#include "text/chat/chat_template.h"

#include <doctest/doctest.h>

#include <map>
#include <string>

#include "core/error.h"
#include "core/file_text.h"
#include "unit/temporary_folder.h"
#include "unit/thrown.h"

namespace {

using core::OrderedJson;

const std::string kFolder = "tests/golden/chat_template/";
constexpr std::time_t kNewYear = 1735732800;  // noon of 2025-01-01

OrderedJson read(const std::string& name) {
  return OrderedJson::parse(core::read_file(kFolder + name));
}

/// null: it is refused.
OrderedJson rendered(const std::string& source, const OrderedJson& variables) {
  try {
    return text::ChatTemplate(source, "t").render(variables, kNewYear);
  } catch (const core::Error& error) {
    DOCTEST_CHECK(error.code() == core::Code::bad_data);
    DOCTEST_CHECK(std::string(error.what()).starts_with("t:"));
    return nullptr;
  }
}

std::string why_refused(const std::string& source,
    const OrderedJson& variables = OrderedJson::object(), const text::ChatLimits& limits = {}) {
  try {
    text::ChatTemplate(source, "t").render(variables, kNewYear, limits);
  } catch (const core::Error& error) { return error.what(); }
  return "";
}

DOCTEST_TEST_CASE("templates of models give the texts that jinja2 gives") {
  const auto talks = read("conversations.json"), texts = read("texts.json");
  for (const auto& [name, expected] : texts.items()) {
    const auto source = core::read_file(kFolder + name);
    for (std::size_t i = 0; i < talks.size(); ++i) {
      OrderedJson variables = {{"bos_token", "<s>"}, {"eos_token", "</s>"}, {"tools", nullptr},
          {"documents", nullptr}, {"add_generation_prompt", true}};
      variables.update(talks[i]);
      DOCTEST_CAPTURE(name);
      DOCTEST_CAPTURE(i);
      DOCTEST_CHECK(rendered(source, variables) == expected[i]);
    }
  }
}

DOCTEST_TEST_CASE("pieces of templates give the texts that jinja2 gives") {
  const auto all = read("snippets.json");
  for (const auto& one : all["snippets"]) {
    const auto source = one["template"].get<std::string>();
    DOCTEST_CAPTURE(source);
    DOCTEST_CHECK(rendered(source, all["variables"]) == one["text"]);
  }
}

DOCTEST_TEST_CASE("methods, filters, formats and keys give the texts that jinja2 gives") {
  const auto variables = read("snippets.json")["variables"], all = read("expressions.json");
  for (const auto& [expression, text] : all.items()) {
    DOCTEST_CAPTURE(expression);
    DOCTEST_CHECK(rendered("{{ " + expression + " }}", variables) == text);
  }
}

DOCTEST_TEST_CASE("a template that is refused is told by its line and what is not supported") {
  DOCTEST_CHECK(why_refused("a\n{% block x %}") == "t:2: {% block %} is not supported");
  DOCTEST_CHECK(why_refused("\n\n{{ 1|nofilter }}") == "t:3: the filter nofilter is not supported");
  DOCTEST_CHECK(why_refused("{{ 1 is notest }}") == "t:1: the test notest is not supported");
  DOCTEST_CHECK(why_refused("{{ raise_exception('no\x1b[2J way') }}") == "t:1: no\\x1b[2J way");
  DOCTEST_CHECK(why_refused("{% if x %}") == "t:1: {% endif %} is missing");
  DOCTEST_CHECK(why_refused("{{ f(*x) }}").find("is not supported") != std::string::npos);
  DOCTEST_CHECK(why_refused("{{ 'a'.encode() }}") == "t:1: encode of str is not supported");
  DOCTEST_CHECK(why_refused("{{ 'a'.upper(1) }}") == "t:1: upper() does not take 1 argument");
  DOCTEST_CHECK(why_refused("{{ {[1]: 2} }}") == "t:1: a value of type list cannot be a key");
  DOCTEST_CHECK(why_refused("{{ 1|sort(x=2) }}") == "t:1: the filter sort takes no argument x");
  DOCTEST_CHECK(why_refused("{{ x.y.z }}") == "t:1: 'x' is undefined");
}

DOCTEST_TEST_CASE("hostile templates end soon") {
  const text::ChatLimits small{20'000, 10'000};
  const OrderedJson none = OrderedJson::object();
  DOCTEST_CHECK(
      why_refused("{% for i in range(1000) %}{% for j in range(1000) %}{% endfor %}{% endfor %}",
          none, small) == "t:1: the template takes too many steps");
  DOCTEST_CHECK(why_refused("{{ 'x' * 1000000000000 }}", none, small) ==
                "t:1: the template makes too long a text");
  DOCTEST_CHECK(
      why_refused(
          "{% set n = namespace(t='xx') %}{% for i in range(60) %}{% set n.t = n.t + n.t %}{% endfor %}",
          none, small) == "t:1: the template makes too long a text");
  DOCTEST_CHECK(
      why_refused(
          "{% set n = namespace(l=[]) %}{% for i in range(999) %}{% set n.l = [n.l] %}{% endfor %}",
          none, small) == "t:1: lists or dicts more than 128 deep");
  DOCTEST_CHECK(
      why_refused(
          "{% set n = namespace(l=['abc']) %}{% for i in range(99) %}{% set n.l = [n.l, n.l] %}{% endfor %}{{ n.l }}",
          none, small) == "t:1: the template takes too many steps");
  // What is made of a text's characters or parts is paid for, and before it is made.
  const text::ChatLimits few{6'000, 10'000};
  for (const char* made : {"('x' * 9999)|list", "('x' * 9999)|map('upper')|list",
           "('x,' * 4999).split(',')", "('x' * 9999)|sort", "'x'.join('y' * 9999)",
           "('x' * 9999)|unique|list", "([0] * 9999)", "('x\\n' * 4999).splitlines()",
           "range(9999)|map('string')|list", "('x' * 9999)|map(attribute='y')|list"})
    DOCTEST_CHECK(why_refused(std::string("{{ ") + made + "|length }}", none, few) ==
                  "t:1: the template takes too many steps");
  DOCTEST_CHECK(why_refused("{{ 'x'.center(99999) }}", none, small) ==
                "t:1: the template makes too long a text");
  DOCTEST_CHECK(why_refused("{{ '%.99999f' % 1.5 }}", none, small) ==
                "t:1: the template makes too long a text");
  DOCTEST_CHECK(why_refused("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}") ==
                "t:1: calls and expressions are too deep");
  DOCTEST_CHECK(why_refused("{{ " + std::string(5000, '(') + "1" + std::string(5000, ')') +
                            " }}") == "t:1: expressions more than 200 deep");
  std::string sum = "{{ 1";
  for (int i = 0; i < 5000; ++i) sum += "+1";
  DOCTEST_CHECK(why_refused(sum + " }}") == "t:1: expressions more than 200 deep");
  std::string blocks;
  for (int i = 0; i < 100; ++i) blocks += "{% if 1 %}";
  DOCTEST_CHECK(why_refused(blocks) == "t:1: blocks more than 60 deep");
  // Namespaces that hold each other, and macros that hold their scope, are freed.
  DOCTEST_CHECK(
      why_refused(
          "{% set a = namespace() %}{% set b = namespace(a=a) %}{% set a.b = b %}{% macro m() %}{% endmacro %}{{ m() }}") ==
      "");
}

DOCTEST_TEST_CASE("a long message buys little: few copies of it as a list, or as JSON") {
  const std::string keep = "{% set n = namespace(l=[]) %}{% for i in range(K) %}",
                    list = "{% set n.l = n.l + [messages[0].content|list] %}{% endfor %}",
                    json = "{% set x = messages|tojson %}{% endfor %}";
  const auto refusal = [&](const std::string& body, int times, const std::string& text) {
    auto source = keep + body;
    source.replace(source.find('K'), 1, std::to_string(times));
    return why_refused(source, {{"messages", text::user_turn(text)}}, {100'000, 1'000'000});
  };
  const std::string steps = "t:1: the template takes too many steps", text(200'000, 'a'),
                    controls(200'000, '\1');
  std::string wide;
  for (int i = 0; i < 100'000; ++i) wide += "\u00e9";
  DOCTEST_CHECK(refusal(list, 1, text) == "");
  DOCTEST_CHECK(refusal(list, 3, text) == steps);
  DOCTEST_CHECK(refusal(list, 3, wide) == steps);
  DOCTEST_CHECK(refusal(json, 5, controls) == "");
  DOCTEST_CHECK(refusal(json, 12, controls) == steps);
}

DOCTEST_TEST_CASE("templates of models take messages of a megabyte, one or many") {
  const auto texts = read("texts.json");
  OrderedJson many = OrderedJson::array();
  for (int i = 0; i < 20'000; ++i)
    many.push_back(
        {{"role", i % 2 == 0 ? "user" : "assistant"}, {"content", std::string(50, 'a')}});
  many.push_back({{"role", "user"}, {"content", "b"}});
  for (const auto& [name, unused] : texts.items())
    for (const auto& messages : {text::user_turn(std::string(1'000'000, '"')), many}) {
      DOCTEST_CAPTURE(name);
      const OrderedJson variables = {{"bos_token", "<s>"}, {"eos_token", "</s>"},
          {"tools", nullptr}, {"messages", messages}, {"add_generation_prompt", true}};
      // A quarter of the steps that there are.
      DOCTEST_CHECK(why_refused(core::read_file(kFolder + name), variables,
                        {2'500'000, std::size_t{1} << 24}) == "");
    }
}

DOCTEST_TEST_CASE("no operation takes the product of two texts' sizes, or the power of a depth") {
  const std::string text = "('a' * 4000000)", part = "('a' * 2000000 + 'b')";
  const OrderedJson none = OrderedJson::object();
  for (const auto& [operation, result] :
      std::map<std::string, std::string>{{text + ".find(" + part + ")", "-1"},
          {text + ".rfind('b' + 'a' * 2000000)", "-1"}, {part + " in " + text, "False"},
          {text + ".count(" + part + ")", "0"}, {text + ".split(" + part + ")|length", "1"},
          {text + ".rsplit('b' + 'a' * 2000000)|length", "1"},
          {text + ".replace(" + part + ", '')|length", "4000000"},
          {text + ".partition(" + part + ")[1]", ""},
          {text + "|replace(" + part + ", 'c')|length", "4000000"},
          {text + ".strip('b' * 4000000)|length", "4000000"}})
    DOCTEST_CHECK(rendered("{{ " + operation + " }}", none) == result);
  const std::string nested = std::string(60, '[') + std::string(60, ']');
  DOCTEST_CHECK(rendered("{{ " + nested + " < " + nested + " }}", none) == "False");
  // Names are looked up, not searched.
  std::string sets;
  for (int i = 0; i < 100'000; ++i)
    sets += "{% set v" + std::to_string(i) + "=1 %}{% set n.v" + std::to_string(i) + "=1 %}";
  DOCTEST_CHECK(rendered("{% set n = namespace() %}" + sets + "{{ v9 + n.v9 }}", none) == "2");
}

DOCTEST_TEST_CASE(
    "a folder's template is chat_template.jinja, else the default one of tokenizer_config.json") {
  const TemporaryFolder folder;
  DOCTEST_CHECK_FALSE(text::Chat::of_folder(folder.path).has_value());
  const auto user = text::user_turn("hi");
  folder.file("tokenizer_config.json",
      R"({"bos_token": {"content": "<b>"}, "eos_token": "<e>", "chat_template": "{{ bos_token }}A{{ messages[0].content }}{{ eos_token }}{{ add_generation_prompt }}"})");
  DOCTEST_CHECK(text::Chat::in_folder(folder.path).prompt(user, "", "here") == "<b>Ahi<e>True");
  DOCTEST_CHECK(text::Chat::in_folder(folder.path).prompt(user, "be", "here") == "<b>Abe<e>True");
  folder.file("tokenizer_config.json",
      R"({"chat_template": [{"name": "tool_use", "template": "T"}, {"name": "default", "template": "D"}]})");
  DOCTEST_CHECK(text::Chat::in_folder(folder.path).prompt(user, "", "here") == "D");
  folder.file("chat_template.jinja", "{% for m in messages %}{{ m.role }}:{% endfor %}\n");
  const auto chat = text::Chat::in_folder(folder.path);
  DOCTEST_CHECK(chat.prompt(user, "s", "here") == "system:user:");
  const auto refused = [&](const OrderedJson& messages, const std::string& system) {
    try {
      chat.prompt(messages, system, "here");
    } catch (const core::Error& error) { return std::string(error.what()); }
    return std::string();
  };
  DOCTEST_CHECK(refused({{"role", "user"}}, "").starts_with("here: messages: takes"));
  DOCTEST_CHECK(refused(OrderedJson::array(), "").starts_with("here: messages: takes"));
  DOCTEST_CHECK(refused(OrderedJson::array({1}), "").starts_with("here: messages: takes"));
  DOCTEST_CHECK(refused(OrderedJson::array({{{"role", "system"}, {"content", "x"}}}), "s")
                    .find("leave --system out") != std::string::npos);
  folder.file("chat_template.jinja", "{{ raise_exception('no system') }}");
  DOCTEST_CHECK_THROWS_WITH(text::Chat::in_folder(folder.path).prompt(user, "", "here"),
      ("here: " + folder.path.string() + "/chat_template.jinja:1: no system").c_str());
}

}  // namespace

DOCTEST_TEST_CASE(
    "a conversation in parts: answers from where they are asked for to the turn's end") {
  const std::string turns =
      "{% for m in messages %}<{{ m.role }}>{{ m.content }}.{% endfor %}"
      "{% if add_generation_prompt %}<assistant>{% endif %}";
  const core::OrderedJson messages = {{{"role", "user"}, {"content", "hi"}},
      {{"role", "assistant"}, {"content", "yo"}}, {{"role", "user"}, {"content", "and"}},
      {{"role", "assistant"}, {"content", "so"}}, {{"role", "user"}, {"content", "bye"}}};
  const auto parts_of = [&](const std::string& source) {
    std::string text;
    for (const auto& part : text::Chat(text::ChatTemplate(source, "t"), core::OrderedJson::object())
                                .parts(messages, "x"))
      text += part.answer ? "[" + part.text + "]" : part.text;
    return text;
  };
  DOCTEST_CHECK(parts_of(turns) == "<user>hi.<assistant>[yo.]<user>and.<assistant>[so.]<user>bye.");
  // A template that writes earlier answers shorter than the last has no such parts.
  const std::string shortened =
      "{% for m in messages %}<{{ m.role }}>{% if loop.last or m.role == 'user' %}{{ m.content }}"
      "{% endif %}.{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}";
  DOCTEST_CHECK(thrown([&] { parts_of(shortened); }).code == 65);
}

DOCTEST_TEST_CASE("a message of text parts becomes one text; other parts are refused") {
  const text::Chat chat(
      text::ChatTemplate("{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}", "t"),
      core::OrderedJson::object());
  const auto messages = text::parse_messages(
      R"([{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
          {"role": "assistant", "content": [{"type": "text", "text": "c"}]},
          {"role": "user", "content": []}])",
      "x");
  DOCTEST_CHECK(chat.prompt(messages, "s", "x") == "<system>s<user>a\nb<assistant>c<user>");
  std::string whole;
  for (const auto& part : chat.parts(messages, "x")) whole += part.text;
  DOCTEST_CHECK(whole == "<user>a\nb<assistant>c<user>");
  for (const char* part : {R"({"type": "image_url", "image_url": {"url": "file:///etc/passwd"}})",
           R"({"type": "text"})", R"({"text": "a"})", "\"a\"", "1"}) {
    const auto refused =
        text::parse_messages(std::string(R"([{"role": "user", "content": [)") + part + "]}]", "x");
    const auto error = thrown([&] { chat.prompt(refused, "", "x"); });
    DOCTEST_CHECK(error.code == 65);
    DOCTEST_CHECK(error.text.starts_with("x: messages: content: takes a text, or a list of"));
  }
}
