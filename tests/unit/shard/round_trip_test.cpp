// What is written is read back, with any division, threads or way of reading.

#include <rapidcheck.h>

#include <sstream>
#include <thread>

#include "sample.h"
#include "shard/copy.h"
#include "shard/dataset.h"
#include "unit/temporary_folder.h"

#include <doctest/doctest.h>

namespace {

sample::Data arbitrary_data() {
  const auto vocabulary =
      *rc::gen::element<std::uint64_t>(1, 2, 256, 257, 65'536, 65'537, 1u << 31);
  const auto lengths =
      *rc::gen::container<std::vector<std::uint64_t>>(rc::gen::inRange<std::uint64_t>(0, 40'000));
  std::uint64_t n = *rc::gen::inRange<std::uint64_t>(0, 1000);
  for (const auto length : lengths) n += length;
  return {
      sample::ids(vocabulary), sample::numbers(n, vocabulary, *rc::gen::inRange(1, 1000)), lengths};
}

void holds(bool result) { DOCTEST_CHECK(result); }

}  // namespace

DOCTEST_TEST_CASE("elements, documents, header and provenance come back") {
  holds(rc::check([] {
    const auto data = arbitrary_data();
    const auto bytes = sample::write(data, 1, *rc::gen::inRange<std::size_t>(1, 5000));
    RC_ASSERT(sample::stream<std::uint64_t>(bytes) == data.elements);
    RC_ASSERT(sample::random<std::uint64_t>(bytes) == data.elements);

    core::MemorySource source(bytes);
    const auto trailer = shard::verify(source);
    const auto file = sample::open(bytes);
    RC_ASSERT(file.header() == data.header);
    RC_ASSERT(file.trailer().documents == trailer.documents);
    RC_ASSERT(trailer.elements == data.elements.size());
    RC_ASSERT(trailer.provenance == sample::made_by("tokenize"));
    std::uint64_t end = 0;
    for (std::size_t i = 0; i < data.lengths.size(); ++i) {
      end += data.lengths[i];
      RC_ASSERT(trailer.documents.end[i] == end);
      RC_ASSERT(trailer.documents.bytes[i] == data.lengths[i] * 4);
      RC_ASSERT(trailer.documents.words[i] == data.lengths[i] / 2);
    }
    // A remainder without end_document() is a document.
    RC_ASSERT(trailer.documents.size() == data.lengths.size() + (end < data.elements.size()));
  }));
}

DOCTEST_TEST_CASE("marks come back, of several shards and of any stretch of them") {
  holds(rc::check([] {
    const auto lengths =
        *rc::gen::container<std::vector<std::uint64_t>>(rc::gen::inRange<std::uint64_t>(0, 40));
    const TemporaryFolder folder;
    auto header = sample::ids(256);
    header.marked = true;
    std::vector<bool> learned;
    std::vector<std::string> paths;
    for (int part = 0; part < 2; ++part) {
      paths.push_back(folder / std::to_string(part));
      core::Output out(paths.back());
      shard::Writer writer(out, header);
      for (const auto length : lengths) {
        std::vector<shard::Span> marks;
        const auto begin = learned.size();
        for (std::uint64_t i = 0; i < length; ++i) {
          learned.push_back(*rc::gen::arbitrary<bool>());
          if (!learned.back()) continue;
          if (i > 0 && learned[begin + i - 1]) ++marks.back().end;
          else marks.push_back({i, i + 1});
        }
        writer.write(std::span<const std::uint32_t>(std::vector<std::uint32_t>(length, 7)));
        writer.end_document(0, 0, {}, marks);
      }
      writer.finish();
      out.commit();
    }
    const shard::Dataset data(paths);
    const auto all = [&](const shard::Documents& documents, std::uint64_t begin,
                         std::uint64_t end) {
      std::vector<bool> found(end - begin);
      for (const auto& mark : shard::marks_within(documents, begin, end))
        for (auto i = mark.begin; i < mark.end; ++i) found[i] = true;
      return found;
    };
    RC_ASSERT(all(data.documents(), 0, data.size()) == learned);
    const auto begin = *rc::gen::inRange<std::uint64_t>(0, learned.size() + 1);
    const auto end = *rc::gen::inRange<std::uint64_t>(begin, learned.size() + 1);
    RC_ASSERT(all(data.documents(), begin, end) ==
              std::vector<bool>(
                  learned.begin() + std::ptrdiff_t(begin), learned.begin() + std::ptrdiff_t(end)));
    core::MemorySink merged;
    shard::merge(data, merged, 1, nullptr);
    core::MemorySource source(merged.bytes);
    const auto trailer = shard::verify(source);
    RC_ASSERT(all(trailer.documents, 0, learned.size()) == learned);
    RC_ASSERT(trailer.fingerprint == data.fingerprint());
  }));
}

DOCTEST_TEST_CASE("other marks are other data; a shard without them has no place for any") {
  const auto write = [](bool marked, const std::vector<shard::Span>& marks) {
    auto header = sample::ids(256);
    header.marked = marked;
    core::MemorySink sink;
    shard::Writer writer(sink, header);
    writer.write(std::span<const std::uint32_t>(std::vector<std::uint32_t>(9, 7)));
    writer.end_document(0, 0, {}, marks);
    writer.finish();
    core::MemorySource source(sink.bytes);
    return shard::verify(source).fingerprint;
  };
  const auto none = write(true, {});
  DOCTEST_CHECK(none != write(false, {}));
  DOCTEST_CHECK(none != write(true, {{2, 5}}));
  DOCTEST_CHECK(write(true, {{2, 5}}) != write(true, {{2, 6}}));
  DOCTEST_CHECK(thrown([&] { write(false, {{2, 5}}); }).code == 70);
  for (const auto& marks : {std::vector<shard::Span>{{2, 10}}, {{3, 3}}, {{4, 6}, {5, 7}}})
    DOCTEST_CHECK(thrown([&] { write(true, marks); }).code == 70);
}

DOCTEST_TEST_CASE("the bytes do not depend on threads or on how calls are cut") {
  holds(rc::check([] {
    const auto data = arbitrary_data();
    const auto bytes = sample::write(data, 1, 100'000);
    RC_ASSERT(sample::write(data, 8, *rc::gen::inRange<std::size_t>(1, 5000)) == bytes);
  }));
}

DOCTEST_TEST_CASE("any range read at random is what the stream says") {
  const sample::Data data{sample::ids(50'257), sample::numbers(500'000, 50'257), {499'999}};
  const auto bytes = sample::write(data);
  const auto file = sample::open(bytes);
  holds(rc::check([&] {
    const auto a = *rc::gen::inRange<std::size_t>(0, data.elements.size() + 1);
    const auto n = *rc::gen::inRange<std::size_t>(0, data.elements.size() - a + 1);
    std::vector<std::uint32_t> out(n);
    file.read(a, std::span(out));
    RC_ASSERT(std::equal(out.begin(), out.end(), data.elements.begin() + std::ptrdiff_t(a)));
  }));
}

DOCTEST_TEST_CASE("a tiny cache and many threads read the same") {
  const sample::Data data{sample::ids(50'257), sample::numbers(1'000'000, 50'257), {}};
  const auto bytes = sample::write(data, 4);
  const shard::File file(std::make_shared<core::RandomMemory>(bytes), 1);
  std::vector<int> wrong(4, 0);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      core::Rng rng(7, static_cast<std::uint64_t>(t));
      std::vector<std::uint32_t> out(600);
      for (int i = 0; i < 100; ++i) {
        const auto a = rng.below(data.elements.size() - out.size());
        file.read(a, std::span(out));
        wrong[t] += !std::equal(out.begin(), out.end(), data.elements.begin() + std::ptrdiff_t(a));
      }
    });
  for (auto& thread : threads) thread.join();
  DOCTEST_CHECK(wrong == std::vector<int>(4, 0));
}

DOCTEST_TEST_CASE("vectors, orders and pairs come back") {
  const std::vector<float> values = {1.5f, -0.0f, 1e38f, 1e-42f, 7.0f, 8.0f};
  const auto bytes = sample::write_vectors(3, values);
  DOCTEST_CHECK(sample::stream<float>(bytes) == values);
  DOCTEST_CHECK(sample::random<float>(bytes) == values);
  DOCTEST_CHECK(sample::open(bytes).header() == sample::vectors(3));

  const auto numbers = sample::numbers(5000, 1ull << 62);
  const auto order = sample::write({sample::order(shard::Dtype::u64, 0), numbers, {}});
  DOCTEST_CHECK(sample::stream<std::uint64_t>(order) == numbers);
  DOCTEST_CHECK(sample::open(order).header() == sample::order(shard::Dtype::u64, 0));
}

DOCTEST_TEST_CASE("an element of the wrong type or out of the vocabulary is refused") {
  core::MemorySink sink;
  shard::Writer writer(sink, sample::ids(300));
  const std::vector<std::uint32_t> good = {299}, bad = {1, 300};
  writer.write(std::span(good));
  const auto out_of_vocabulary = thrown([&] { writer.write(std::span(bad)); });
  DOCTEST_CHECK(out_of_vocabulary.code == 65);
  DOCTEST_CHECK(sample::has(out_of_vocabulary.text, "300"));
  DOCTEST_CHECK(thrown([&] { writer.write(std::vector<float>{1.0f}); }).code == 70);

  const auto bytes = sample::write_vectors(1, {1.0f});
  DOCTEST_CHECK(thrown([&] { sample::stream<std::uint32_t>(bytes); }).code == 65);
  const auto order = sample::write({sample::order(shard::Dtype::u64, 0), {1, 2}, {}});
  DOCTEST_CHECK(thrown([&] { sample::stream<std::uint32_t>(order); }).code == 65);
  DOCTEST_CHECK(thrown([&] {
    const auto file = sample::open(order);
    std::vector<std::uint64_t> out(2);
    file.read(1, std::span(out));
  }).code == 65);
}

DOCTEST_TEST_CASE("headers that contradict themselves are refused") {
  core::MemorySink sink;
  const auto refused = [&](shard::Header header) {
    return thrown([&] { shard::Writer writer(sink, header); }).code == 65;
  };
  auto header = sample::ids(300);
  header.dtype = shard::Dtype::u8;
  DOCTEST_CHECK(refused(header));
  header = sample::ids(300);
  header.unit = "segment";
  DOCTEST_CHECK(refused(header));
  header = sample::order(shard::Dtype::u32, 5);
  header.unit_length = 0;
  DOCTEST_CHECK(refused(header));
  header = sample::vectors(0);
  DOCTEST_CHECK(refused(header));
  DOCTEST_CHECK(sink.bytes.empty());
  shard::Writer pairs(sink, sample::ids(10, shard::Kind::pairs));
  pairs.end_document();
  DOCTEST_CHECK(thrown([&] { pairs.finish(); }).code == 65);
}

DOCTEST_TEST_CASE("a sink that fails is heard, with and without threads") {
  struct Full : core::ByteSink {
    std::size_t room = 300'000;
    void write(std::span<const std::byte> in) override {
      if (in.size() > room) core::fail(core::Code::io, "disk full");
      room -= in.size();
    }
  };
  for (const int jobs : {1, 4}) {
    Full sink;
    const auto error = thrown([&] {
      shard::Writer writer(sink, sample::ids(50'257), {}, jobs);
      const auto numbers = sample::numbers(2'000'000, 50'257);
      writer.write(std::span(numbers));
      writer.finish();
    });
    DOCTEST_CHECK(error.code == 74);
  }
}

DOCTEST_TEST_CASE("names of documents come back, and are no part of the fingerprint") {
  const auto write = [](const std::vector<std::string>& names) {
    core::MemorySink sink;
    shard::Writer writer(sink, sample::ids(30'000), sample::made_by("tokenize"));
    for (std::uint64_t i = 0; i < names.size(); ++i) {
      writer.write(std::span<const std::uint64_t>(&i, 1));
      writer.end_document(1, 1, names[i]);
    }
    writer.finish();
    return std::move(sink.bytes);
  };
  const std::vector<std::string> some = {"", "a/b.txt", "", "\xC3\xA4", ""};
  const auto bytes = write(some);
  core::MemorySource source(bytes);
  const auto trailer = shard::verify(source);
  DOCTEST_CHECK(trailer.documents.names == some);
  DOCTEST_CHECK(sample::open(bytes).trailer().documents.names == some);
  DOCTEST_CHECK(trailer.documents.name(1) == "a/b.txt");
  const auto nameless = write({"", "", "", "", ""});
  DOCTEST_CHECK(sample::open(nameless).trailer().documents.names.empty());
  DOCTEST_CHECK(sample::open(nameless).trailer().fingerprint == trailer.fingerprint);
  for (const auto& name : {std::string("a\nb"), std::string("a\0b", 3), std::string(5000, 'a')})
    DOCTEST_CHECK(thrown([&] { write({name}); }).names("a document's name"));
  std::vector<std::string> many(20'000);
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = "notes/" + std::to_string(i / 3) + ".md";
  DOCTEST_CHECK(sample::open(write(many)).trailer().documents.names == many);

  // Merged with shards without names, and split again.
  const TemporaryFolder folder;
  const auto file = [&](const std::string& name, const core::Bytes& content) {
    core::write_file(
        folder / name, {reinterpret_cast<const char*>(content.data()), content.size()});
    return folder / name;
  };
  const shard::Dataset both({file("a", nameless), file("b", bytes), file("c", nameless)});
  core::MemorySink merged;
  shard::merge(both, merged, 1, {});
  std::vector<std::string> expected(15);
  std::copy(some.begin(), some.end(), expected.begin() + 5);
  DOCTEST_CHECK(both.documents().names == expected);
  DOCTEST_CHECK(sample::open(merged.bytes).trailer().documents.names == expected);
}
