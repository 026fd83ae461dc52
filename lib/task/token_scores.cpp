#include "task/token_scores.h"

#include "core/plain_text.h"
#include "core/units.h"

namespace task {
namespace {

constexpr std::size_t kPieceBytes = 1 << 16;
constexpr std::size_t kLongestLine = 1 << 20;

std::string_view field(std::string_view line, std::size_t column) {
  for (; column > 0; --column) {
    const std::size_t tab = line.find('\t');
    if (tab == line.npos) return {};
    line.remove_prefix(tab + 1);
  }
  return line.substr(0, line.find('\t'));
}

}  // namespace

std::string escape_text(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const auto c = static_cast<unsigned char>(bytes[0]);
    std::size_t n = 1;
    if (c == '\t') {
      text += "\\t";
    } else if (c == '\n') {
      text += "\\n";
    } else if (c == '\r') {
      text += "\\r";
    } else if (c == '\\') {
      text += "\\\\";
    } else if ((n = core::printable_length(bytes)) > 0) {
      text += bytes.substr(0, n);
    } else {
      fmt::format_to(std::back_inserter(text), "\\x{:02X}", c);
      n = 1;
    }
    bytes.remove_prefix(n);
  }
  return text;
}

TokenScoreWriter::TokenScoreWriter(
    core::ByteSink& sink, const std::vector<std::string>& sources, const std::string& origin)
    : sink_(sink) {
  if (!origin.empty()) sink_.write("# " + origin + "\n");
  std::string heading = "position\tdocument\ttoken\ttext\thead\tjoint";
  for (const auto& source : sources) heading += "\t" + source;
  sink_.write(heading + "\tnats\n");
}

void TokenScoreWriter::write(const TokenScore& score) {
  line_.clear();
  const auto out = std::back_inserter(line_);
  const auto add = [&](double nats) {
    if (std::isnan(nats)) {
      line_ += "\t-";
    } else {
      fmt::format_to(out, "\t{:.12g}", nats);
    }
  };
  fmt::format_to(out, "{}\t{}\t{}\t{}", score.position, score.document, score.token, score.text);
  add(score.head), add(score.joint);
  for (const double nats : score.sources) add(nats);
  add(score.nats);
  line_ += '\n';
  sink_.write(line_);
}

TokenScoreReader::TokenScoreReader(core::ByteSource& source) : source_(source) { read_heading(); }

bool TokenScoreReader::read_line() {
  std::size_t end;
  while ((end = buffer_.find('\n', at_)) == buffer_.npos) {
    if (buffer_.size() - at_ > kLongestLine)
      core::bad_data(
          "{}:{}: the line does not end; not a --per-token file", name(), line_number_ + 1);
    buffer_.erase(0, at_);
    at_ = 0;
    const std::size_t held = buffer_.size();
    buffer_.resize(held + kPieceBytes);
    const std::size_t n =
        source_.read(std::as_writable_bytes(std::span(buffer_.data() + held, kPieceBytes)));
    buffer_.resize(held + n);
    if (n > 0) continue;
    if (held > 0)
      core::bad_data(
          "{}:{}: the last line does not end; the file is cut short", name(), line_number_ + 1);
    return false;
  }
  line_ = std::string_view(buffer_).substr(at_, end - at_);
  at_ = end + 1;
  ++line_number_;
  return true;
}

void TokenScoreReader::read_heading() {
  do {
    if (!read_line()) core::bad_data("{}: has no heading; not a --per-token file", name());
  } while (line_.starts_with('#'));
  const auto find = [&](std::string_view wanted) {
    const auto columns = static_cast<std::size_t>(std::ranges::count(line_, '\t')) + 1;
    for (std::size_t i = 0; i < columns; ++i)
      if (field(line_, i) == wanted) return i;
    core::bad_data("{}:{}: has no column \"{}\"; not a --per-token file of eval-ppl", name(),
        line_number_, wanted);
  };
  position_ = find("position"), document_ = find("document"), token_ = find("token");
  nats_ = find("nats");
}

template <class T> T TokenScoreReader::number(std::size_t column, const char* what) const {
  const std::string_view text = field(line_, column);
  const auto value = core::read_number<T>(text);
  if (!value) core::bad_data("{}:{}: {} '{}' is not a number", name(), line_number_, what, text);
  return *value;
}

bool TokenScoreReader::next(TokenScore& score) {
  if (!read_line()) return false;
  score.position = number<std::uint64_t>(position_, "position");
  score.document = number<std::uint64_t>(document_, "document");
  score.token = number<std::uint32_t>(token_, "token");
  score.nats = number<double>(nats_, "nats");
  if (!std::isfinite(score.nats)) core::bad_data("{}:{}: nats is not finite", name(), line_number_);
  return true;
}

}  // namespace task
