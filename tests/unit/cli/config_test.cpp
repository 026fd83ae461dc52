#include "cli/config.h"

#include <rapidcheck.h>

#include "unit/thrown.h"

#include <doctest/doctest.h>

namespace {

struct Options {
  bool flag = false;
  std::int64_t layers = 4;
  double rate = 0.1;
  std::string name = "x";
  std::vector<std::string> stops;
  std::vector<std::int64_t> cutoffs;
  std::vector<std::string> files;
  std::int64_t steps = 0;
  std::vector<std::int64_t> windows;
  void fields(core::FieldList& f) {
    f.positional("FILE", files, "files");
    f("flag", flag, "a flag");
    {
      const auto in_memory = f.group("Memory of layers++");
      f("layers", layers, "blocks");
      f("learning-rate", rate, "step size");
      {
        const auto in_texts = f.group("Texts");
        f("name", name, "a name\nof two lines", {});
        f("stop", stops, "texts that end a sample");
      }
      f("cutoffs", cutoffs, "bounds");
    }
    f("steps", steps, "updates").auto_or(1, 100);
    f("windows", windows, "tokens").none_or(1, 100).or_auto(-1);
  }
};

Thrown read(const std::string& text, Options& options, std::set<std::string> given = {}) {
  return thrown([&] { cli::read_config(text, "f.conf", core::list_fields(options), given); });
}

}  // namespace

DOCTEST_TEST_CASE("what is printed reads back the same, whatever the texts are") {
  DOCTEST_CHECK(rc::check([] {
    Options options, back;
    const auto text = rc::gen::container<std::string>(rc::gen::oneOf(
        rc::gen::cast<char>(rc::gen::inRange(1, 128)), rc::gen::element('"', '#', '\\', ',', ' ')));
    options.flag = *rc::gen::arbitrary<bool>();
    options.layers = *rc::gen::arbitrary<std::int64_t>();
    options.rate = *rc::gen::inRange(-1000, 1000) / 7.0;
    options.name = *text;
    options.stops = *rc::gen::container<std::vector<std::string>>(text);
    options.cutoffs = *rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange(0, 1 << 30));
    options.steps = *rc::gen::inRange(0, 3);
    options.windows = *rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange(-1, 3));
    options.files = {"not", "kept"};
    const std::string printed = cli::format_config(core::list_fields(options));
    std::set<std::string> given;
    cli::read_config(printed, "f.conf", core::list_fields(back), given);
    RC_ASSERT(back.flag == options.flag);
    RC_ASSERT(back.layers == options.layers);
    RC_ASSERT(back.rate == options.rate);
    RC_ASSERT(back.name == options.name);
    RC_ASSERT(back.stops == options.stops);
    RC_ASSERT(back.cutoffs == options.cutoffs);
    RC_ASSERT(back.files.empty());
    RC_ASSERT(back.steps == options.steps);
    RC_ASSERT(back.windows == options.windows);
    RC_ASSERT(given.size() == 8u);
    RC_ASSERT(cli::format_config(core::list_fields(back)) ==
              cli::format_config(core::list_fields(options)));
  }));
}

DOCTEST_TEST_CASE("fields are printed in the tables of their groups, those without one first") {
  Options options;
  options.name = "a \"b\" \x7f";
  options.cutoffs = {2000, 10000};
  options.windows = {64, 0, -1};
  DOCTEST_CHECK(cli::format_config(core::list_fields(options)) ==
                R"(# a flag
flag = false

# updates (1 to 100, or auto)
steps = "auto"

# tokens (1 to 100, none or auto)
windows = [64, "none", "auto"]

[memory-of-layers]
# blocks
layers = 4

# step size
learning-rate = 0.1

# bounds
cutoffs = [2000, 10000]

[texts]
# a name of two lines
name = "a \"b\" \u007F"

# texts that end a sample
stop = []
)");
}

DOCTEST_TEST_CASE("what was not given is a comment: the file sets what was set") {
  Options options;
  options.layers = 9;
  const std::set<std::string> set = {"layers", "flag"};
  const std::string printed = cli::format_config(core::list_fields(options), &set);
  DOCTEST_CHECK(
      printed.starts_with("# a flag\nflag = false\n\n# updates (1 to 100, or auto)\n#steps ="));
  std::set<std::string> given;
  Options back;
  cli::read_config(printed, "f.conf", core::list_fields(back), given);
  DOCTEST_CHECK(given == set);
  DOCTEST_CHECK(back.layers == 9);
}

DOCTEST_TEST_CASE("as people write it: TOML with or without tables, sizes, both dashes, JSON") {
  Options options;
  DOCTEST_CHECK(read("# comment\n\n  layers=\"1K\"   # many\r\nlearning_rate = 3e-4\n"
                     "name = 'C:\\two # words' # and a comment\nstop = [\n  \"a b\", # first\n"
                     "  '''c''',\n]\ncutoffs = [\"1K\", 2_000, 0x10]\n",
                    options)
                    .code == 0);
  DOCTEST_CHECK(options.layers == 1000);
  DOCTEST_CHECK(options.rate == 3e-4);
  DOCTEST_CHECK(options.name == "C:\\two # words");
  DOCTEST_CHECK(options.stops == std::vector<std::string>{"a b", "c"});
  DOCTEST_CHECK(options.cutoffs == std::vector<std::int64_t>{1000, 2000, 16});
  DOCTEST_CHECK(read("steps = 3\nmemory_of_layers.layers = 7\n[texts]\n\"name\" = \"\\u00e9\"\n"
                     "stop = \"one\"\n",
                    options)
                    .code == 0);
  DOCTEST_CHECK(options.steps == 3);
  DOCTEST_CHECK(options.layers == 7);
  DOCTEST_CHECK(options.name == "\xC3\xA9");
  DOCTEST_CHECK(options.stops == std::vector<std::string>{"one"});
  DOCTEST_CHECK(
      read("texts = {name = \"inline\"}\nsteps = \"auto\"\nlayers = 1e3", options).code == 0);
  DOCTEST_CHECK(options.name == "inline");
  DOCTEST_CHECK(options.steps == 0);
  DOCTEST_CHECK(options.layers == 1000);
  DOCTEST_CHECK(
      read("\n{\"learning_rate\": 0.5, \"flag\": true,\n \"cutoffs\": [7]}", options).code == 0);
  DOCTEST_CHECK(options.rate == 0.5);
  DOCTEST_CHECK(options.flag);
  DOCTEST_CHECK(options.cutoffs == std::vector<std::int64_t>{7});
}

DOCTEST_TEST_CASE("a flag wins over the file") {
  Options options;
  options.layers = 12;
  DOCTEST_CHECK(read("layers = 3\nlearning-rate = 1", options, {"layers"}).code == 0);
  DOCTEST_CHECK(options.layers == 12);
  DOCTEST_CHECK(options.rate == 1);
}

DOCTEST_TEST_CASE("faults are named with their line") {
  Options options;
  for (const char* bad : {"layers = 1\nlayer = 3", "\nlayers = \"three\"", "\nlayers", "\n= 3",
           "layers = 1\nlayers = 2", "\nFILE = \"x\"", "\n[section]", "\nflag = \"maybe\"",
           "\nname = two words", "\nlayers = 64K", "\nlayers = 1.5", "\nlayers = [1, 2]",
           "\ncutoffs = [[1], [2]]", "\nname = 1979-05-27", "\nname = {a = 1}", "\nname.a = 1",
           "[texts]\nname.a = 1", "\n[[texts]]\nname = \"a\"",
           "learning-rate = 1\nlearning_rate = 1", "layers = 1\nmemory-of-layers.layers = 1",
           "\nsteps = 101", "\nname = \"\xFF\""}) {
    DOCTEST_CAPTURE(bad);
    const auto error = read(bad, options);
    DOCTEST_CHECK(error.code == 78);
    DOCTEST_CHECK(error.names("f.conf:2: "));
  }
  DOCTEST_CHECK(read("layers = 1", options).code == 0);
  DOCTEST_CHECK(read("{\"layers\": ", options).code == 78);
  DOCTEST_CHECK(read("{\"nope\": 1}", options).names("nope"));
  DOCTEST_CHECK(read("{\"name\": {\"a\": 1}}", options).code == 78);
  DOCTEST_CHECK(read("{\"name\": null}", options).code == 78);
}

DOCTEST_TEST_CASE("the first fault of the file is named, and what to do") {
  Options options;
  const auto says = [&](const char* text, const char* message) {
    DOCTEST_CHECK(read(text, options).text == message);
  };
  says("[texts]\nname = \"a\"\nlayers = 1\n[memory-of-layers]\nfoo = 1",
      "f.conf:3: \"layers\" is not in [texts]; move it to [memory-of-layers] or above all tables");
  says("[texts]\nflag = true", "f.conf:2: \"flag\" is not in [texts]; move it above all tables");
  says("zzz = 1\n[aaa]\nb = 1", "f.conf:1: unknown key \"zzz\"; --print-config lists them");
  says("z-z = 1", "f.conf:1: unknown key \"z-z\"; --print-config lists them");
  says("[text]\nname = \"a\"",
      "f.conf:1: unknown table [text]; did you mean [texts]?; --print-config lists them");
  says("name.a = \"a\"",
      "f.conf:1: \"name\" takes a quoted text, a number, true or false, or a list of these");
  says("\nname = two words",
      "f.conf:2: not TOML: boolean: expected 'true', saw 'tw'; write key = value, texts and "
      "numbers such as 64K in quotes");
}

DOCTEST_TEST_CASE("a hostile file is refused in a short line, however deep or long it is") {
  Options options;
  const std::size_t many = 200'000;
  for (const char* key : {"cutoffs", "stop", "layers"}) {
    const std::string deep = std::string(many, '[') + std::string(many, ']');
    DOCTEST_CHECK(read(key + (" = " + deep), options).code == 78);
    DOCTEST_CHECK(read(key + (" = [1, {\"a\": " + deep + "}]"), options).code == 78);
    DOCTEST_CHECK(read("{\"" + (key + ("\": " + deep + "}")), options).code == 78);
  }
  for (const std::size_t parts : {std::size_t{9'000}, many}) {
    std::string dotted = "a", inner = "x";
    for (std::size_t i = 0; i < parts; ++i) dotted += ".a";
    for (std::size_t i = 0; i < parts / 100; ++i) inner += "={y.z.w.v";
    for (const auto& text :
        {dotted + " = 1", "[" + dotted + "]", "[" + dotted + "]\nx = ]", inner}) {
      const auto error = read(text, options);
      DOCTEST_CHECK(error.code == 78);
      DOCTEST_CHECK(error.text.size() < 400);
    }
  }
  const auto unknown = read(std::string(many, 'k') + " = 1", options);
  DOCTEST_CHECK(unknown.text == "f.conf:1: unknown key \"" + std::string(60, 'k') +
                                    "...\"; --print-config lists them");
  DOCTEST_CHECK(read(std::string(2, '\0'), options).code == 78);
}

DOCTEST_TEST_CASE("a byte order mark in front is passed over") {
  for (const char* text : {"\xEF\xBB\xBFlayers = 7", "\xEF\xBB\xBF{\"layers\": 7}"}) {
    Options options;
    DOCTEST_CHECK(read(text, options).code == 0);
    DOCTEST_CHECK(options.layers == 7);
  }
}
