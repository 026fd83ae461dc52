#include "cli/offer.h"

#include <unistd.h>

#include <cstdio>
#include <limits>

#include "core/error.h"

#include <doctest/doctest.h>

namespace {

struct OfferOptions {
  bool flag = true;
  std::int64_t size = 4096, memory = 2147483648, reach = -1;
  double rate = 0.1, most = std::numeric_limits<double>::infinity();
  std::string name = "it's \"1\"\n", kind = "one";
  std::vector<std::string> files, others;
  std::vector<std::int64_t> sizes = {1, 2};
  std::vector<double> rates = {0.5, -std::numeric_limits<double>::infinity()};
  void fields(core::FieldList& f) {
    f.positional("FILE", files, "files");
    f("others", others, "more files").several();
    f("flag", flag, "a flag");
    f("size", size, "a size").between(1, 1e6).short_name = 's';
    f("memory", memory, "bytes").bytes().or_auto();
    f("reach", reach, "a reach").none_or(1, 9).or_auto(-1);
    const auto group = f.group("Rates");
    f("rate", rate, "a rate").above(0).below(1);
    f("most", most, "the most");
    f("name", name, "a name").required = true;
    f("kind", kind, "a kind", {"one", "two"});
    f("sizes", sizes, "sizes");
    f("rates", rates, "rates");
  }
};

int whole_main(int argc, char** argv) {
  OfferOptions options;
  return cli::run(argc, argv, {"program", "For tests.", "  program FILE"}, options,
      [](const OfferOptions&, const cli::Context&) { return 3; });
}

int verbs_main(int argc, char** argv) {
  OfferOptions one, two;
  const auto body = [](const OfferOptions&, const cli::Context&) { return 4; };
  return cli::run(argc, argv, {"program", "For tests.", ""},
      {cli::command("one", "The first.", "  program one", one, body),
          cli::command("two", "The second.", "", two, body)});
}

struct Outcome {
  int code = 0;
  bool worked = false;
  std::string said;  // stdout and stderr
};

// Returns what `call` does with the words and what it writes.
template <class Call> Outcome of(std::vector<std::string> words, Call call) {
  words.insert(words.begin(), "program");
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  std::FILE* const file = std::tmpfile();
  const int out = ::dup(1), err = ::dup(2);
  std::fflush(nullptr);
  ::dup2(::fileno(file), 1), ::dup2(::fileno(file), 2);
  Outcome outcome;
  outcome.code = call(static_cast<int>(argv.size()), argv.data(), outcome.worked);
  std::fflush(nullptr);
  ::dup2(out, 1), ::dup2(err, 2);
  ::close(out), ::close(err);
  std::rewind(file);
  char buffer[4096];
  for (std::size_t n; (n = std::fread(buffer, 1, sizeof buffer, file)) > 0;)
    outcome.said.append(buffer, n);
  std::fclose(file);
  return outcome;
}

// Checks that the front prints what the program prints and passes on what the program would do.
void expect_same(int (*main)(int, char**), const std::vector<std::string>& words) {
  DOCTEST_CAPTURE(words);
  const std::string offer = cli::offer_of(main);
  const auto program = of(words, [&](int argc, char** argv, bool& worked) {
    const int code = main(argc, argv);
    worked = code == 3 || code == 4;
    return code;
  });
  const auto front = of(words, [&](int argc, char** argv, bool& worked) {
    return cli::front(argc, argv, offer, [&] {
      worked = true;
      return main(argc, argv);
    });
  });
  DOCTEST_CHECK(front.code == program.code);
  DOCTEST_CHECK(front.worked == program.worked);
  DOCTEST_CHECK(front.said == program.said);
}

}  // namespace

DOCTEST_TEST_CASE("a front says what its program says, and hands over the rest") {
  const std::vector<std::vector<std::string>> lines = {
      {"--help"},
      {"--version"},
      {"--print-flags"},
      {"--name", "x", "--print-config"},
      {"--print-config", "--name", "x", "--others", "a", "b,c", "--others", "d", "--no-flag"},
      {"--print-config", "--rates", "0.25,-inf", "--memory", "auto", "--no-flag", "-s", "7"},
      {"a", "b", "--name", "x"},
      {"a"},
      {"--print-config", "--name", "x", "--reach", "none"},
      {"--name", "x", "--reach", "0"},
      {"--name", "x", "--size", "0"},
      {"--name", "x", "--rate", "1"},
      {"--name", "x", "--kind", "three"},
      {"--nmae", "x"},
      {"--name", "x", "--config", "/nowhere/at/all"},
      {},
  };
  for (const auto& words : lines) {
    expect_same(whole_main, words);
    std::vector<std::string> verb = words;
    verb.insert(verb.begin(), "two");
    expect_same(verbs_main, verb);
  }
  for (const char* word : {"--help", "--version", "--print-flags", "three", "--size"})
    expect_same(verbs_main, {word});
}

DOCTEST_TEST_CASE("an offer is one line of what run() was given, and nothing runs for it") {
  const std::string offer = cli::offer_of(whole_main);
  DOCTEST_CHECK(offer.find('\n') == offer.npos);
  DOCTEST_CHECK(offer == cli::offer_of(whole_main));
}
