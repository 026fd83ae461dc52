#include "core/sealed_json.h"

#include "core/error.h"
#include "core/hash.h"

namespace core {
namespace {

constexpr const char* kHash = "hash";

// Of all members but the hash itself.
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
    fail(Code::bad_data, "{}: damaged: its hash is another", origin);
}

}  // namespace core
