// Splitting by documents and merging restores the data.

#include "shard/copy.h"

#include <rapidcheck.h>

#include "sample.h"
#include "unit/temporary_folder.h"

#include <doctest/doctest.h>

namespace {

class CopyFolder : public TemporaryFolder {
 public:
  std::string add(const core::Bytes& bytes) {
    const std::string name = path / std::to_string(n_++);
    core::write_file(name, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    return name;
  }
  std::string prefix() const { return path / "part-"; }

 private:
  int n_ = 0;
};

core::Bytes part_of(const shard::Dataset& data, std::size_t first, std::size_t last) {
  core::MemorySink sink;
  shard::Writer writer(sink, data.header(), data.provenance());
  shard::copy_documents(data, first, last, writer);
  writer.finish();
  return std::move(sink.bytes);
}

// Documents whose lengths may be 0; an even number for pairs.
sample::Data arbitrary_data(bool pairs) {
  auto lengths = *rc::gen::nonEmpty(
      rc::gen::container<std::vector<std::uint64_t>>(rc::gen::inRange<std::uint64_t>(0, 50)));
  if (pairs && lengths.size() % 2 != 0) lengths.push_back(7);
  std::uint64_t n = 0;
  for (const auto length : lengths) n += length;
  const auto kind = pairs ? shard::Kind::pairs : shard::Kind::tokens;
  return {sample::ids(300, kind), sample::numbers(n, 300), lengths};
}

}  // namespace

DOCTEST_TEST_CASE("however data are cut, the parts merge into what they were") {
  DOCTEST_CHECK(rc::check([] {
    CopyFolder folder;
    const bool pairs = *rc::gen::arbitrary<bool>();
    const shard::Dataset data({folder.add(sample::write(arbitrary_data(pairs)))});
    const std::size_t per_unit = pairs ? 2 : 1, units = data.documents().size() / per_unit;
    shard::Cut cut;
    const auto way = *rc::gen::inRange(0, 3);
    if (way == 0) cut.parts = *rc::gen::inRange<std::uint64_t>(1, units + 1);
    if (way == 1) cut.documents = *rc::gen::inRange<std::uint64_t>(1, units + 3);
    if (way == 2) cut.bytes = *rc::gen::inRange<std::uint64_t>(1, 400);
    const auto ends = shard::part_ends(data.header(), data.documents(), cut);

    std::vector<std::string> paths;
    std::size_t first = 0;
    for (const auto end : ends) {
      const auto n = end - first;
      RC_ASSERT(n > 0 && n % per_unit == 0);
      const std::uint64_t begin = first == 0 ? 0 : data.documents().end[first - 1];
      const std::uint64_t bytes = (data.documents().end[end - 1] - begin) * 2;
      if (way == 1) RC_ASSERT(n == cut.documents * per_unit || end == data.documents().size());
      if (way == 2) RC_ASSERT(bytes <= cut.bytes || n == per_unit);
      paths.push_back(folder.add(part_of(data, first, end)));
      first = end;
    }
    RC_ASSERT(first == data.documents().size());
    if (way == 0) RC_ASSERT(ends.size() == cut.parts);

    const shard::Dataset back(paths);
    RC_ASSERT(back.fingerprint() == data.fingerprint());

    // All data: the files in order, and one shard of them.
    std::vector<std::string> files;
    shard::split(data, cut, folder.prefix(), 2, [&](const shard::Part& part) {
      const shard::Dataset written({part.path});
      RC_ASSERT(part.path == fmt::format("{}{:05}.shard.zst", folder.prefix(), files.size()));
      RC_ASSERT(part.elements == written.size());
      RC_ASSERT(part.documents == written.documents().size());
      RC_ASSERT(written.fingerprint() == shard::Dataset({paths[files.size()]}).fingerprint());
      files.push_back(part.path);
    });
    RC_ASSERT(files.size() == ends.size());
    core::MemorySink sink;
    shard::merge(shard::Dataset(files), sink, 2);
    const shard::Dataset merged({folder.add(sink.bytes)});
    RC_ASSERT(merged.fingerprint() == data.fingerprint());
    RC_ASSERT(merged.documents() == data.documents());
    RC_ASSERT(merged.provenance().back()["program"] == "shard merge");
  }));
}

DOCTEST_TEST_CASE("the verdict on a file, whole, damaged or not there") {
  CopyFolder folder;
  const auto good = folder.add(sample::write({sample::ids(300), sample::numbers(50, 300), {50}}));
  const auto whole = shard::judge(good);
  DOCTEST_CHECK(whole.ok());
  DOCTEST_CHECK(whole.json()["elements"] == 50);
  DOCTEST_CHECK(whole.line().starts_with(good + ": ok, 50 elements, fingerprint "));
  const auto text = core::read_text(good);
  const auto bad = folder.add({});
  core::write_file(bad, text.substr(0, text.size() - 1));
  const auto cut = shard::judge(bad);
  DOCTEST_CHECK(!cut.ok());
  DOCTEST_CHECK(cut.json()["ok"] == false);
  DOCTEST_CHECK(cut.json()["error"] == cut.error);
  DOCTEST_CHECK(cut.line().starts_with(bad));
  DOCTEST_CHECK(thrown([] { shard::judge("/no/such/shard"); }).code == 66);

  std::vector<std::string> found;
  const auto tell = [&](const shard::Verdict& verdict) { found.push_back(verdict.path); };
  const std::vector<std::string> all = {good, bad, good, bad};
  DOCTEST_CHECK(shard::judge(all, tell) == cut.error + " (and 1 more)");
  DOCTEST_CHECK(found == all);
  DOCTEST_CHECK(shard::judge({bad}, tell) == cut.error);
  DOCTEST_CHECK(shard::judge({good}, tell).empty());
}
