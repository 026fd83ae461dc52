// Parts of an evaluation: the data of their records, and their sum.

#include "infer/score/evaluation.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>

#include "unit/thrown.h"

namespace {

std::string file_of(const infer::PartRecord& record) {
  const auto path =
      (std::filesystem::temp_directory_path() /
          ("part." + std::to_string(::getpid()) + "." + std::to_string(record.part.index)))
          .string();
  core::write_file(path, infer::to_text(record));
  return path;
}

}  // namespace

DOCTEST_TEST_CASE("a part, a sum and ranks exclude each other") {
  infer::PartOptions options;
  options.check(false);
  options.part = "1/2";
  options.check(false);
  DOCTEST_CHECK(thrown([&] { options.check(true); }).code == 64);
  options.sum = true;
  const auto error = thrown([&] { options.check(false); });
  DOCTEST_CHECK(error.text == "--sum: cannot be combined with --part");
}

DOCTEST_TEST_CASE("the sum of parts adds nats in their order, and has the signature") {
  infer::PartRecord one{
      {0, 2}, {0, 4, 9}, "of a model", {.tokens = 3, .bytes = 30, .words = 9}, {1.5, 0.25}},
      two{{1, 2}, {4, 9, 9}, "of a model", {.tokens = 1, .bytes = 30, .words = 9}, {2}};
  const std::vector<std::string> paths = {file_of(two), file_of(one)};
  const auto sum = infer::sum_files(paths);
  DOCTEST_CHECK(sum.totals.nats == 3.75);
  DOCTEST_CHECK(sum.totals.tokens == 4);
  DOCTEST_CHECK(sum.figures()["tokens"] == 4);
  DOCTEST_CHECK(sum.figures()["signature"] == "of a model");
  DOCTEST_CHECK(thrown([&] { infer::sum_files({paths[0]}); }).names("part 1 of 2 is missing"));
  for (const auto& path : paths) std::filesystem::remove(path);
  const auto sum_of = [](const infer::PartRecord& a, const infer::PartRecord& b) {
    infer::sum_parts({{"a", infer::to_text(a)}, {"b", infer::to_text(b)}});
  };
  sum_of(one, two);
  // Builds are named, not compared. Records of builds that named none are read.
  auto other = two;
  other.revision = "1234567";
  auto nameless = core::parse_json(infer::to_text(one), "a");
  nameless.erase("revision"), nameless.erase("hash");
  const auto builds = infer::sum_parts(
      {{"a", core::dump(core::sealed(core::OrderedJson(nameless)))}, {"b", infer::to_text(other)}});
  DOCTEST_CHECK(builds.figures()["revision"] == "1234567,unknown");
  other = two;
  other.groups = {5, 9, 9};  // of larger batches
  DOCTEST_CHECK(thrown([&] { sum_of(one, other); }).names("has other boundaries"));
  other = one, other.groups = {0, 4, 10};
  DOCTEST_CHECK(thrown([&] { sum_of(other, two); }).code == 64);
  other = one, other.totals.bytes = -1e9;
  DOCTEST_CHECK(thrown([&] { sum_of(other, two); }).code == 64);
  one.totals.tokens = two.totals.tokens = 0;
  DOCTEST_CHECK(thrown([&] { sum_of(one, two); }).code == 65);
  auto line = infer::to_text(two);
  line[line.find("\"tokens\":") + 9] = '7';
  const auto damaged = thrown([&] { infer::parse_part(line, "part.2"); });
  DOCTEST_CHECK(damaged.code == 65);
  DOCTEST_CHECK(damaged.names("part.2: corrupt file"));
}
