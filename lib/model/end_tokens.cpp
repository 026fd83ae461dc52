#include "model/end_tokens.h"

#include <optional>

#include "core/error.h"
#include "core/file_text.h"
#include "core/io.h"

namespace model {
namespace {

constexpr const char* kEndKey = "eos_token_id";
constexpr std::size_t kGenerationConfigLimit = std::size_t{1} << 24;  // bytes

std::optional<std::vector<std::int64_t>> ends_in(const core::Json& config,
                                                 const std::string& origin) {
  if (!config.is_object()) return std::nullopt;
  const auto found = config.find(kEndKey);
  if (found == config.end() || found->is_null()) return std::nullopt;
  std::vector<std::int64_t> ids;
  for (const auto& id : found->is_array() ? *found : core::Json::array({*found})) {
    if (!id.is_number_integer())
      core::fail(core::Code::bad_config, "{}: \"{}\" takes a token id or a list of token ids",
                 origin, kEndKey);
    ids.push_back(id.get<std::int64_t>());
  }
  return ids;
}

}  // namespace

std::vector<std::int64_t> end_tokens(const std::string& folder, const core::Json& config) {
  const std::string path = folder + "/generation_config.json";
  if (core::exists(path))
    if (const auto ids = ends_in(core::read_json(path, kGenerationConfigLimit), path)) return *ids;
  return ends_in(config, folder + "/config.json").value_or(std::vector<std::int64_t>{});
}

}  // namespace model
