#pragma once
// Reads and writes the per-token file of eval-ppl, which has one line per scored token, for people,
// plots and compare-ppl.
//
//   # eval-ppl 0.1.0 (git 1a2b3c4) data:...|model:...|...   (program, revision, signature)
//   position document token text head joint SOURCE... nats   (tab-separated, with a header line;
//   the writer names the sources: memory cache unigram stores ngrams with)
//
// position is the token's element offset in the data. text is the token's text, with \t, \n, \r and
// \\ for these characters, and \xHH for bytes that are not printable ASCII or UTF-8. The other
// columns are -log p in nats by each source and by their mixture: inf if p is 0, "-" if a source is
// unused or has no entries yet.

#include "core/io.h"

namespace task {

/// A TokenScore is one line.
struct TokenScore {
  std::uint64_t position = 0, document = 0;
  std::uint32_t token = 0;
  std::string text;  ///< escaped
  double head = 0, joint = 0;
  std::vector<double> sources = {};  ///< NaN: "-"
  double nats = 0;
};

/// Escapes bytes for the column "text"; the result has no tab and no newline.
std::string escape_text(std::string_view bytes);

/// A TokenScoreWriter writes the header line and the lines.
class TokenScoreWriter {
 public:
  /// Writes `origin`, unless empty, behind "# ", and the header line. The sink must outlive the
  /// writer. `sources` are the names of TokenScore::sources.
  explicit TokenScoreWriter(core::ByteSink& sink, const std::vector<std::string>& sources = {},
      const std::string& origin = {});
  void write(const TokenScore& score);

 private:
  core::ByteSink& sink_;
  std::string line_;
};

/// A TokenScoreReader reads lines one at a time and finds columns by name; it needs only position,
/// document, token and nats. Throws Error{bad_data}, naming file and line.
class TokenScoreReader {
 public:
  /// Reads the header line and skips lines before it that begin with #. The source must outlive the
  /// reader.
  explicit TokenScoreReader(core::ByteSource& source);
  /// Reads the next line into position, document, token and nats; returns false at the end.
  bool next(TokenScore& score);
  std::uint64_t line() const { return line_number_; }
  const std::string& name() const { return source_.name(); }

 private:
  bool read_line();
  void read_heading();
  template <class T> T number(std::size_t column, const char* name) const;

  core::ByteSource& source_;
  std::string buffer_;
  std::size_t at_ = 0;
  std::string_view line_;
  std::uint64_t line_number_ = 0;
  std::size_t position_ = 0, document_ = 0, token_ = 0, nats_ = 0;  // columns
};

}  // namespace task
