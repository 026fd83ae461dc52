#include "infer/generate/generator_prompts.h"

#include <algorithm>
#include <array>

#include "core/error.h"
#include "core/json.h"

namespace infer {
namespace {

constexpr std::size_t kMaxLineBytes = std::size_t{64} << 20;

}  // namespace

PromptReader::PromptReader(const std::string& path, const std::string& format, std::string field)
    : source_(core::open_source(path)),
      jsonl_(format == "jsonl" || (format == "auto" && path.ends_with(".jsonl"))),
      field_(std::move(field)) {}

PromptReader::PromptReader(std::vector<std::string> prompts)
    : ended_(true), given_(std::move(prompts)) {
  std::reverse(given_.begin(), given_.end());
}

bool PromptReader::read() {
  if (ended_) return false;
  if (buffer_.size() - begin_ > kMaxLineBytes)
    core::fail(core::Code::bad_data, "{}:{}: a line longer than 64 MiB", source_->name(),
               line_ + 1);
  buffer_.erase(0, begin_);
  begin_ = 0;
  std::array<std::byte, 65536> piece;
  const std::size_t n = source_->read(piece);
  buffer_.append(reinterpret_cast<const char*>(piece.data()), n);
  ended_ = n == 0;
  return true;
}

bool PromptReader::take(std::vector<std::string>& out) {
  std::size_t end = buffer_.find('\n', begin_);
  if (end == buffer_.npos) {
    if (!ended_ || begin_ == buffer_.size()) return false;
    end = buffer_.size();  // a last line without its newline
  }
  std::string line = buffer_.substr(begin_, end - begin_);
  begin_ = std::min(end + 1, buffer_.size());
  ++line_;
  if (!jsonl_) {
    out.push_back(std::move(line));
    return true;
  }
  if (line.find_first_not_of(" \t\r") == line.npos) return true;
  const std::string origin = fmt::format("{}:{}", source_->name(), line_);
  out.push_back(core::get<std::string>(core::parse_json(line, origin), field_.c_str(), origin));
  return true;
}

std::vector<std::string> PromptReader::next(std::size_t most) {
  std::vector<std::string> prompts;
  while (!given_.empty() && prompts.size() < most) {
    prompts.push_back(std::move(given_.back()));
    given_.pop_back();
  }
  if (!source_) return prompts;
  for (;;) {
    while (prompts.size() < most && take(prompts)) {
    }
    if (!prompts.empty() || !read()) return prompts;
  }
}

void PromptOptions::fields(core::FieldList& f) {
  f.positional("FILE", file, "prompts; - or none is stdin");
  f("prompt", prompt, "the prompt itself, instead of a FILE");
  f("format", format, "of FILE: lines, jsonl; auto: jsonl if its name says so",
    {"auto", "lines", "jsonl"});
  f("field", field, "jsonl: the member that is the prompt");
}

PromptReader PromptOptions::open(const std::set<std::string>& given) const {
  using core::Code;
  if (given.count("prompt") > 0) {
    if (!file.empty()) core::fail(Code::usage, "give --prompt or a FILE, not both");
    return PromptReader({prompt});
  }
  try {
    return {file.empty() ? "-" : file, format, field};
  } catch (const core::Error& error) {
    if (error.code() != Code::no_input) throw;
    core::fail(Code::no_input, "{}; a prompt itself goes behind --prompt", error.what());
  }
}

}  // namespace infer
