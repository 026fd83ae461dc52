#pragma once
// Prompts out of a file: one a line, or one a JSON line.

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/io.h"
#include "core/options.h"

namespace infer {

/// Reads prompts as they arrive, so that lines typed at a terminal are answered one by one. Not
/// thread safe.
class PromptReader {
 public:
  /// `format`: lines (every line is a prompt, an empty one too; its newline is not part of it),
  /// jsonl (the member `field` of each line; empty lines are passed over), auto (jsonl if the path
  /// ends in .jsonl). Throws Error{no_input}.
  PromptReader(const std::string& path, const std::string& format, std::string field);
  /// Given texts, not a file.
  explicit PromptReader(std::vector<std::string> prompts);

  /// At most `most` prompts: those that have arrived, at least one; none at the end. Throws
  /// Error{bad_data} naming the line that is no JSON object with the field, or longer than 64 MiB.
  std::vector<std::string> next(std::size_t most);

 private:
  bool read();
  bool take(std::vector<std::string>& out);

  std::unique_ptr<core::ByteSource> source_;
  bool jsonl_ = false;
  std::string field_;
  std::string buffer_;
  std::size_t begin_ = 0;  // of what is not taken yet
  std::uint64_t line_ = 0;
  bool ended_ = false;
  std::vector<std::string> given_;
};

/// Where prompts come from, as options say it.
struct PromptOptions {
  std::string file, prompt;
  std::string format = "auto", field = "prompt";
  void fields(core::FieldList& f);

  /// The text of --prompt if it is among the `given`, else the file (none is stdin). Throws
  /// Error{usage} for both.
  PromptReader open(const std::set<std::string>& given) const;
};

}  // namespace infer
