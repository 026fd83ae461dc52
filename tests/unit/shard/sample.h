#pragma once
// Makes small shards in memory for the tests.

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "core/io.h"
#include "core/rng.h"
#include "shard/file.h"
#include "shard/reader.h"
#include "shard/writer.h"
#include "unit/thrown.h"

namespace sample {

/// Holds the contents of a shard of integers.
struct Data {
  shard::Header header;
  std::vector<std::uint64_t> elements;
  std::vector<std::uint64_t> lengths;  // of documents; the elements after the last belong to none
};

inline shard::Header ids(std::uint64_t vocabulary, shard::Kind kind = shard::Kind::tokens) {
  shard::Header header;
  header.kind = kind;
  header.dtype = shard::dtype_for(vocabulary);
  header.vocabulary = vocabulary;
  return header;
}

inline shard::Header order(shard::Dtype dtype, std::uint64_t units) {
  shard::Header header;
  header.kind = shard::Kind::order;
  header.dtype = dtype;
  header.vocabulary = units;
  header.unit = "segment";
  header.unit_length = 512;
  header.data_fingerprint = core::hash128(std::string_view("data")).hex();
  return header;
}

inline shard::Header vectors(std::uint32_t width) {
  shard::Header header;
  header.kind = shard::Kind::vectors;
  header.dtype = shard::Dtype::f32;
  header.width = width;
  return header;
}

inline std::vector<core::OrderedJson> made_by(const char* program) {
  return {shard::provenance_entry(program, {{"min_count", 3}}, {})};
}

inline std::vector<std::uint64_t> numbers(std::size_t n, std::uint64_t below, int seed = 1) {
  core::Rng rng(static_cast<std::uint64_t>(seed));
  std::vector<std::uint64_t> out(n);
  for (auto& x : out) x = rng.below(below);
  return out;
}

/// Returns the bytes of a shard; each call writes `piece` elements.
inline core::Bytes write(const Data& data, int jobs = 1, std::size_t piece = 1000) {
  core::MemorySink sink;
  shard::Writer writer(sink, data.header, made_by("tokenize"), jobs);
  std::size_t at = 0;
  const auto put = [&](std::size_t end) {
    while (at < end) {
      const std::size_t n = std::min(piece, end - at);
      writer.write(std::span(data.elements).subspan(at, n));
      at += n;
    }
  };
  for (const auto length : data.lengths) {
    put(at + length);
    writer.end_document(length * 4, length / 2);
  }
  put(data.elements.size());
  writer.finish();
  return std::move(sink.bytes);
}

inline core::Bytes write_vectors(
    std::uint32_t width, const std::vector<float>& values, int jobs = 1) {
  core::MemorySink sink;
  shard::Writer writer(sink, vectors(width), made_by("gen-moons"), jobs);
  writer.write(std::span(values));
  writer.finish();
  return std::move(sink.bytes);
}

/// Reads all elements through the streaming reader, `piece` at a time.
template <class T>
std::vector<T> stream(std::span<const std::byte> bytes, std::size_t piece = 777) {
  core::MemorySource source(bytes, "x.shard.zst");
  shard::Reader reader(source);
  std::vector<T> all, buffer(piece);
  while (const std::size_t n = reader.read(std::span(buffer)))
    all.insert(all.end(), buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(n));
  return all;
}

inline shard::File open(std::span<const std::byte> bytes) {
  return shard::File(std::make_shared<core::RandomMemory>(bytes, "x.shard.zst"));
}

/// Reads all elements through random access.
template <class T> std::vector<T> random(std::span<const std::byte> bytes) {
  const shard::File file = open(bytes);
  std::vector<T> all(file.size());
  file.read(0, std::span(all));
  return all;
}

/// Returns a small shard of each kind.
inline std::vector<std::pair<std::string, core::Bytes>> of_each_kind() {
  shard::Header with_tokenizer = ids(300);
  with_tokenizer.tokenizer = R"({"model":{"type":"BPE","vocab":{"a":0}},"version":"1.0"})";
  return {
      {"tokens", write({with_tokenizer, numbers(200, 300), {50, 0, 100}})},
      {"bytes", write({ids(256), numbers(100, 256), {}})},
      {"empty", write({ids(100'000), {}, {}})},
      {"order", write({order(shard::Dtype::u32, 64), numbers(64, 64), {}})},
      {"order-u64", write({order(shard::Dtype::u64, 0), numbers(20, 1ull << 60), {}})},
      {"vectors", write_vectors(2, {1.5f, -2.0f, 0.0f, 1e-30f, 3.0f, 4.0f})},
      {"pairs", write({ids(1000, shard::Kind::pairs), numbers(60, 1000), {10, 20, 0, 30}})},
  };
}

/// Returns a shard of each kind, and a marked one.
inline std::vector<std::pair<std::string, core::Bytes>> of_every_form() {
  auto all = of_each_kind();
  core::MemorySink sink;
  shard::Header header = ids(300);
  header.marked = true;
  shard::Writer writer(sink, header, made_by("tokenize"));
  writer.write(std::span<const std::uint64_t>(numbers(50, 300)));
  writer.end_document(200, 20, "a name", {{0, 3}, {7, 50}});
  writer.write(std::span<const std::uint64_t>(numbers(20, 300)));
  writer.end_document(80, 8);
  writer.finish();
  all.emplace_back("marked", std::move(sink.bytes));
  return all;
}

inline bool has(const std::string& text, std::string_view part) {
  return text.find(part) != text.npos;
}

}  // namespace sample
