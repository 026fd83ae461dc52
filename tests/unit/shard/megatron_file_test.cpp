#include "shard/megatron_file.h"

#include <rapidcheck.h>

#include <numeric>

#include "sample.h"
#include "unit/temporary_folder.h"

#include <doctest/doctest.h>

namespace {

using Ids = std::vector<std::uint64_t>;

template <class T> void append(std::string& out, T number) {
  out.append(reinterpret_cast<const char*>(&number), sizeof number);
}

// An index in the format's description, field by field.
struct Index {
  std::uint64_t version = 1;
  std::uint8_t type = 8;
  std::vector<std::int32_t> lengths;
  std::vector<std::int64_t> begins, starts = {0};
  std::string behind;

  std::string bytes() const {
    std::string out("MMIDIDX\0\0", 9);
    append(out, version);
    append(out, type);
    append(out, std::uint64_t(lengths.size()));
    append(out, std::uint64_t(starts.size()));
    for (const auto n : lengths) append(out, n);
    for (const auto n : begins) append(out, n);
    for (const auto n : starts) append(out, n);
    return out + behind;
  }
};

// Returns the ids of each document that an index lists.
Ids documents(const std::string& bytes) {
  const core::RandomMemory memory(std::as_bytes(std::span(bytes)), "x.idx");
  shard::MegatronIndex index(memory);
  Ids all;
  while (const auto n = index.next_document()) all.push_back(*n);
  DOCTEST_CHECK(all.size() == index.documents());
  DOCTEST_CHECK(std::accumulate(all.begin(), all.end(), std::uint64_t{0}) == index.elements());
  return all;
}

Thrown refused(const Index& index) {
  return thrown([&] { documents(index.bytes()); });
}

// Two documents: sequences of 2 and 3 ids, and of 1.
Index three() {
  Index index;
  index.lengths = {2, 3, 1};
  index.begins = {0, 4, 10};
  index.starts = {0, 2, 3};
  return index;
}

}  // namespace

DOCTEST_TEST_CASE("an index says how long its documents are, and of which type ids are") {
  DOCTEST_CHECK(documents(three().bytes()) == Ids{5, 1});
  Index empty = three();
  empty.starts = {0, 0, 2, 2, 3, 3};
  DOCTEST_CHECK(documents(empty.bytes()) == Ids{0, 5, 0, 1, 0});
  DOCTEST_CHECK(documents(Index().bytes()) == Ids{});
  const std::size_t bytes[] = {0, 1, 1, 2, 4, 8, 0, 0, 2};
  for (const std::uint8_t type : {1, 2, 3, 4, 5, 8}) {
    Index index = three();
    index.type = type;
    for (auto& begin : index.begins) begin = begin / 2 * std::int64_t(bytes[type]);
    const std::string file = index.bytes();
    const core::RandomMemory memory(std::as_bytes(std::span(file)), "x.idx");
    const shard::MegatronIndex read(memory);
    DOCTEST_CHECK(read.type().bytes == bytes[type]);
    DOCTEST_CHECK(read.type().is_signed == (type >= 2 && type <= 5));
    DOCTEST_CHECK(read.hash() == core::hash128(std::string_view(file)));
  }
}

DOCTEST_TEST_CASE("many documents are read through small pieces of the index") {
  Index index;
  std::int64_t at = 0;
  Ids lengths = sample::numbers(50'000, 100), all;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    index.lengths.push_back(std::int32_t(lengths[i]));
    index.begins.push_back(at);
    at += 2 * std::int64_t(lengths[i]);
    if (i % 3 == 0) index.starts.push_back(std::int64_t(i) + 1);
    if (i % 3 == 0) all.push_back(0);
    if (i % 3 != 0 || i == 0) continue;
    all.back() = lengths[i - 2] + lengths[i - 1] + lengths[i];
  }
  all.front() = lengths[0];
  all.push_back(lengths[49'999]);
  index.starts.push_back(50'000);
  DOCTEST_CHECK(documents(index.bytes()) == all);
}

DOCTEST_TEST_CASE("what an index gets wrong is named") {
  const std::string good = three().bytes();
  for (std::size_t n = 0; n < good.size(); ++n)
    DOCTEST_CHECK(thrown([&] { documents(good.substr(0, n)); }).code == 65);
  const auto with = [](auto change) {
    Index index = three();
    change(index);
    return refused(index);
  };
  DOCTEST_CHECK(with([](Index& i) { i.version = 2; }).names("x.idx: version 2"));
  DOCTEST_CHECK(with([](Index& i) { i.type = 0; }).names("type 0"));
  DOCTEST_CHECK(with([](Index& i) { i.type = 9; }).names("type 9"));
  DOCTEST_CHECK(with([](Index& i) { i.type = 6; }).names("float64"));
  DOCTEST_CHECK(with([](Index& i) { i.type = 7; }).names("float32"));
  DOCTEST_CHECK(with([](Index& i) {
    i.lengths[1] = -3;
  }).names("the length of sequence 1 is -3; allowed: 0 and more"));
  DOCTEST_CHECK(with([](Index& i) { i.begins[1] = 2; }).names("begins at byte 2, not at 4"));
  DOCTEST_CHECK(with([](Index& i) { i.begins[0] = -2; }).names("begins at byte -2"));
  DOCTEST_CHECK(with([](Index& i) { i.starts[0] = 1; }).names("begins at sequence 1"));
  DOCTEST_CHECK(with([](Index& i) { i.starts[1] = -1; }).names("ends at sequence -1"));
  DOCTEST_CHECK(with([](Index& i) { i.starts[1] = 4; }).names("ends at sequence 4"));
  DOCTEST_CHECK(with([](Index& i) { i.starts[2] = 1; }).names("document 1 ends at sequence 1"));
  DOCTEST_CHECK(
      with([](Index& i) { i.starts.pop_back(); }).names("sequences 2 to 2 have no document"));
  DOCTEST_CHECK(with([](Index& i) { i.starts.clear(); }).names("lists no documents"));
  DOCTEST_CHECK(with([](Index& i) { i.behind = "abc"; }).names("multimodal"));
  DOCTEST_CHECK(with([](Index& i) { i.behind = "ab"; }).names("2 bytes after"));
  // A claimed terabyte is not allocated.
  std::string announced = good;
  announced[25] = '\x7f';
  DOCTEST_CHECK(thrown([&] { documents(announced); }).names("cut short"));
}

DOCTEST_TEST_CASE("what is written is read again, long documents as several sequences") {
  const TemporaryFolder folder;
  DOCTEST_CHECK(rc::check([&] {
    const auto vocabulary = *rc::gen::element<std::uint64_t>(200, 50'257, 128'256);
    const auto lengths = *rc::gen::container<Ids>(rc::gen::inRange<std::uint64_t>(0, 9));
    const auto n = std::accumulate(lengths.begin(), lengths.end(), std::size_t{0});
    const auto numbers = sample::numbers(n, vocabulary);
    const auto bytes = sample::write({sample::ids(vocabulary), numbers, lengths});
    const std::string path = folder / "x.shard.zst";
    core::write_file(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    const shard::Dataset data({path});
    core::MemorySink ids, index;
    const auto most = *rc::gen::inRange<std::uint64_t>(1, 10);
    shard::write_megatron(
        data, ids, index, [](std::uint64_t) {}, most);
    Ids ends;
    std::uint64_t end = 0, sequences = 0;
    for (const auto length : documents(std::string(index.text()))) ends.push_back(end += length);
    RC_ASSERT(ends == data.documents().end);
    const core::RandomMemory memory(index.bytes, "x.idx");
    const shard::MegatronIndex read(memory);
    for (std::size_t i = 0; i < ends.size(); ++i)
      sequences += (ends[i] - (i > 0 ? ends[i - 1] : 0) + most - 1) / most;
    RC_ASSERT(read.sequences() == sequences);
    core::MemorySource source(ids.bytes);
    shard::ArrayReader reader(source, read.type(), read.elements());
    Ids back(n + 1);
    RC_ASSERT(reader.read(std::span(back)) == n);
    back.pop_back();
    RC_ASSERT(back == numbers);
  }));
}

DOCTEST_TEST_CASE("a pair holds ids below 2^31 and nothing else") {
  const TemporaryFolder folder;
  const auto code = [&](const core::Bytes& bytes) {
    const std::string path = folder / "x.shard.zst";
    core::write_file(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    const auto error = thrown([&] {
      shard::write_megatron(
          shard::Dataset({path}), shard::megatron_files(folder / "out.bin"), [](std::uint64_t) {});
    });
    DOCTEST_CHECK(core::exists(folder / "out.bin") == (error.code == 0));
    DOCTEST_CHECK(core::exists(folder / "out.idx") == (error.code == 0));
    return error.code;
  };
  DOCTEST_CHECK(code(sample::write_vectors(2, {1, 2})) == 64);
  DOCTEST_CHECK(code(sample::write({sample::order(shard::Dtype::u32, 9), {1}, {}})) == 64);
  DOCTEST_CHECK(code(sample::write({sample::ids((1ull << 31) + 1), {1}, {}})) == 64);
  DOCTEST_CHECK(code(sample::write({sample::ids(1ull << 31), {(1ull << 31) - 1}, {}})) == 0);
}
