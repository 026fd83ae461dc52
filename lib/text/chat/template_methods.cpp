#include "text/chat/template_run.h"
#include "text/python/python_text.h"

namespace text::chat {
namespace {

using namespace python;

using NameSet = std::set<std::string_view>;

// Members of Python's types that are not supported here, so that messages are true.
const NameSet kOtherMethods = {"encode", "translate", "maketrans", "isidentifier", "isprintable",
    "fromkeys", "hex", "to_bytes", "from_bytes", "bit_length", "as_integer_ratio", "conjugate",
    "fromhex", "bit_count", "is_integer"};
// Names that transformers' sandbox refuses too.
const NameSet kChanging = {"append", "extend", "insert", "pop", "remove", "clear", "update",
    "reverse", "sort", "setdefault", "popitem"};

Value method(const Value& of, const std::string& name) {
  return {std::make_shared<const Function>(
      Function{name, std::make_shared<const Value>(of), nullptr, {}})};
}

Value missing(const Value& of, const std::string& name) {
  return undefined(
      fmt::format("'{} object' has no attribute '{}'", type_name(of), name.substr(0, 100)));
}

std::optional<Value> of_loop(const Loop& loop, const std::string& name) {
  const auto at = static_cast<std::int64_t>(loop.at), size = std::ssize(loop.items->items);
  if (name == "index") return of_whole(at + 1);
  if (name == "index0") return of_whole(at);
  if (name == "revindex") return of_whole(size - at);
  if (name == "revindex0") return of_whole(size - at - 1);
  if (name == "first") return of_bool(at == 0);
  if (name == "last") return of_bool(at + 1 == size);
  if (name == "length") return of_whole(size);
  if (name == "depth") return of_whole(1);  // it counts the calls of a recursive loop
  if (name == "depth0") return of_whole(0);
  if (name == "previtem")
    return at > 0 ? loop.items->items[loop.at - 1] : undefined("there is no previous item");
  if (name == "nextitem")
    return at + 1 < size ? loop.items->items[loop.at + 1] : undefined("there is no next item");
  return std::nullopt;
}

// Returns a method's positional arguments.
class Given {
 public:
  Given(const std::string& name, const Arguments& arguments) : name_(name), arguments_(arguments) {}
  const Value* find(std::size_t place, std::string_view name = "") const {
    const Value* found = arguments_.find(place, name);
    return found == nullptr || found->none() ? nullptr : found;
  }
  const std::string& text(std::size_t place) const {
    if (const std::string* found = text_or_none(place)) return *found;
    throw Fault("{}() takes a text", name_);
  }
  const std::string* text_or_none(std::size_t place, std::string_view name = "") const {
    const Value* found = find(place, name);
    if (found == nullptr) return nullptr;
    if (found->text() == nullptr) throw Fault("{}() takes a text", name_);
    return found->text();
  }
  std::int64_t whole(std::size_t place, std::string_view name, std::int64_t otherwise) const {
    const Value* found = find(place, name);
    std::int64_t number = otherwise;
    if (found != nullptr && !found->whole(number)) throw Fault("{}() takes an integer", name_);
    return number;
  }
  const std::vector<Value>& plain() const { return arguments_.plain; }

 private:
  const std::string& name_;
  const Arguments& arguments_;
};

// A part of a text: from the character `begin` to the character `end`, as find() takes them.
struct Bounded {
  std::string_view text;
  std::size_t before = 0;  // the characters before it
  bool outside = false;    // it begins after the text's end
};
Bounded bounded(const std::string& text, const Given& given, std::size_t place) {
  if (given.find(place) == nullptr && given.find(place + 1) == nullptr) return {text};
  const auto size = static_cast<std::int64_t>(character_count(text));
  const auto bound = [&](std::size_t i, std::int64_t otherwise) {
    const auto at = given.whole(i, "", otherwise);
    return at < 0 ? std::max<std::int64_t>(0, at + size) : at;
  };
  const auto begin = bound(place, 0), end = std::min(bound(place + 1, size), size);
  if (begin > end) return {{}, 0, true};
  const auto from = byte_of(text, static_cast<std::size_t>(begin));
  const auto rest = std::string_view(text).substr(from);
  return {rest.substr(0, byte_of(rest, static_cast<std::size_t>(end - begin))),
      static_cast<std::size_t>(begin)};
}

// The object and the arguments of a method of texts.
struct TextCall {
  Work& work;
  const std::string& text;
  const std::string& name;
  const Given& given;
  const Arguments& arguments;

  Value made(std::string_view part) const { return work.text(part); }
  bool is(std::string_view other) const { return name == other; }
};
Value texts(Work& work, const std::vector<std::string_view>& parts) {
  return work.list(
      core::mapped(parts, [&](auto part) { return work.text(part); }), List::Form::tuple);
}

Value strip_method(const TextCall& c) {
  return c.made(stripped(c.text, c.given.text_or_none(0), !c.is("rstrip"), !c.is("lstrip")));
}

Value split_method(const TextCall& c) {
  std::vector<Value> items;
  const auto put = [&](std::string_view part) {
    c.work.spend(3);
    items.push_back(c.work.text(part));
  };
  const bool back = c.is("rsplit");
  if (c.is("splitlines")) {
    const Value* keep = c.given.find(0, "keepends");
    split_lines(c.text, keep != nullptr && truth(*keep), put);
  } else {
    const auto* separator = c.given.text_or_none(0, "sep");
    if (separator != nullptr && separator->empty()) throw Fault("split() by an empty text");
    split(c.text, separator, c.given.whole(1, "maxsplit", -1), back, put);
  }
  if (back) std::ranges::reverse(items);
  return of_list(std::move(items));
}

Value ends_method(const TextCall& c) {
  const auto part = bounded(c.text, c.given, 1);
  const auto fits = [&](const Value& one) {
    if (one.text() == nullptr) throw Fault("{}() takes a text or a tuple of texts", c.name);
    c.work.read(one);
    if (part.outside) return false;
    return c.is("startswith") ? part.text.starts_with(*one.text())
                              : part.text.ends_with(*one.text());
  };
  const Value* with = c.given.find(0);
  if (with == nullptr) throw Fault("{}() takes a text", c.name);
  const auto* list = with->list();
  if (list == nullptr || list->form != List::Form::tuple) return of_bool(fits(*with));
  return of_bool(std::ranges::any_of(list->items, fits));
}

Value replace_method(const TextCall& c) {
  return of_text(replaced(
      c.text, c.given.text(0), c.given.text(1), c.given.whole(2, "count", -1), c.work.room()));
}

Value find_method(const TextCall& c) {
  const auto part = bounded(c.text, c.given, 1);
  const std::string& wanted = c.given.text(0);
  if (c.is("count"))
    return of_whole(part.outside ? 0 : static_cast<std::int64_t>(count_text(part.text, wanted)));
  const auto at = part.outside       ? part.text.npos
                  : c.name[0] == 'r' ? find_last(part.text, wanted)
                                     : find_text(part.text, wanted);
  if (at != part.text.npos)
    return of_whole(
        static_cast<std::int64_t>(part.before + character_count(part.text.substr(0, at))));
  if (c.name.ends_with("index")) throw Fault("{}(): the text is not there", c.name);
  return of_whole(-1);
}

Value join_method(const TextCall& c) {
  const Value* all = c.given.find(0);
  if (all == nullptr) throw Fault("join() takes a list");
  std::string out;
  bool first = true;
  for (const auto items = elements(c.work, *all); const auto& one : items->items) {
    if (one.text() == nullptr) throw Fault("join() takes a list of texts");
    if (!std::exchange(first, false)) c.work.append(out, c.text);
    c.work.append(out, *one.text());
  }
  return of_text(std::move(out));
}

Value remove_method(const TextCall& c) {
  std::string_view text = c.text;
  const std::string& part = c.given.text(0);
  if (c.is("removeprefix") && text.starts_with(part)) text.remove_prefix(part.size());
  if (c.is("removesuffix") && text.ends_with(part)) text.remove_suffix(part.size());
  return c.made(text);
}

Value partition_method(const TextCall& c) {
  const std::string& part = c.given.text(0);
  const bool back = c.is("rpartition");
  if (part.empty()) throw Fault("partition() by an empty text");
  const std::string_view text = c.text;
  const auto at = back ? find_last(text, part) : find_text(text, part);
  if (at == text.npos) return back ? texts(c.work, {"", "", text}) : texts(c.work, {text, "", ""});
  return texts(c.work, {text.substr(0, at), part, text.substr(at + part.size())});
}

Value zfill_method(const TextCall& c) {
  const bool is_signed = c.text.starts_with('-') || c.text.starts_with('+');
  const auto width = c.given.whole(0, "width", 0) - (is_signed ? 1 : 0);
  const std::string padded_part = padded(c.work, c.text.substr(is_signed ? 1 : 0), width, '>', "0");
  return c.made(is_signed ? c.text.substr(0, 1) + padded_part : padded_part);
}

Value justify_method(const TextCall& c) {
  const std::string* fill = c.given.text_or_none(1);
  if (fill != nullptr && character_count(*fill) != 1)
    throw Fault("{}() fills with one character", c.name);
  const char align = c.is("center") ? '^' : c.is("ljust") ? '<' : '>';
  if (align == '^') {  // of an odd number, Python puts the larger half before a text of even width
    const auto width = c.given.whole(0, "width", 0),
               size = static_cast<std::int64_t>(character_count(c.text));
    const auto more = std::max<std::int64_t>(0, width - size);
    const auto before = more / 2 + (more & width & 1);
    const std::string left = padded(c.work, c.text, size + before, '>', fill ? *fill : " ");
    return c.made(padded(c.work, left, std::max(size, width), '<', fill ? *fill : " "));
  }
  return c.made(padded(c.work, c.text, c.given.whole(0, "width", 0), align, fill ? *fill : " "));
}

Value format_method(const TextCall& c) {
  if (c.is("format")) return brace_format(c.work, c.text, c.arguments);
  const Value* from = c.given.find(0);
  if (from == nullptr || from->dict() == nullptr) throw Fault("format_map() takes a dict");
  Arguments named;
  for (const auto& [key, value] : from->dict()->members)
    if (key.text() != nullptr) named.named.emplace_back(*key.text(), value);
  c.work.read(*from);
  return brace_format(c.work, c.text, named);
}

template <std::string Map(std::string_view)> Value case_method(const TextCall& c) {
  c.work.spend(c.text.size() / 4);  // slower than copying
  return c.made(Map(c.text));
}
template <bool Test(std::uint32_t)> Value test_method(const TextCall& c) {
  return of_bool(all_are(c.text, Test));
}

struct TextMethod {
  Value (*call)(const TextCall&);
  std::size_t least = 0, most = 0;  // arguments
  NameSet named = {};               // those that may be given by name
};
const std::map<std::string_view, TextMethod> kTextMethods = {{"strip", {strip_method, 0, 1}},
    {"lstrip", {strip_method, 0, 1}}, {"rstrip", {strip_method, 0, 1}},
    {"split", {split_method, 0, 2, {"sep", "maxsplit"}}},
    {"rsplit", {split_method, 0, 2, {"sep", "maxsplit"}}},
    {"splitlines", {split_method, 0, 1, {"keepends"}}}, {"startswith", {ends_method, 1, 3}},
    {"endswith", {ends_method, 1, 3}}, {"upper", {case_method<upper>}},
    {"lower", {case_method<lower>}}, {"title", {case_method<titled>}},
    {"capitalize", {case_method<capitalized>}}, {"casefold", {case_method<casefolded>}},
    {"swapcase", {case_method<case_swapped>}}, {"replace", {replace_method, 2, 3}},
    {"find", {find_method, 1, 3}}, {"rfind", {find_method, 1, 3}}, {"index", {find_method, 1, 3}},
    {"rindex", {find_method, 1, 3}}, {"count", {find_method, 1, 3}}, {"join", {join_method, 1, 1}},
    {"removeprefix", {remove_method, 1, 1}}, {"removesuffix", {remove_method, 1, 1}},
    {"partition", {partition_method, 1, 1}}, {"rpartition", {partition_method, 1, 1}},
    {"zfill", {zfill_method, 1, 1}}, {"center", {justify_method, 1, 2}},
    {"ljust", {justify_method, 1, 2}}, {"rjust", {justify_method, 1, 2}},
    {"format", {format_method, 0, SIZE_MAX}}, {"format_map", {format_method, 1, 1}},
    {"expandtabs", {[](const TextCall& c) {
                      return of_text(
                          expanded_tabs(c.text, c.given.whole(0, "tabsize", 8), c.work.room()));
                    },
                       0, 1, {"tabsize"}}},
    {"isdigit", {test_method<is_digit>}}, {"isdecimal", {test_method<is_decimal>}},
    {"isnumeric", {test_method<is_numeric>}}, {"isalpha", {test_method<is_alpha>}},
    {"isalnum", {test_method<is_alnum>}}, {"isspace", {test_method<is_space>}},
    {"isupper", {[](const TextCall& c) { return of_bool(is_of_case(c.text, true)); }}},
    {"islower", {[](const TextCall& c) { return of_bool(is_of_case(c.text, false)); }}},
    {"istitle", {[](const TextCall& c) { return of_bool(is_titled(c.text)); }}},
    {"isascii", {[](const TextCall& c) {
       return of_bool(
           std::ranges::all_of(c.text, [](char x) { return static_cast<unsigned char>(x) < 128; }));
     }}}};

Value dict_method(Work& work, const Value& self, const std::string& name, const Given& given) {
  const Dict& dict = *self.dict();
  if (name == "get") {
    const Value* key = given.find(0);
    work.spend(1 + (key != nullptr ? extent(*key) : 0));
    const Value nothing{None{}};
    const Value* found = dict.find(key != nullptr ? *key : nothing);
    if (found != nullptr) return *found;
    return given.plain().size() > 1 ? given.plain()[1] : nothing;
  }
  if (name == "copy") return self;
  work.spend((name == "items" ? 12 : 3) * dict.members.size());
  std::vector<Value> items;
  for (const auto& [key, value] : dict.members)
    items.push_back(name == "keys"     ? key
                    : name == "values" ? value
                                       : of_list({key, value}, List::Form::tuple));
  return of_list(std::move(items), List::Form::view);
}

bool has_method(const Value& of, std::string_view name) {
  static const NameSet kOfDict = {"get", "items", "keys", "values", "copy"},
                       kOfList = {"index", "count", "copy"}, kOfTuple = {"index", "count"};
  if (of.text() != nullptr) return kTextMethods.count(name) > 0;
  if (of.dict() != nullptr) return kOfDict.count(name) > 0;
  const auto* list = of.list();
  if (list == nullptr || list->form >= List::Form::view) return false;
  return (list->form == List::Form::list ? kOfList : kOfTuple).count(name) > 0;
}

}  // namespace

const Value* Arguments::find(std::size_t place, std::string_view name) const {
  if (place < plain.size()) return &plain[place];
  for (const auto& [own, value] : named)
    if (!name.empty() && own == name) return &value;
  return nullptr;
}

Value attribute(Work& work, const Value& of, const std::string& name) {
  expect_defined(of);
  if (const auto* space = std::get_if<std::shared_ptr<Space>>(&of.is)) {
    const auto found = (*space)->members.find(name);
    if (found != (*space)->members.end()) return found->second;
    work.spend(kStepsOfObject);
    return undefined(fmt::format("the namespace has no member '{}'", name.substr(0, 100)));
  }
  if (const auto* loop = std::get_if<std::shared_ptr<const Loop>>(&of.is)) {
    if (name == "cycle") return method(of, name);
    if (auto found = of_loop(**loop, name)) return *std::move(found);
    throw Fault("loop.{} is not supported", name);
  }
  if (!has_method(of, name)) {
    const bool changes = of.text() == nullptr && kChanging.count(name) > 0 &&
                         (of.dict() != nullptr || of.list() != nullptr);
    const auto* found = of.dict() != nullptr ? of.dict()->find(name) : nullptr;
    if (found != nullptr && !changes) return *found;
    if (changes)
      throw Fault("the method {} changes a {}, which is not supported in a chat template", name,
          type_name(of));
    work.spend(kStepsOfObject);
    if (kOtherMethods.count(name) > 0)
      return undefined(fmt::format("{} of {} is not supported", name, type_name(of)));
    return missing(of, name);
  }
  work.spend(kStepsOfObject);
  return method(of, name);
}

Value item(Work& work, const Value& of, const Value& key) {
  expect_defined(of);
  work.read(key);
  if (const auto* dict = of.dict()) {
    const bool is_key =
        key.dict() == nullptr && (key.list() == nullptr || key.list()->form == List::Form::tuple);
    if (const Value* found = is_key ? dict->find(key) : nullptr) return *found;
  }
  const auto* list = of.list();
  std::int64_t at = 0;
  if (key.whole(at) && list != nullptr && list->form < List::Form::view) {
    const auto size = std::ssize(list->items), place = at < 0 ? at + size : at;
    if (place >= 0 && place < size) return list->items[static_cast<std::size_t>(place)];
  } else if (key.whole(at) && of.text() != nullptr) {
    work.read(of);
    std::string_view text = *of.text();
    if (at < 0) at += static_cast<std::int64_t>(character_count(text));
    if (at >= 0) text.remove_prefix(byte_of(text, static_cast<std::size_t>(at)));
    if (at >= 0 && !text.empty()) return work.text(text.substr(0, byte_of(text, 1)));
  } else if (key.text() != nullptr) {
    return attribute(work, of, *key.text());
  }
  work.spend(kStepsOfObject);
  return undefined(key.whole(at) ? fmt::format("'{} object' has no element {}", type_name(of), at)
                                 : fmt::format("'{} object' has no such element", type_name(of)));
}

Value call_method(
    Work& work, const Value& self, const std::string& name, const Arguments& arguments) {
  const Given given(name, arguments);
  if (const auto* text = self.text()) {
    const auto& method = kTextMethods.at(name);
    const auto n = arguments.plain.size() + arguments.named.size();
    if (n < method.least || n > method.most)
      throw Fault("{}() does not take {} argument{}", name, n, n == 1 ? "" : "s");
    for (const auto& [own, value] : arguments.named)
      if (name != "format" && method.named.count(own) == 0)
        throw Fault("{}() takes no argument by the name {}", name, own.substr(0, 100));
    work.read(self);
    for (const auto& one : arguments.plain)
      if (one.text() != nullptr) work.read(one);
    return method.call({work, *text, name, given, arguments});
  }
  if (self.dict() != nullptr) return dict_method(work, self, name, given);
  if (const auto* loop = std::get_if<std::shared_ptr<const Loop>>(&self.is)) {
    if (arguments.plain.empty()) throw Fault("loop.cycle() takes values");
    return arguments.plain[(*loop)->at % arguments.plain.size()];
  }
  const auto& items = self.list()->items;
  if (name == "copy") return self;
  if (arguments.plain.empty()) throw Fault("{}() takes a value", name);
  const Value& one = arguments.plain[0];
  work.read(self);
  const auto is_equal = [&](const Value& v) { return equal(v, one); };
  if (name == "count") return of_whole(std::ranges::count_if(items, is_equal));
  const auto found = std::ranges::find_if(items, is_equal);
  if (found == items.end()) throw Fault("index(): the value is not in the list");
  return of_whole(found - items.begin());
}

}  // namespace text::chat
