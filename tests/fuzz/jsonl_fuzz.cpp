// Documents of any bytes (text with a separator, lines, JSON lines) give texts or an
// Error{bad_data}. Encoding in pieces gives the ids of the whole.

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/plain_text.h"
#include "fuzz/target.h"
#include "text/documents/documents.h"
#include "text/formats/tokenizer_json.h"
#include "text/tokenizer/gpt2_split.h"
#include "text/tokenizer/split.h"
#include "text/tokenizer/tokenizer.h"

namespace {

std::string folder_file() {
  const char* folder = std::getenv("TMPDIR");
  return std::string(folder ? folder : "/tmp") + "/jsonl_fuzz." + std::to_string(::getpid());
}

// Returns all documents, each followed by a terminating byte.
std::string read_texts(
    const std::string& path, text::DocumentOptions options, bool may_fail = true) {
  std::string all;
  try {
    const auto reader = text::read_documents({path}, options, text::gpt2_cut);
    text::PartTexts texts("text", options.bad_lines);
    text::Batch batch;
    while (reader->next(batch)) {
      texts.each(batch, [&](const text::Batch::Part& part, std::string_view text) {
        all += text;
        if (part.closes) all += options.separator;
      });
    }
  } catch (const core::Error& error) {
    if (!may_fail || error.code() != core::Code::bad_data) std::abort();
  }
  return all;
}

// Whether the reader takes it for compressed data, zstd's skippable frames included.
bool is_packed(std::string_view all) {
  const bool skippable = all.size() > 3 && (all[0] & 0xF0) == 0x50;
  return (skippable && all.substr(1, 3) == "\x2A\x4D\x18") || !core::what_is_no_text(all).empty();
}

// Checks that bad lines are left out or repaired, and invalid UTF-8 replaced, without an error.
void mend_all(const std::string& path, const std::string& all) {
  text::DocumentOptions mending;
  mending.rules.invalid = text::Invalid::replace;
  const std::string_view marked = core::without_byte_order_mark(all);
  if (is_packed(all) || is_packed(marked)) return;
  std::uint64_t replaced = 0;
  if (read_texts(path, mending) != core::with_replacements(marked, replaced)) std::abort();
  mending.format = text::Format::jsonl;
  for (const auto bad : {text::BadLines::skip, text::BadLines::replace}) {
    mending.bad_lines = bad;
    const std::string made = read_texts(path, mending, false);
    if (core::utf8_length(made) != made.size()) std::abort();
  }
}

}  // namespace

FUZZ_TARGET(jsonl)(const std::uint8_t* data, std::size_t size) {
  static const std::string path = folder_file();
  static const auto tokenizer = text::load_tokenizer("bytes");
  const std::string all(reinterpret_cast<const char*>(data), size);
  {
    std::ofstream out(path, std::ios::binary);
    out << all;
  }
  read_texts(path, {text::Format::jsonl, "text", ""});
  mend_all(path, all);
  // The documents joined with their separators are the text itself, unless it is compressed.
  std::string joined = read_texts(path, {text::Format::text, "text", "ab"});
  const bool ends = all.empty() || all.ends_with("ab");
  if (!is_packed(all) && joined != (ends ? all : all + "ab")) std::abort();
  ::unlink(path.c_str());

  // Pre-tokens cover the text, and a cut does not change them.
  const char* const begin = all.data();
  const char* const end = begin + all.size();
  std::vector<const char*> whole, parts;
  for (const char* p = begin; p < end; whole.push_back(p)) p = text::gpt2_pretoken_end(p, end);
  const char* cut = text::gpt2_cut(begin, end);
  if (cut != nullptr) {
    for (const char* p = begin; p < cut; parts.push_back(p)) p = text::gpt2_pretoken_end(p, cut);
    for (const char* p = cut; p < end; parts.push_back(p))
      p = text::gpt2_pretoken_end_quick(p, end);
    if (parts != whole) std::abort();
  }
}
