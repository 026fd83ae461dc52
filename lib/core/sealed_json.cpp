#include "core/sealed_json.h"

#include "core/error.h"
#include "core/hash.h"

namespace core {
namespace {

constexpr const char* kHash = "hash";

// Hashes all members except the hash itself.
std::string hash_of(Json object) {
  object.erase(kHash);
  return hash128(dump(object)).hex();
}

}  // namespace

OrderedJson sealed(OrderedJson object) {
  object[kHash] = hash_of(Json::parse(dump(object)));
  return object;
}

void expect_sealed(const Json& object, const std::string& origin) {
  if (get<std::string>(object, kHash, origin) != hash_of(object))
    fail(Code::bad_data, "{}: corrupt file: checksum mismatch", origin);
}

void expect_format(const Json& object, const std::string& format, std::uint64_t version,
                   const std::string& what, const std::string& origin) {
  if (!object.is_object() || get<std::string>(object, "format", origin) != format)
    fail(Code::bad_data, "{}: not {}", origin, what);
  const auto found = get<std::uint64_t>(object, "version", origin);
  if (found != version)
    fail(Code::bad_data, "{}: format version {} is not supported; this program reads version {}",
         origin, found, version);
  expect_sealed(object, origin);
}

std::uint64_t get_at_most(const Json& object, const char* key, std::uint64_t most,
                          const std::string& origin) {
  const auto value = get<std::uint64_t>(object, key, origin);
  if (value > most) fail(Code::bad_data, "{}: \"{}\" is too large", origin, key);
  return value;
}

}  // namespace core
