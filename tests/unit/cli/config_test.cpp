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
  void fields(core::FieldList& f) {
    f.positional("FILE", files, "files");
    f("flag", flag, "a flag");
    f("layers", layers, "blocks");
    f("learning-rate", rate, "step size");
    f("name", name, "a name\nof two lines", {});
    f("stop", stops, "texts that end a sample");
    f("cutoffs", cutoffs, "bounds");
  }
};

Thrown read(const std::string& text, Options& options, std::set<std::string> given = {}) {
  return thrown([&] { cli::read_config(text, "f.conf", core::list_fields(options), given); });
}

}  // namespace

DOCTEST_TEST_CASE("what is printed reads back the same, whatever the texts are") {
  DOCTEST_CHECK(rc::check([] {
    Options options, back;
    const auto text = rc::gen::container<std::string>(
        rc::gen::oneOf(rc::gen::inRange<char>(1, 127), rc::gen::element('"', '#', '\\', ',', ' ')));
    options.flag = *rc::gen::arbitrary<bool>();
    options.layers = *rc::gen::arbitrary<std::int64_t>();
    options.rate = *rc::gen::inRange(-1000, 1000) / 7.0;
    options.name = *text;
    options.stops = *rc::gen::container<std::vector<std::string>>(text);
    options.cutoffs = *rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange(0, 1 << 30));
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
    RC_ASSERT(given.size() == 6u);
    RC_ASSERT(cli::format_config(core::list_fields(back)) ==
              cli::format_config(core::list_fields(options)));
  }));
}

DOCTEST_TEST_CASE("as people write it: bare words, sizes, comments, both dashes, JSON") {
  Options options;
  DOCTEST_CHECK(read("# comment\n\n  layers=1K   # many\r\nlearning_rate = 3e-4\n"
                     "name = two words # and a comment\nstop = [a b, c]\ncutoffs = 1K, 2K\n",
                     options)
                    .code == 0);
  DOCTEST_CHECK(options.layers == 1000);
  DOCTEST_CHECK(options.rate == 3e-4);
  DOCTEST_CHECK(options.name == "two words");
  DOCTEST_CHECK(options.stops == std::vector<std::string>{"a b", "c"});
  DOCTEST_CHECK(options.cutoffs == std::vector<std::int64_t>{1000, 2000});
  DOCTEST_CHECK(
      read("{\"learning_rate\": 0.5, \"flag\": true,\n \"cutoffs\": [7]}", options).code == 0);
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
  for (const char* bad :
       {"layers = 1\nlayer = 3", "\nlayers = three", "\nlayers", "\n= 3", "layers = 1\nlayers = 2",
        "\nFILE = x", "\n[section]", "\nflag = maybe"}) {
    DOCTEST_CAPTURE(bad);
    const auto error = read(bad, options);
    DOCTEST_CHECK(error.code == 78);
    DOCTEST_CHECK(error.names("f.conf:2: "));
  }
  DOCTEST_CHECK(read("layers = 1", options).code == 0);
  DOCTEST_CHECK(read("{\"layers\": ", options).code == 78);
  DOCTEST_CHECK(read("{\"nope\": 1}", options).names("nope"));
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
  const auto unknown = read(std::string(many, 'k') + " = 1", options);
  DOCTEST_CHECK(unknown.text == "f.conf:1: unknown key \"" + std::string(60, 'k') +
                                    "...\"; --print-config lists them");
  DOCTEST_CHECK(read(std::string(2, '\0'), options).text ==
                "f.conf:1: '\\x00\\x00' is not \"key = value\"");
}

DOCTEST_TEST_CASE("a byte order mark in front is passed over") {
  for (const char* text : {"\xEF\xBB\xBFlayers = 7", "\xEF\xBB\xBF{\"layers\": 7}"}) {
    Options options;
    DOCTEST_CHECK(read(text, options).code == 0);
    DOCTEST_CHECK(options.layers == 7);
  }
}
