#pragma once
// Small data sets and models for the tests of this folder.

#include <string>
#include <vector>

#include "core/io.h"
#include "shard/dataset.h"
#include "shard/writer.h"
#include "unit/temporary_folder.h"

namespace data {

/// In a marked shard, elements whose number is below 2 modulo 5 are to be learned.
inline bool is_marked(std::uint64_t element) { return element % 5 < 2; }

inline std::vector<shard::Span> marks_of(std::uint64_t begin, std::uint64_t end) {
  std::vector<shard::Span> marks;
  for (std::uint64_t i = begin; i < end; ++i)
    if (is_marked(i)) marks.push_back({i - begin, i - begin + 1});
  return marks;
}

inline void write_shard(const std::string& path, const shard::Header& header,
    const std::vector<std::uint64_t>& elements, const std::vector<std::uint64_t>& lengths = {}) {
  core::Output out(path);
  shard::Writer writer(out, header);
  std::size_t at = 0;
  for (const auto length : lengths) {
    writer.write(std::span(elements).subspan(at, length));
    writer.end_document(
        length, 1, {}, header.marked ? marks_of(at, at + length) : std::vector<shard::Span>());
    at += length;
  }
  writer.write(std::span(elements).subspan(at));
  writer.finish();
  out.commit();
}

inline shard::Header tokens_header(std::uint64_t vocabulary) {
  shard::Header header;
  header.dtype = shard::dtype_for(vocabulary);
  header.vocabulary = vocabulary;
  return header;
}

/// Token i is i modulo `vocabulary`; documents of the given lengths.
inline void write_counting(const std::string& path, std::uint64_t n,
    std::uint64_t vocabulary = 1000, const std::vector<std::uint64_t>& lengths = {}) {
  std::vector<std::uint64_t> tokens(n);
  for (std::uint64_t i = 0; i < n; ++i) tokens[i] = i % vocabulary;
  write_shard(path, tokens_header(vocabulary), tokens, lengths);
}

inline void write_order(const std::string& path, const std::vector<std::uint64_t>& order,
    std::uint64_t units, std::uint64_t segment, const std::string& fingerprint) {
  shard::Header header;
  header.kind = shard::Kind::order;
  header.dtype = shard::Dtype::u32;
  header.vocabulary = units;
  header.unit = "segment";
  header.unit_length = segment;
  header.data_fingerprint = fingerprint;
  write_shard(path, header, order);
}

}  // namespace data
