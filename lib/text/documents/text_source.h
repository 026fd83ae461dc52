#pragma once
// The bytes of a file of text, unpacked and held to be UTF-8.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/hash.h"
#include "core/io.h"
#include "shard/unpacked_source.h"

namespace text {

/// What becomes of bytes that are not UTF-8: an error, U+FFFD, or nothing: they stay as they are,
/// and with `keep` a byte order mark and files that are no text do too.
enum class Invalid { error, replace, pass, keep };

struct TextRules {
  Invalid invalid = Invalid::keep;
  bool drop_cr = false;  ///< CRLF becomes LF
  std::uint64_t unpack_memory = shard::kUnpackMemory;
};

/// What was seen in files of text.
struct TextSights {
  struct Sight {
    std::string file;  ///< the first one
    std::uint64_t count = 0, files = 0;
    void add(const std::string& name, std::uint64_t n);
  };
  Sight crlf, nul, replaced;  ///< lines that end in CRLF, NUL bytes, U+FFFD that were written
  Sight json;                 ///< files that begin as JSON does and are read as text
  Sight no_row;               ///< rows of a table without a text, which were left out
  Sight no_text;  ///< files that begin otherwise than texts do, whose bytes are read as they are
  std::string what_is_no_text;  ///< what the first of them is
  /// What was seen in one more file.
  void add(const std::string& name, const TextSights& file);
  /// What a user should know, a line each.
  std::vector<std::string> notes(const TextRules& rules) const;
};

/// Reads one file front to back, without its byte order mark. Not thread safe.
class TextSource {
 public:
  /// Sees the file's first block (without its mark); true: the bytes are JSON, which its parser
  /// holds to be UTF-8, and white space in it means nothing.
  using Start = std::function<bool(std::string_view)>;
  /// `name` stands in messages; empty: the path.
  TextSource(const std::string& path, const TextRules& rules, Start start,
             const std::string& name = {});

  /// Appends about `n` bytes to text[0, size) (text is longer, by padding): whole characters,
  /// unless bytes stay as they are. True at the end. Throws Error{bad_data} naming file and byte.
  bool append(std::string& text, std::size_t& size, std::size_t n);

  const std::string& name() const { return source_.name(); }
  /// Read of the file itself.
  std::uint64_t bytes() const { return source_.file_bytes(); }
  /// Of what the file holds, unpacked and otherwise as it is.
  core::Digest digest() const { return hasher_.digest(); }
  const TextSights& sights() const { return sights_; }

 private:
  void begin(std::string& text, std::size_t from, std::size_t& size);
  void check(std::string& text, std::size_t from, std::size_t& size);
  void count_lines(std::string_view text);
  void drop_cr(std::string& text, std::size_t from, std::size_t& size);

  shard::UnpackedSource source_;
  TextRules rules_;
  Start start_;
  core::Hasher hasher_;
  std::string held_;         // read, and to be completed by what follows
  std::uint64_t place_ = 0;  // in the file, of the next byte that append() gives
  bool begun_ = false, json_ = false;
  bool after_cr_ = false;  // the last byte given is one
  TextSights sights_;
};

}  // namespace text
