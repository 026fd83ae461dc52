// Several shards are one data set.

#include <rapidcheck.h>
#include <unistd.h>

#include "sample.h"
#include "shard/dataset.h"
#include "unit/temporary_folder.h"

#include <doctest/doctest.h>

namespace {

// A temporary folder.
struct DataFolder : TemporaryFolder {
  std::string add(const core::Bytes& bytes) {
    const std::string name = path / std::to_string(n++);
    core::Output out(name);
    out.write(bytes);
    out.commit();
    return name;
  }
  int n = 0;
};

}  // namespace

DOCTEST_TEST_CASE("parts read, count and print as the whole") {
  DOCTEST_CHECK(rc::check([] {
    DataFolder folder;
    const auto header = sample::ids(60'000);
    sample::Data whole{header, {}, {}};
    std::vector<std::string> paths;
    const int parts = *rc::gen::inRange(1, 4);
    for (int p = 0; p < parts; ++p) {
      auto lengths = *rc::gen::container<std::vector<std::uint64_t>>(
          rc::gen::inRange<std::uint64_t>(0, 30'000));
      std::uint64_t n = 0;
      for (const auto length : lengths) n += length;
      const sample::Data part{header, sample::numbers(n, 60'000, p + 1), lengths};
      paths.push_back(folder.add(sample::write(part)));
      whole.elements.insert(whole.elements.end(), part.elements.begin(), part.elements.end());
      whole.lengths.insert(whole.lengths.end(), lengths.begin(), lengths.end());
    }
    const auto merged = sample::write(whole);
    const auto file = sample::open(merged);
    const shard::Dataset data(paths);
    RC_ASSERT(data.size() == file.size());
    RC_ASSERT(data.fingerprint() == file.trailer().fingerprint);
    RC_ASSERT(data.documents() == file.trailer().documents);
    RC_ASSERT(data.provenance() == file.trailer().provenance);
    const auto a = *rc::gen::inRange<std::size_t>(0, data.size() + 1);
    const auto n = *rc::gen::inRange<std::size_t>(0, data.size() - a + 1);
    std::vector<std::uint64_t> out(n);
    data.read(a, std::span(out));
    RC_ASSERT(std::equal(out.begin(), out.end(), whole.elements.begin() + std::ptrdiff_t(a)));
  }));
}

DOCTEST_TEST_CASE("shards that do not belong together are named, with both fingerprints") {
  DataFolder folder;
  auto header = sample::ids(300);
  const auto a = sample::write({header, {1}, {}});
  header.tokenizer = R"({"version":"1.0"})";
  const auto b = sample::write({header, {1}, {}});
  const auto path_a = folder.add(a), path_b = folder.add(b);
  const auto error = thrown([&] { shard::Dataset data({path_a, path_b}); });
  DOCTEST_CHECK(error.code == 65);
  for (const auto& part : {path_a, path_b, sample::open(a).trailer().fingerprint.hex(),
           sample::open(b).trailer().fingerprint.hex(), std::string("tokenizers")})
    DOCTEST_CHECK(sample::has(error.text, part));
}

DOCTEST_TEST_CASE("stdin may be named once; a missing file is no input") {
  DOCTEST_CHECK(thrown([] { shard::Dataset data({"-", "-"}); }).code == 64);
  DOCTEST_CHECK(thrown([] { shard::Dataset data({"/nowhere/x.shard.zst"}); }).code == 66);
}
