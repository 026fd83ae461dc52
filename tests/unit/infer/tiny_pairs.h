#pragma once
// Pairs of short random sentences.

#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "core/io.h"
#include "core/rng.h"
#include "shard/dataset.h"
#include "shard/writer.h"

namespace tiny {

/// Pairs of random tokens that end with 0, in a temporary file. Tokens from the element `changed`
/// on, except ends, are other ones.
struct Pairs {
  std::vector<std::vector<std::int64_t>> sides;
  std::unique_ptr<shard::Dataset> data;
  explicit Pairs(std::size_t changed = SIZE_MAX) {
    core::Rng rng(5);
    shard::Header header;
    header.kind = shard::Kind::pairs;
    header.dtype = shard::dtype_for(23);
    header.vocabulary = 23;
    ::close(::mkstemp(path_.data()));
    core::Output out(path_);
    shard::Writer writer(out, header);
    std::size_t element = 0;
    for (int i = 0; i < 60; ++i) {
      std::vector<std::uint64_t> side(1 + rng.below(12));
      for (auto& token : side) {
        token = 1 + rng.below(22);
        if (element++ >= changed) token = 1 + token % 22;
      }
      side.back() = 0;
      sides.emplace_back(side.begin(), side.end());
      writer.write(std::span(side));
      writer.end_document(1, 1);
    }
    writer.finish();
    out.commit();
    data = std::make_unique<shard::Dataset>(std::vector<std::string>{path_});
  }
  ~Pairs() { ::unlink(path_.c_str()); }
  Pairs(const Pairs&) = delete;
  Pairs& operator=(const Pairs&) = delete;

 private:
  std::string path_ = "/tmp/tessera-pairs.XXXXXX";
};

}  // namespace tiny
