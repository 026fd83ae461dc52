#include "store/store_info.h"

#include <filesystem>

#include "core/error.h"
#include "store/manifest.h"
#include "store/store_files.h"
#include "store/store_report.h"

namespace store {
namespace {

std::uint64_t bytes_of(const std::string& folder, const Manifest& manifest) {
  std::uint64_t bytes = 0;
  for (const auto& name : files_of(manifest)) {
    std::error_code missing;
    bytes += std::filesystem::file_size(folder + "/" + name, missing);
    if (missing)
      core::fail(core::Code::bad_data, "{}/{}: cannot read: {}", folder, name, missing.message());
  }
  return bytes;
}

}  // namespace

Info info(const std::string& folder) {
  const Manifest manifest = read_manifest(folder);
  Info info;
  info.report = describe(folder, manifest);
  info.report["vocabulary"] = manifest.vocabulary;
  info.report["removed"] = manifest.removed.size();
  info.report["query_width"] = manifest.query_width();
  info.report["key_scale"] = manifest.key_scale;
  const auto& calibration = manifest.calibration;
  info.report["calibration"] = calibration ? to_json(*calibration) : core::OrderedJson();
  info.report["left_out"] = manifest.whole() ? "nothing" : "some";
  info.report["bytes"] = bytes_of(folder, manifest);
  for (const Source& source : manifest.sources)
    info.sources.push_back(
        {{"data", source.data},
         {"rows", source.rows},
         {"documents", source.documents},
         {"part", source.part ? fmt::format("{}/{}", source.part->number, source.part->of) : ""},
         {"windows", source.windows}});
  return info;
}

}  // namespace store
