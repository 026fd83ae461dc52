#include "shard/parts.h"

#include <algorithm>
#include <map>

#include "core/error.h"

namespace shard {
namespace {

constexpr const char* kPart = "part";

// Finds each part of a command among the files. Empty if they are not parts of one command or a
// part occurs twice. `twice` is the first file of a repeated part.
struct Found {
  std::map<std::int64_t, std::size_t> place;  // by part
  std::int64_t count = 0;
  std::size_t twice = 0;
};

std::optional<Found> find_parts(const std::vector<File>& files) {
  Found found;
  std::vector<core::OrderedJson> first;
  for (std::size_t i = 0; i < files.size(); ++i) {
    auto entries = files[i].trailer().provenance;
    const auto part = take_part(entries);
    if (!part || (i > 0 && (entries != first || part->count != found.count))) return std::nullopt;
    if (i == 0) first = std::move(entries), found.count = part->count;
    if (!found.place.emplace(part->index, i).second && found.twice == 0) found.twice = i;
  }
  return found;
}

// If some are parts, all must be parts of one command.
void refuse_mixed(const std::vector<File>& files) {
  const auto whole_of = [](const File& file) {
    auto entries = file.trailer().provenance;
    const auto part = take_part(entries);
    return std::pair(part ? part->count : 0, entries);
  };
  const auto part = std::find_if(files.begin(), files.end(),
                                 [&](const File& file) { return whole_of(file).first > 0; });
  if (part == files.end()) return;
  for (const auto& file : files)
    if (whole_of(file) != whole_of(*part))
      core::fail(
          core::Code::usage,
          "{}: belongs to another command than {}; merge the parts of each command separately",
          file.name(), part->name());
}

}  // namespace

void put_part(core::OrderedJson& options, const core::Part& part) {
  options[kPart] = fmt::format("{}/{}", part.index + 1, part.count);
}

std::optional<core::Part> take_part(std::vector<core::OrderedJson>& provenance) {
  if (provenance.empty() || !provenance.back().is_object()) return std::nullopt;
  auto& entry = provenance.back();
  const auto options = entry.find("options");
  if (options == entry.end() || !options->is_object()) return std::nullopt;
  const auto said = options->find(kPart);
  if (said == options->end() || !said->is_string()) return std::nullopt;
  const auto text = said->get<std::string>();
  if (text.find('/') == text.npos) return std::nullopt;
  try {
    const core::Part part = core::part(text);
    options->erase(kPart);
    return part;
  } catch (const core::Error&) {  // not written by this program
    return std::nullopt;
  }
}

bool order_parts(std::vector<File>& files) {
  const auto found = find_parts(files);
  if (!found || found->twice > 0 || std::ssize(found->place) != found->count) return false;
  std::vector<File> ordered;
  for (const auto& [part, at] : found->place) ordered.push_back(std::move(files[at]));
  files = std::move(ordered);
  return true;
}

void refuse_incomplete(const std::vector<File>& files) {
  const auto found = find_parts(files);
  if (!found) return refuse_mixed(files);
  if (found->twice > 0)
    core::fail(core::Code::usage, "{}: this part is given twice", files[found->twice].name());
  for (std::int64_t part = 0; part < found->count; ++part)
    if (found->place.count(part) == 0)
      core::fail(core::Code::usage, "{}: is one of {} parts, of which part {} is missing",
                 files[0].name(), found->count, part + 1);
}

}  // namespace shard
