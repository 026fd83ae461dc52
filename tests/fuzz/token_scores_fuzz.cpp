// A --per-token file of any bytes gives scores or an Error{bad_data}. Writing and reading it again
// preserves it.

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/io.h"
#include "fuzz/target.h"
#include "task/token_scores.h"

namespace {

std::vector<task::TokenScore> read_scores(std::string_view text) {
  core::MemorySource source(text);
  task::TokenScoreReader reader(source);
  std::vector<task::TokenScore> all;
  task::TokenScore score;
  while (reader.next(score)) all.push_back(score);
  return all;
}

}  // namespace

FUZZ_TARGET(token_scores)(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::string escaped = task::escape_text(text);
  if (escaped.find_first_of("\t\n\r") != escaped.npos) std::abort();
  std::vector<task::TokenScore> scores;
  try {
    scores = read_scores(text);
  } catch (const core::Error& error) {
    if (error.code() != core::Code::bad_data) std::abort();
    return;
  }
  core::MemorySink sink;
  task::TokenScoreWriter writer(sink);
  for (auto& score : scores) {
    score.text = task::escape_text(score.text);
    writer.write(score);
  }
  const auto again = read_scores(sink.text());
  if (again.size() != scores.size()) std::abort();
  for (std::size_t i = 0; i < again.size(); ++i) {
    const auto &a = scores[i], &b = again[i];
    const bool same = a.position == b.position && a.document == b.document && a.token == b.token;
    if (!same || !(std::abs(a.nats - b.nats) <= 1e-11 * std::abs(a.nats))) std::abort();
  }
}
