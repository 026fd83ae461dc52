#include "shard/describe.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "core/hash.h"
#include "core/printable.h"

namespace shard {

core::OrderedJson describe(const std::string& path, const Dataset& data) {
  const auto& header = data.header();
  const auto sum = [](const std::vector<std::uint64_t>& numbers) {
    return std::accumulate(numbers.begin(), numbers.end(), std::uint64_t{0});
  };
  core::OrderedJson report;
  report["file"] = path;
  report["kind"] = name_of(header.kind);
  report["dtype"] = name_of(header.dtype);
  if (header.kind == Kind::vectors) report["width"] = header.width;
  if (header.vocabulary > 0) report["vocabulary"] = header.vocabulary;
  if (header.kind == Kind::order) {
    report["unit"] = header.unit;
    if (header.unit_length > 0) report["unit_length"] = header.unit_length;
    report["data_fingerprint"] = header.data_fingerprint;
  }
  report["elements"] = data.size();
  report["documents"] = data.documents().size();
  if (const auto& names = data.documents().names; !names.empty())
    report["named"] = std::count_if(names.begin(), names.end(),
                                    [](const std::string& name) { return !name.empty(); });
  report["bytes"] = sum(data.documents().bytes);
  report["words"] = sum(data.documents().words);
  if (header.marked) {
    std::uint64_t learned = 0;
    for (const auto& mark : data.documents().marks) learned += mark.end - mark.begin;
    report["marked"] = learned;
  }
  report["fingerprint"] = data.fingerprint().hex();
  if (!header.tokenizer.empty()) {
    const auto tokenizer = core::parse_json(header.tokenizer, path + ": tokenizer");
    const auto model = tokenizer.value("model", core::Json::object());
    report["tokenizer"] = model.is_object() ? model.value("type", "unknown") : "unknown";
    report["tokenizer_fingerprint"] = core::hash128(header.tokenizer).hex();
  }
  return report;
}

std::string made_by(const Dataset& data) {
  std::string lines;
  for (const auto& entry : data.provenance())
    lines += "made by  " + core::printable(core::dump(entry)) + "\n";
  return lines;
}

}  // namespace shard
