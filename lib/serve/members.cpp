#include "serve/members.h"

namespace serve {
namespace {

using core::Json;

constexpr std::string_view kAnything = "*", kNull = "[null]";

// Returns the values of kKnownMembers with which a member asks for nothing; empty for an unknown
// member.
std::string_view neutral_values(const std::string& name) {
  if (name.find(' ') != name.npos) return {};
  for (auto rows = kKnownMembers; !rows.empty();) {
    const auto row = rows.substr(0, rows.find('\n'));
    rows.remove_prefix(row.size() + 1);
    const auto names = row.find('\t');
    if (fmt::format(" {} ", row.substr(names + 1)).find(fmt::format(" {} ", name)) != row.npos)
      return row.substr(0, names);
  }
  return {};
}

}  // namespace

std::optional<std::int64_t> whole_number(const Json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    return number <= INT64_MAX ? std::optional(static_cast<std::int64_t>(number)) : std::nullopt;
  }
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (!value.is_number_float()) return std::nullopt;
  const double number = value.get<double>();
  if (!(std::abs(number) <= 0x1p53) || number != std::floor(number)) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

const Json* Members::find(const char* name) const {
  asked_.insert(name);
  const auto found = json_.find(name);
  return found == json_.end() || found->is_null() ? nullptr : &*found;
}

void Members::take(
    const char* name, std::int64_t least, std::int64_t most, std::int64_t& to) const {
  const Json* const value = find(name);
  if (value == nullptr) return;
  const auto number = whole_number(*value);
  if (!number || *number < least || *number > most)
    refuse("{}: takes a whole number from {} to {}", name, least, most);
  to = *number;
}

void Members::take(const char* name, double least, double most, double& to) const {
  const Json* const value = find(name);
  if (value == nullptr) return;
  const double number = value->is_number() ? value->get<double>() : std::nan("");
  if (!(number >= least && number <= most))
    refuse("{}: takes a number from {} to {}", name, least, most);
  to = number;
}

void Members::take(const char* name, bool& to) const {
  const Json* const value = find(name);
  if (value == nullptr) return;
  if (!value->is_boolean()) refuse("{}: takes true or false", name);
  to = value->get<bool>();
}

void Members::refuse_others() const {
  for (const auto& [name, value] : json_.items()) {
    if (value.is_null() || asked_.contains(name)) continue;
    const auto values = neutral_values(name);
    if (values.empty()) {
      if (name.starts_with("speculative.")) continue;
      refuse("{}: is not a member that this server knows; leave it out", name.substr(0, 80));
    }
    if (values == kAnything) continue;
    if (value.is_structured() && value.empty() && (value.is_array() || values != kNull)) continue;
    if (value.is_string() && value.get_ref<const std::string&>().empty()) continue;
    const Json neutral = core::parse_json(values, name);
    if (std::find(neutral.begin(), neutral.end(), value) == neutral.end())
      refuse("{}: is not supported; leave it out", name);
  }
}

}  // namespace serve
