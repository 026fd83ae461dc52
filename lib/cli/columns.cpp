#include "cli/columns.h"

#include <fmt/format.h>

#include "core/json.h"
#include "core/printable.h"

namespace cli {
namespace {

std::string cell_of(const Columns::Value& value, bool json) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return fmt::format("{}", *whole);
  if (const auto* number = std::get_if<double>(&value)) return fmt::format("{:.6g}", *number);
  const auto& text = std::get<std::string>(value);
  return json ? core::dump(core::Json(text)) : core::printable(text);
}

}  // namespace

Columns::Columns(const Context& context, core::ByteSink& out, std::vector<std::string> names)
    : out_(out), names_(std::move(names)), json_(context.json) {
  if (!json_) out_.write(fmt::format("{}\n", fmt::join(names_, "\t")));
}

void Columns::row(std::initializer_list<Value> values) {
  std::string line;
  auto name = names_.begin();
  for (const auto& value : values) {
    const char* const before = line.empty() ? (json_ ? "{" : "") : (json_ ? "," : "\t");
    line += before + (json_ ? fmt::format("\"{}\":", *name++) : "") + cell_of(value, json_);
  }
  out_.write(line + (json_ ? "}\n" : "\n"));
}

}  // namespace cli
