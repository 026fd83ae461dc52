#include "cli/run.h"

#include <unistd.h>

#include <cstdio>
#include <new>
#include <stdexcept>

#include "cli/progress.h"
#include "core/error.h"

#include <doctest/doctest.h>

namespace {

struct RunOptions {
  bool flag = true;
  std::int64_t size = 4;
  std::vector<std::string> names;
  std::vector<std::int64_t> sizes;
  std::vector<std::string> files;
  void fields(core::FieldList& f) {
    f.positional("FILE", files, "files");
    f("flag", flag, "a flag");
    f("size", size, "a size").short_name = 's';
    f("name", names, "names");
    f("sizes", sizes, "sizes");
  }
};

struct Run {
  int code = 0;
  bool ran = false;
  RunOptions options;
  cli::Context context;
};

template <class F> Run run(std::vector<std::string> words, F body) {
  Run outcome;
  words.insert(words.begin(), "program");
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  outcome.code = cli::run(static_cast<int>(argv.size()), argv.data(), {"program", "For tests.", ""},
      outcome.options, [&](const RunOptions&, const cli::Context& context) {
        outcome.ran = true;
        outcome.context = context;
        return body();
      });
  return outcome;
}
Run run(const std::vector<std::string>& words) {
  return run(words, [] { return 0; });
}

// Returns the message of a program whose body throws an error with this text.
std::string complaint(const std::string& text) {
  std::FILE* const file = std::tmpfile();
  std::fflush(nullptr);
  const int err = ::dup(2);
  ::dup2(::fileno(file), 2);
  run({}, [&]() -> int { throw std::runtime_error(text); });
  std::fflush(nullptr);
  ::dup2(err, 2);
  ::close(err);
  std::rewind(file);
  char line[1000] = "";
  static_cast<void>(std::fgets(line, sizeof line, file));
  std::fclose(file);
  return line;
}

}  // namespace

DOCTEST_TEST_CASE("flags, values and arguments reach the options") {
  const auto outcome = run({"a", "--no-flag", "-s", "2K", "--name", "x,y", "--name=z", "--sizes",
      "1,2K", "b", "-", "--seed", "7", "-j", "3"});
  DOCTEST_CHECK(outcome.code == 0);
  DOCTEST_CHECK(outcome.ran);
  DOCTEST_CHECK(!outcome.options.flag);
  DOCTEST_CHECK(outcome.options.size == 2000);
  DOCTEST_CHECK(outcome.options.names == std::vector<std::string>{"x,y", "z"});
  DOCTEST_CHECK(outcome.options.sizes == std::vector<std::int64_t>{1, 2000});
  DOCTEST_CHECK(outcome.options.files == std::vector<std::string>{"a", "b", "-"});
  DOCTEST_CHECK(outcome.context.seed == 7);
  DOCTEST_CHECK(outcome.context.jobs == 3);
  DOCTEST_CHECK(outcome.context.given.contains("size"));
  DOCTEST_CHECK(outcome.context.given.contains("seed"));
  DOCTEST_CHECK(!run({}).context.given.contains("size"));
  DOCTEST_CHECK(run({}).context.jobs >= 1);
  DOCTEST_CHECK(run({"--size", "1", "--size", "2"}).options.size == 2);
  DOCTEST_CHECK(run({"-j", "1", "-o", "a", "-j", "2", "-o", "b"}).context.jobs == 2);
  DOCTEST_CHECK(run({"-o", "a", "-o", "b"}).context.output == "b");
  DOCTEST_CHECK(run({"--size", "-5"}).options.size == -5);
}

DOCTEST_TEST_CASE("wrong flags and values are usage") {
  for (const auto& words : std::vector<std::vector<std::string>>{
           {"--nope"}, {"--size"}, {"--size", "x"}, {"-j", "-1"}, {"--sizes", "1,x"}, {"-j", "x"}})
    DOCTEST_CHECK(run(words).code == 64);
}

DOCTEST_TEST_CASE("whatever leaves a body becomes an exit code") {
  DOCTEST_CHECK(run({}, [] { return 1; }).code == 1);
  DOCTEST_CHECK(run({}, []() -> int { core::fail(core::Code::stopped, "later"); }).code == 75);
  DOCTEST_CHECK(run({}, []() -> int { throw std::bad_alloc(); }).code == 71);
  DOCTEST_CHECK(run({}, []() -> int { throw std::logic_error("two\nlines"); }).code == 70);
}

DOCTEST_TEST_CASE("a fault of a GPU says how to find what it is of") {
  DOCTEST_CHECK(complaint("two\nlines") == "program: internal error: two\n");
  DOCTEST_CHECK(
      complaint("CUDA error: an illegal memory access was encountered\nSearch for it.") ==
      "program: internal error: CUDA error: an illegal memory access was encountered; "
      "GPU errors are reported late: rerun with CUDA_LAUNCH_BLOCKING=1 to see which call failed\n");
}

DOCTEST_TEST_CASE("reports: a line of JSON, or keys and values") {
  cli::Context context;
  const core::OrderedJson report = {{"loss", 3.25}, {"file", "x"}, {"none", nullptr}};
  DOCTEST_CHECK(cli::format_report(context, report) == "loss  3.25\nfile  x\nnone  -\n");
  context.json = true;
  DOCTEST_CHECK(
      cli::format_report(context, report) == "{\"loss\":3.25,\"file\":\"x\",\"none\":null}\n");
}

DOCTEST_TEST_CASE("tables: numbers to the right, text to the left, JSON lines") {
  cli::Context context;
  const std::vector<core::OrderedJson> rows = {
      {{"name", "a"}, {"value", 1}}, {{"name", "longer"}, {"value", 100}}};
  DOCTEST_CHECK(
      cli::format_table(context, rows) == "name    value\na           1\nlonger    100\n");
  DOCTEST_CHECK(cli::format_table(context, {}).empty());
  context.json = true;
  DOCTEST_CHECK(cli::format_table(context, rows) ==
                "{\"name\":\"a\",\"value\":1}\n{\"name\":\"longer\",\"value\":100}\n");
}
