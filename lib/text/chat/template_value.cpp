#include "text/chat/template_value.h"

#include "text/python/python_text.h"

namespace text::chat {
namespace {

using namespace python;

std::string real_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string text = fmt::format("{}", value);
  if (text.find_first_not_of("-0123456789") == text.npos) text += ".0";
  return text;
}

bool is_number(const Value& value) {
  return value.holds<bool>() || value.holds<std::int64_t>() || value.holds<double>();
}
// A type that has all 64-bit integers and all doubles.
long double exact(const Value& value) {
  const auto* real = std::get_if<double>(&value.is);
  std::int64_t whole = 0;
  return real == nullptr && value.whole(whole) ? static_cast<long double>(whole)
                                               : static_cast<long double>(*real);
}

enum KeyKind : std::uint8_t { kNothingKey, kUndefinedKey, kNumberKey, kTextKey, kTupleKey };
KeyKind kind_of_key(const Value& key) {
  if (key.text() != nullptr) return kTextKey;
  if (key.none()) return kNothingKey;
  if (key.undefined()) return kUndefinedKey;
  if (is_number(key)) return kNumberKey;
  const auto* list = key.list();
  if (list == nullptr || list->form != List::Form::tuple)
    throw Fault("a value of type {} cannot be a key", type_name(key));
  for (const auto& item : list->items) kind_of_key(item);
  return kTupleKey;
}

// Writes values as Python's repr() does.
class Printer {
 public:
  Printer(std::size_t most, std::string& out) : most_(most), out_(out) {}
  void write(const Value& value) {
    if (out_.size() > most_) throw Fault("the template makes too long a text");
    const auto* list = value.list();
    if (value.undefined()) {
      out_ += "Undefined";
    } else if (value.none()) {
      out_ += "None";
    } else if (const auto* flag = std::get_if<bool>(&value.is)) {
      out_ += *flag ? "True" : "False";
    } else if (const auto* whole = std::get_if<std::int64_t>(&value.is)) {
      out_ += fmt::format("{}", *whole);
    } else if (const auto* real = std::get_if<double>(&value.is)) {
      out_ += real_text(*real);
    } else if (const auto* text = value.text()) {
      quote(*text);
    } else if (list != nullptr && list->form < List::Form::range) {
      const bool tuple = list->form == List::Form::tuple;
      out_ += tuple ? '(' : '[';
      for (const auto& one : list->items) next(one, &one == list->items.data());
      if (tuple && list->items.size() == 1) out_ += ',';
      out_ += tuple ? ')' : ']';
    } else if (const auto* dict = value.dict()) {
      out_ += '{';
      for (const auto& member : dict->members) {
        next(member.first, &member == dict->members.data());
        out_ += ": ";
        write(member.second);
      }
      out_ += '}';
    } else {
      throw Fault("a value of type {} cannot be printed", type_name(value));
    }
  }

 private:
  void next(const Value& value, bool first) {
    if (!first) out_ += ", ";
    write(value);
  }
  void quote(const std::string& text) {
    const bool doubly = text.find('\'') != text.npos && text.find('"') == text.npos;
    const char quote = doubly ? '"' : '\'';
    out_ += quote;
    each_character(text, [&](std::string_view c, std::uint32_t code) {
      if (code == '\\' || code == static_cast<unsigned char>(quote)) out_ += {'\\', c[0]};
      else if (code == '\n') out_ += "\\n";
      else if (code == '\r') out_ += "\\r";
      else if (code == '\t') out_ += "\\t";
      else if (code == Char::kInvalid || is_printable(code)) out_ += c;
      else if (code < 0x100) out_ += fmt::format("\\x{:02x}", code);
      else out_ += code < 0x10000 ? fmt::format("\\u{:04x}", code) : fmt::format("\\U{:08x}", code);
    });
    out_ += quote;
  }
  std::size_t most_;
  std::string& out_;
};

void append_json_text(const std::string& text, bool ascii, std::string& out) {
  out += '"';
  each_character(text, [&](std::string_view c, std::uint32_t code) {
    const bool plain = code >= ' ' && code != '"' && code != '\\' && (code < 0x80 || !ascii);
    if (plain || code == Char::kInvalid) {
      out += c;
    } else {
      const std::string quoted = core::Json(c).dump(-1, ' ', ascii);
      out.append(quoted, 1, quoted.size() - 2);
    }
  });
  out += '"';
}

class JsonWriter {
 public:
  JsonWriter(const JsonForm& form, std::size_t most, std::string& out)
      : form_(form), most_(most), out_(out) {}
  void write(const Value& value, int level) {
    if (out_.size() > most_) throw Fault("the template makes too long a text");
    if (value.none()) {
      out_ += "null";
    } else if (const auto* flag = std::get_if<bool>(&value.is)) {
      out_ += *flag ? "true" : "false";
    } else if (const auto* text = value.text()) {
      append_json_text(*text, form_.ascii, out_);
    } else if (const auto* real = std::get_if<double>(&value.is)) {
      out_ += std::isfinite(*real) ? real_text(*real)
              : std::isnan(*real)  ? "NaN"
              : *real < 0          ? "-Infinity"
                                   : "Infinity";
    } else if (const auto* whole = std::get_if<std::int64_t>(&value.is)) {
      out_ += fmt::format("{}", *whole);
    } else if (const auto* list = value.list(); list != nullptr && list->form < List::Form::range) {
      group('[', ']', list->items, level, [&](const Value& item) { write(item, level + 1); });
    } else if (const auto* dict = value.dict()) {
      auto members = dict->members;
      if (form_.sorted)
        std::ranges::stable_sort(
            members, [](const auto& a, const auto& b) { return less(a.first, b.first); });
      group('{', '}', members, level, [&](const auto& member) {
        write_key(member.first, level);
        out_ += form_.colon;
        write(member.second, level + 1);
      });
    } else {
      throw Fault("tojson: a value of type {} is not JSON", type_name(value));
    }
  }

 private:
  template <class Items, class Write>
  void group(char open, char close, const Items& items, int level, const Write& write_one) {
    out_ += open;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out_ += form_.comma;
      line(level + 1);
      write_one(items[i]);
    }
    if (!items.empty()) line(level);
    out_ += close;
  }
  void line(int level) {
    if (form_.indent < 0) return;
    out_ += '\n';
    out_.append(static_cast<std::size_t>(level) * static_cast<std::size_t>(form_.indent), ' ');
  }
  void write_key(const Value& key, int level) {
    if (key.text() != nullptr) return write(key, level);
    if (key.list() != nullptr || key.undefined())
      throw Fault("tojson: a key of type {} is not JSON", type_name(key));
    out_ += '"';
    write(key, level);
    out_ += '"';
  }
  const JsonForm& form_;
  std::size_t most_;
  std::string& out_;
};

// One value may be in many lists, which may be in many others.
constexpr std::size_t kMostExtent = std::size_t{1} << 40;

int depth_of(const Value& value) {
  if (const auto* list = value.list()) return list->depth;
  if (const auto* dict = value.dict()) return dict->depth;
  if (const auto* loop = std::get_if<std::shared_ptr<const Loop>>(&value.is))
    return (*loop)->items->depth + 1;
  if (const auto* function = std::get_if<std::shared_ptr<const Function>>(&value.is))
    return (*function)->self ? depth_of(*(*function)->self) + 1 : 0;
  return 0;
}

int deeper(int depth, const Value& value) {
  depth = std::max(depth, depth_of(value) + 1);
  if (depth > kDeepest) throw Fault("lists or dicts more than {} deep", kDeepest);
  return depth;
}

}  // namespace

const Value* Dict::find(std::string_view key) const {
  const auto found = std::ranges::partition_point(sorted, [&](std::uint32_t i) {
    const auto& own = members[i].first;
    return own.text() == nullptr ? kind_of_key(own) < kTextKey : *own.text() < key;
  });
  if (found == sorted.end()) return nullptr;
  const auto& [own, value] = members[*found];
  return own.text() != nullptr && *own.text() == key ? &value : nullptr;
}
const Value* Dict::find(const Value& key) const {
  const auto found = std::ranges::partition_point(
      sorted, [&](std::uint32_t i) { return std::is_lt(key_order(members[i].first, key)); });
  if (found == sorted.end() || std::is_neq(key_order(members[*found].first, key))) return nullptr;
  return &members[*found].second;
}

template <class T> static const T* content_of(const Value& value) {
  const auto* found = std::get_if<std::shared_ptr<const T>>(&value.is);
  return found != nullptr ? found->get() : nullptr;
}
const std::string* Value::text() const { return content_of<std::string>(*this); }
const List* Value::list() const { return content_of<List>(*this); }
const Dict* Value::dict() const { return content_of<Dict>(*this); }
bool Value::whole(std::int64_t& number) const {
  if (const auto* flag = std::get_if<bool>(&is)) return number = *flag ? 1 : 0, true;
  const auto* found = std::get_if<std::int64_t>(&is);
  if (found != nullptr) number = *found;
  return found != nullptr;
}
bool Value::number(double& number) const {
  if (const auto* real = std::get_if<double>(&is)) return number = *real, true;
  std::int64_t integer = 0;
  if (!whole(integer)) return false;
  number = static_cast<double>(integer);
  return true;
}

Value undefined(std::string why) {
  return {Undefined{std::make_shared<const std::string>(std::move(why))}};
}
Value of_text(std::string text) { return {std::make_shared<const std::string>(std::move(text))}; }

Value of_list(std::vector<Value> items, List::Form form) {
  int depth = 1;
  std::size_t sum = 1;
  for (const auto& item : items) {
    depth = deeper(depth, item);
    sum = std::min(sum + extent(item), kMostExtent);
  }
  return {std::make_shared<const List>(List{std::move(items), form, depth, sum})};
}

Value of_dict(std::vector<std::pair<Value, Value>> members) {
  std::vector<std::uint32_t> sorted(members.size());
  for (std::size_t i = 0; i < sorted.size(); ++i) sorted[i] = static_cast<std::uint32_t>(i);
  const auto by_key = [&](std::uint32_t i, std::uint32_t j) {
    return std::is_lt(key_order(members[i].first, members[j].first));
  };
  if (members.size() == 1) key_order(members[0].first, members[0].first);
  std::ranges::stable_sort(sorted, by_key);
  // The first of equal keys gets the last one's value, the others go.
  std::vector<bool> gone(members.size());
  for (std::size_t i = 0, first = 0; i < sorted.size(); ++i) {
    if (i == 0 || by_key(sorted[first], sorted[i])) {
      first = i;
      continue;
    }
    members[sorted[first]].second = std::move(members[sorted[i]].second);
    gone[sorted[i]] = true;
  }
  if (core::contains(gone, true)) {
    std::vector<std::pair<Value, Value>> kept;
    for (std::size_t i = 0; i < members.size(); ++i)
      if (!gone[i]) kept.push_back(std::move(members[i]));
    return of_dict(std::move(kept));
  }
  int depth = 1;
  std::size_t sum = 1;
  for (const auto& [key, value] : members) {
    depth = deeper(deeper(depth, value), key);
    sum = std::min(sum + extent(value) + extent(key), kMostExtent);
  }
  return {std::make_shared<const Dict>(Dict{std::move(members), depth, sum, std::move(sorted)})};
}

Value of_json(const core::OrderedJson& json) {
  if (json.is_boolean()) return of_bool(json.get<bool>());
  if (json.is_number_unsigned() && json.get<std::uint64_t>() > std::uint64_t{INT64_MAX})
    return {json.get<double>()};
  if (json.is_number_integer()) return of_whole(json.get<std::int64_t>());
  if (json.is_number()) return {json.get<double>()};
  if (json.is_string()) return of_text(json.get<std::string>());
  if (json.is_array()) return of_list(core::mapped(json, of_json));
  if (json.is_object()) {
    std::vector<std::pair<Value, Value>> members;
    for (const auto& [key, value] : json.items())
      members.emplace_back(of_text(key), of_json(value));
    return of_dict(std::move(members));
  }
  return {None{}};
}

void expect_defined(const Value& value) {
  if (const auto* nothing = std::get_if<Undefined>(&value.is)) throw Fault(*nothing->why);
}

bool truth(const Value& value) {
  if (value.undefined() || value.none()) return false;
  if (const auto* flag = std::get_if<bool>(&value.is)) return *flag;
  if (double number = 0; value.number(number)) return number != 0;
  if (const auto* text = value.text()) return !text->empty();
  if (const auto* list = value.list())
    return list->form == List::Form::lazy || !list->items.empty();
  if (const auto* dict = value.dict()) return !dict->members.empty();
  return true;
}

std::string type_name(const Value& value) {
  if (value.undefined()) return "Undefined";
  if (value.none()) return "NoneType";
  if (value.holds<bool>()) return "bool";
  if (value.holds<std::int64_t>()) return "int";
  if (value.holds<double>()) return "float";
  if (value.text() != nullptr) return "str";
  constexpr const char* kLists[] = {"list", "tuple", "range", "dict view", "generator"};
  if (const auto* list = value.list()) return kLists[static_cast<std::size_t>(list->form)];
  if (value.dict() != nullptr) return "dict";
  if (value.holds<std::shared_ptr<Space>>()) return "Namespace";
  if (value.holds<std::shared_ptr<const Loop>>()) return "LoopContext";
  return "function";
}

std::string printed(const Value& value, std::size_t most) {
  if (const auto* text = value.text()) return *text;
  return value.undefined() ? "" : repr(value, most);
}
std::string repr(const Value& value, std::size_t most) {
  std::string out;
  Printer(most, out).write(value);
  return out;
}

bool equal(const Value& a, const Value& b) {
  if (is_number(a) && is_number(b)) return std::is_eq(order(a, b));
  if (a.is.index() != b.is.index()) return false;
  if (const auto* text = a.text()) return *text == *b.text();
  if (const auto* list = a.list()) {
    const auto* other = b.list();
    if (list == other) return true;
    return list->form == other->form && list->form != List::Form::lazy &&
           std::ranges::equal(list->items, other->items, equal);
  }
  if (const auto* dict = a.dict()) {
    const auto* other = b.dict();
    if (dict->members.size() != other->members.size()) return false;
    return std::ranges::all_of(dict->members, [&](const auto& member) {
      const Value* found = other->find(member.first);
      return found != nullptr && equal(member.second, *found);
    });
  }
  if (const auto* space = std::get_if<std::shared_ptr<Space>>(&a.is))
    return *space == std::get<std::shared_ptr<Space>>(b.is);
  return a.undefined() || a.none();
}

std::partial_ordering order(const Value& a, const Value& b) {
  if (std::int64_t x = 0, y = 0; a.whole(x) && b.whole(y)) return x <=> y;
  if (is_number(a) && is_number(b)) return exact(a) <=> exact(b);
  if (a.text() != nullptr && b.text() != nullptr) return *a.text() <=> *b.text();
  const auto *list = a.list(), *other = b.list();
  if (list != nullptr && other != nullptr && list->form == other->form &&
      list->form < List::Form::range) {
    const auto n = std::min(list->items.size(), other->items.size());
    for (std::size_t i = 0; i < n; ++i) {
      const Value &x = list->items[i], &y = other->items[i];
      const bool ordered = (is_number(x) && is_number(y)) || x.text() != nullptr ||
                           (x.list() != nullptr && y.list() != nullptr);
      if (!ordered && equal(x, y)) continue;
      if (const auto one = order(x, y); std::is_neq(one)) return one;
    }
    return list->items.size() <=> other->items.size();
  }
  expect_defined(a);
  expect_defined(b);
  throw Fault("values of types {} and {} cannot be compared", type_name(a), type_name(b));
}

bool less(const Value& a, const Value& b) { return std::is_lt(order(a, b)); }

std::weak_ordering key_order(const Value& a, const Value& b) {
  const int kind = kind_of_key(a), other = kind_of_key(b);
  if (kind != other) return kind <=> other;
  if (kind == kNumberKey) {
    const auto found = order(a, b);
    if (found == std::partial_ordering::unordered)  // not a number
      return std::isnan(exact(b)) <=> std::isnan(exact(a));
    return std::is_lt(found)   ? std::weak_ordering::less
           : std::is_gt(found) ? std::weak_ordering::greater
                               : std::weak_ordering::equivalent;
  }
  if (kind == kTextKey) return *a.text() <=> *b.text();
  if (kind != kTupleKey) return std::weak_ordering::equivalent;
  const auto &items = a.list()->items, &others = b.list()->items;
  for (std::size_t i = 0; i < std::min(items.size(), others.size()); ++i)
    if (const auto one = key_order(items[i], others[i]); std::is_neq(one)) return one;
  return items.size() <=> others.size();
}

std::size_t extent(const Value& value) {
  if (const auto* text = value.text()) return 1 + text->size() / 16;
  if (const auto* list = value.list()) return list->extent;
  if (const auto* dict = value.dict()) return dict->extent;
  return 1;
}

std::string to_json(const Value& value, const JsonForm& form, std::size_t most) {
  std::string out;
  JsonWriter(form, most, out).write(value, 0);
  return out;
}

}  // namespace text::chat
