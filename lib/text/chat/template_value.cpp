#include "text/chat/template_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "text/chat/template_text.h"

namespace text::chat {
namespace {

template <class Members>
const Value* find_in(const Members& members, std::string_view key) {
  for (auto it = members.rbegin(); it != members.rend(); ++it)
    if (it->first == key) return &it->second;
  return nullptr;
}

std::string real_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string text = fmt::format("{}", value);
  if (text.find_first_not_of("-0123456789") == text.npos) text += ".0";
  return text;
}

// Writes Python's repr of a text.
std::string quoted(const std::string& text) {
  const bool doubly = text.find('\'') != text.npos && text.find('"') == text.npos;
  const char quote = doubly ? '"' : '\'';
  std::string out(1, quote);
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\\' || c == quote)
      out += {'\\', c};
    else if (c == '\n')
      out += "\\n";
    else if (c == '\r')
      out += "\\r";
    else if (c == '\t')
      out += "\\t";
    else if (byte < 0x20 || byte == 0x7F)
      out += fmt::format("\\x{:02x}", byte);
    else
      out += c;
  }
  return out + quote;
}

std::string repr(const Value& value);

template <class Items, class Print>
std::string listed(const Items& items, const Print& print) {
  std::string out;
  for (std::size_t i = 0; i < items.size(); ++i) out += (i == 0 ? "" : ", ") + print(items[i]);
  return out;
}

std::string repr(const Value& value) {
  if (const auto* text = value.text()) return quoted(*text);
  if (value.undefined()) return "Undefined";
  return printed(value);
}

void append_json_text(const std::string& text, bool ascii, std::string& out) {
  out += '"';
  for (const char* p = text.data(); p < text.data() + text.size();) {
    const auto c = decode_char(p, text.data() + text.size());
    const std::string_view bytes(p, c.bytes);
    p += c.bytes;
    switch (c.code_point) {
      case '"':
        out += "\\\"";
        continue;
      case '\\':
        out += "\\\\";
        continue;
      case '\n':
        out += "\\n";
        continue;
      case '\r':
        out += "\\r";
        continue;
      case '\t':
        out += "\\t";
        continue;
      case '\b':
        out += "\\b";
        continue;
      case '\f':
        out += "\\f";
        continue;
      default:
        break;
    }
    if (c.code_point < 0x20) {
      out += fmt::format("\\u{:04x}", c.code_point);
    } else if (!ascii || c.code_point < 0x80 || c.code_point == Char::kInvalid) {
      out += bytes;
    } else if (c.code_point < 0x10000) {
      out += fmt::format("\\u{:04x}", c.code_point);
    } else {
      const auto above = c.code_point - 0x10000;
      out += fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + (above >> 10), 0xDC00 + (above & 0x3FF));
    }
  }
  out += '"';
}

class JsonWriter {
 public:
  JsonWriter(const JsonForm& form, std::string& out) : form_(form), out_(out) {}
  void write(const Value& value, int level) {
    if (value.none()) {
      out_ += "null";
    } else if (const auto* flag = std::get_if<bool>(&value.is)) {
      out_ += *flag ? "true" : "false";
    } else if (const auto* text = value.text()) {
      append_json_text(*text, form_.ascii, out_);
    } else if (const auto* real = std::get_if<double>(&value.is)) {
      out_ += std::isfinite(*real) ? printed(value)
              : std::isnan(*real)  ? "NaN"
              : *real < 0          ? "-Infinity"
                                   : "Infinity";
    } else if (value.holds<std::int64_t>()) {
      out_ += printed(value);
    } else if (const auto* list = value.list(); list != nullptr && list->form != List::Form::lazy) {
      group('[', ']', list->items, level, [&](const Value& item) { write(item, level + 1); });
    } else if (const auto* dict = value.dict()) {
      auto members = dict->members;
      if (form_.sorted)
        std::stable_sort(members.begin(), members.end(),
                         [](const auto& a, const auto& b) { return a.first < b.first; });
      group('{', '}', members, level, [&](const auto& member) {
        append_json_text(member.first, form_.ascii, out_);
        out_ += form_.colon;
        write(member.second, level + 1);
      });
    } else {
      throw Fault(fmt::format("tojson: a value of type {} is not JSON", type_name(value)));
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
  const JsonForm& form_;
  std::string& out_;
};

}  // namespace

const Value* Dict::find(std::string_view key) const { return find_in(members, key); }
const Value* Space::find(std::string_view name) const { return find_in(members, name); }
void Space::set(const std::string& name, Value value) {
  for (auto& member : members)
    if (member.first == name) {
      member.second = std::move(value);
      return;
    }
  members.emplace_back(name, std::move(value));
}

const std::string* Value::text() const {
  const auto* found = std::get_if<Text>(&is);
  return found != nullptr ? found->get() : nullptr;
}
const List* Value::list() const {
  const auto* found = std::get_if<std::shared_ptr<const List>>(&is);
  return found != nullptr ? found->get() : nullptr;
}
const Dict* Value::dict() const {
  const auto* found = std::get_if<std::shared_ptr<const Dict>>(&is);
  return found != nullptr ? found->get() : nullptr;
}
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
Value of_bool(bool value) { return {value}; }
Value of_whole(std::int64_t value) { return {value}; }

namespace {

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
  if (depth > kDeepest) throw Fault(fmt::format("lists or dicts more than {} deep", kDeepest));
  return depth;
}

}  // namespace

Value of_list(std::vector<Value> items, List::Form form) {
  int depth = 1;
  std::size_t sum = 1;
  for (const auto& item : items) {
    depth = deeper(depth, item);
    sum = std::min(sum + extent(item), kMostExtent);
  }
  return {std::make_shared<const List>(List{std::move(items), form, depth, sum})};
}

Value of_dict(std::vector<std::pair<std::string, Value>> members) {
  int depth = 1;
  std::size_t sum = 1;
  for (const auto& [key, value] : members) {
    depth = deeper(depth, value);
    sum = std::min(sum + extent(value) + key.size() / 16, kMostExtent);
  }
  return {std::make_shared<const Dict>(Dict{std::move(members), depth, sum})};
}

Value of_json(const core::OrderedJson& json) {
  if (json.is_boolean()) return of_bool(json.get<bool>());
  if (json.is_number_unsigned() && json.get<std::uint64_t>() > std::uint64_t{INT64_MAX})
    return {json.get<double>()};
  if (json.is_number_integer()) return of_whole(json.get<std::int64_t>());
  if (json.is_number()) return {json.get<double>()};
  if (json.is_string()) return of_text(json.get<std::string>());
  if (json.is_array()) {
    std::vector<Value> items;
    for (const auto& item : json) items.push_back(of_json(item));
    return of_list(std::move(items));
  }
  if (json.is_object()) {
    std::vector<std::pair<std::string, Value>> members;
    for (const auto& [key, value] : json.items()) members.emplace_back(key, of_json(value));
    return of_dict(std::move(members));
  }
  return {None{}};
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
  if (const auto* list = value.list())
    return list->form == List::Form::list    ? "list"
           : list->form == List::Form::tuple ? "tuple"
                                             : "generator";
  if (value.dict() != nullptr) return "dict";
  if (value.holds<std::shared_ptr<Space>>()) return "Namespace";
  if (value.holds<std::shared_ptr<const Loop>>()) return "LoopContext";
  return "function";
}

std::string printed(const Value& value) {
  if (value.undefined()) return "";
  if (value.none()) return "None";
  if (const auto* flag = std::get_if<bool>(&value.is)) return *flag ? "True" : "False";
  if (const auto* whole = std::get_if<std::int64_t>(&value.is)) return fmt::format("{}", *whole);
  if (const auto* real = std::get_if<double>(&value.is)) return real_text(*real);
  if (const auto* text = value.text()) return *text;
  if (const auto* list = value.list(); list != nullptr && list->form != List::Form::lazy) {
    const auto inner = listed(list->items, repr);
    if (list->form == List::Form::list) return "[" + inner + "]";
    return "(" + inner + (list->items.size() == 1 ? ",)" : ")");
  }
  if (const auto* dict = value.dict())
    return "{" +
           listed(dict->members,
                  [](const auto& member) {
                    return quoted(member.first) + ": " + repr(member.second);
                  }) +
           "}";
  throw Fault(fmt::format("a value of type {} cannot be printed", type_name(value)));
}

bool equal(const Value& a, const Value& b) {
  if (std::int64_t x = 0, y = 0; a.whole(x) && b.whole(y)) return x == y;
  if (double x = 0, y = 0; a.number(x) && b.number(y)) return x == y;
  if (a.is.index() != b.is.index()) return false;
  if (const auto* text = a.text()) return *text == *b.text();
  if (const auto* list = a.list()) {
    const auto* other = b.list();
    if (list == other) return true;
    return list->form == other->form && list->form != List::Form::lazy &&
           std::equal(list->items.begin(), list->items.end(), other->items.begin(),
                      other->items.end(), equal);
  }
  if (const auto* dict = a.dict()) {
    const auto* other = b.dict();
    if (dict->members.size() != other->members.size()) return false;
    return std::all_of(dict->members.begin(), dict->members.end(), [&](const auto& member) {
      const Value* found = other->find(member.first);
      return found != nullptr && equal(member.second, *found);
    });
  }
  if (const auto* space = std::get_if<std::shared_ptr<Space>>(&a.is))
    return *space == std::get<std::shared_ptr<Space>>(b.is);
  return a.undefined() || a.none();
}

bool less(const Value& a, const Value& b) {
  if (std::int64_t x = 0, y = 0; a.whole(x) && b.whole(y)) return x < y;
  if (double x = 0, y = 0; a.number(x) && b.number(y)) return x < y;
  if (a.text() != nullptr && b.text() != nullptr) return *a.text() < *b.text();
  const auto *list = a.list(), *other = b.list();
  if (list != nullptr && other != nullptr && list->form == other->form &&
      list->form != List::Form::lazy)
    return std::lexicographical_compare(list->items.begin(), list->items.end(),
                                        other->items.begin(), other->items.end(), less);
  for (const Value* value : {&a, &b})
    if (const auto* nothing = std::get_if<Undefined>(&value->is)) throw Fault(*nothing->why);
  throw Fault(
      fmt::format("values of types {} and {} cannot be compared", type_name(a), type_name(b)));
}

std::vector<Value> elements(const Value& value) {
  if (value.undefined()) return {};
  if (const auto* list = value.list()) return list->items;
  std::vector<Value> items;
  if (const auto* dict = value.dict()) {
    for (const auto& member : dict->members) items.push_back(of_text(member.first));
    return items;
  }
  if (const auto* text = value.text()) {
    for (const auto character : characters(*text)) items.push_back(of_text(std::string(character)));
    return items;
  }
  throw Fault(fmt::format("a value of type {} cannot be iterated", type_name(value)));
}

std::size_t extent(const Value& value) {
  if (const auto* text = value.text()) return 1 + text->size() / 16;
  if (const auto* list = value.list()) return list->extent;
  if (const auto* dict = value.dict()) return dict->extent;
  return 1;
}

std::string to_json(const Value& value, const JsonForm& form) {
  std::string out;
  JsonWriter(form, out).write(value, 0);
  return out;
}

}  // namespace text::chat
