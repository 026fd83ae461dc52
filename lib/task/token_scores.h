#pragma once
// The per-token file of eval-ppl: one line a scored token, for people, plots and compare-ppl.
//
//   position document token text head joint SOURCE... nats   (tab-separated, with a heading;
//   sources
//   as who writes it names them: memory cache stores ngrams with)
//
// position: the token's element offset in the data; text: what it prints, with \t, \n, \r, \\ and
// \xHH for bytes that are no printable ASCII or UTF-8; the others are -log p in nats by each source
// and by the mixture of them: inf where p is 0, "-" where a source is not used or sees nothing.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/io.h"

namespace task {

struct TokenScore {
  std::uint64_t position = 0, document = 0;
  std::uint32_t token = 0;
  std::string text;  ///< escaped
  double head = 0, joint = 0;
  std::vector<double> sources = {};  ///< NaN: "-"
  double nats = 0;
};

/// Bytes as they stand in the column "text": never a tab or a newline.
std::string escape_text(std::string_view bytes);

/// Writes heading and lines.
class TokenScoreWriter {
 public:
  /// The sink must outlive it. `sources`: names of TokenScore::sources.
  explicit TokenScoreWriter(core::ByteSink& sink, const std::vector<std::string>& sources = {});
  void write(const TokenScore& score);

 private:
  core::ByteSink& sink_;
  std::string line_;
};

/// Reads lines one by one. Columns are found by their names; only position, document, token and
/// nats are needed. Throws Error{bad_data} naming file and line.
class TokenScoreReader {
 public:
  /// The source must outlive it.
  explicit TokenScoreReader(core::ByteSource& source);
  /// False at the end. Fills position, document, token and nats.
  bool next(TokenScore& score);
  std::uint64_t line() const { return line_number_; }
  const std::string& name() const { return source_.name(); }

 private:
  bool read_line();
  void read_heading();
  template <class T>
  T number(std::size_t column, const char* name) const;

  core::ByteSource& source_;
  std::string buffer_;
  std::size_t at_ = 0;
  std::string_view line_;
  std::uint64_t line_number_ = 0;
  std::size_t position_ = 0, document_ = 0, token_ = 0, nats_ = 0;  // columns
};

}  // namespace task
