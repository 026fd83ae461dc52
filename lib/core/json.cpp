#include "core/json.h"

#include "core/hash.h"
#include "core/json_line.h"

namespace core {
namespace {

// OrderedJson compares the key of a new member with all of its object's.
constexpr std::size_t kMostMembers = 1000;

// Explains what Python writes, or what is not UTF-8; else gives the byte that ends the parse.
[[noreturn]] void refuse(std::string_view text, const std::string& origin, std::size_t byte) {
  const MendedJson mended = mend_json(text);
  if (!mended.constant.empty())
    bad_data("{}: {}; write null or leave it out", origin, why_no_constant(mended.constant));
  if (!mended.not_utf8.empty()) bad_data("{}: {}", origin, mended.not_utf8);
  if (mended.only_numbers() && byte == 0)
    bad_data("{}: a number is beyond the range of a double", origin);
  if (byte > 0) bad_data("{}: not JSON (byte {})", origin, byte);
  bad_data("{}: not JSON", origin);
}

// Refuses text in which more than max_depth arrays and objects are open at some byte, or an object
// has more than max_members members. The parser has a callback that could count them, but with one
// it visits all earlier members of an object whenever a member ends: a header of 20,000 tensors
// took 15 s.
void bound(std::string_view text, const std::string& origin, std::size_t max_depth,
    std::size_t max_members = std::string_view::npos) {
  std::vector<std::size_t> members;  // of each open array and object
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (members.size() == max_depth) bad_data("{}: JSON nested too deeply", origin);
      members.push_back(0);
    } else if ((c == ']' || c == '}') && !members.empty()) {
      members.pop_back();
    } else if (c == ':' && !members.empty() && ++members.back() > max_members) {
      bad_data("{}: an object of JSON has more than {} members", origin, max_members);
    }
  }
}

template <typename Value> Value parse_bounded(std::string_view text, const std::string& origin) {
  try {
    return Value::parse(text.begin(), text.end());
  } catch (const nlohmann::json::parse_error& error) {
    refuse(text, origin, error.byte);
  } catch (const nlohmann::json::exception&) { refuse(text, origin, 0); }
}

// Collects the keys of the document's member `member`.
class MemberKeys : public nlohmann::json_sax<Json> {
 public:
  explicit MemberKeys(std::string_view member) : member_(member) {}
  std::vector<std::string> take() { return std::move(keys_); }

  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return true; }
  bool number_integer(number_integer_t /*value*/) override { return true; }
  bool number_unsigned(number_unsigned_t /*value*/) override { return true; }
  bool number_float(number_float_t /*value*/, const string_t& /*text*/) override { return true; }
  bool string(string_t& /*value*/) override { return true; }
  bool binary(binary_t& /*value*/) override { return true; }
  bool start_object(std::size_t /*members*/) override { return ++depth_ > 0; }
  bool start_array(std::size_t /*elements*/) override { return ++depth_ > 0; }
  bool end_object() override { return --depth_ >= 0; }
  bool end_array() override { return --depth_ >= 0; }
  bool key(string_t& key) override {
    if (depth_ == 1) {
      inside_ = key == member_;
      if (inside_) keys_.clear(), seen_.clear();  // the last member of a name counts
    } else if (depth_ == 2 && inside_ && seen_.insert(key).second) {
      keys_.push_back(key);
    }
    return true;
  }
  bool parse_error(std::size_t /*byte*/, const std::string& /*token*/,
      const nlohmann::json::exception& /*error*/) override {
    return false;
  }

 private:
  std::string_view member_;
  std::vector<std::string> keys_;
  std::unordered_set<std::string> seen_;
  int depth_ = 0;
  bool inside_ = false;
};

constexpr const char* kHash = "hash";

// Hashes all members except the hash itself.
std::string hash_of(Json object) {
  object.erase(kHash);
  return hash128(dump(object)).hex();
}

}  // namespace

std::vector<std::string> ordered_keys(std::string_view text, std::string_view key) {
  MemberKeys keys(key);
  nlohmann::json::sax_parse(text.begin(), text.end(), &keys);
  return keys.take();
}

Json parse_json(std::string_view text, const std::string& origin, int max_depth) {
  bound(text, origin, max_depth);
  return parse_bounded<Json>(text, origin);
}

OrderedJson parse_ordered_json(std::string_view text, const std::string& origin, int max_depth) {
  bound(text, origin, max_depth, kMostMembers);
  return parse_bounded<OrderedJson>(text, origin);
}

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}
std::string dump(const OrderedJson& json) {
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}
std::string dump_pretty(const OrderedJson& json) {
  return json.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

OrderedJson sealed(OrderedJson object) {
  object[kHash] = hash_of(Json::parse(dump(object)));
  return object;
}

void expect_sealed(const Json& object, const std::string& origin) {
  if (get<std::string>(object, kHash, origin) != hash_of(object))
    bad_data("{}: corrupt file: checksum mismatch", origin);
}

void expect_format(const Json& object, const std::string& format, std::uint64_t version,
    const std::string& what, const std::string& origin) {
  if (!object.is_object() || get<std::string>(object, "format", origin) != format)
    bad_data("{}: not {}", origin, what);
  const auto found = get<std::uint64_t>(object, "version", origin);
  if (found != version)
    bad_data("{}: format version {} is not supported; this program reads version {}", origin, found,
        version);
  expect_sealed(object, origin);
}

std::uint64_t get_at_most(const Json& object, const char* key, std::uint64_t most,
    const std::string& origin, std::uint64_t least) {
  const auto value = get<std::uint64_t>(object, key, origin);
  if (value < least || value > most)
    bad_value(origin, fmt::format("\"{}\"", key), value, fmt::format("{} to {}", least, most));
  return value;
}

}  // namespace core
