#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "text/chat/template_calls.h"
#include "text/chat/template_text.h"

namespace text::chat {
namespace {

using Names = std::set<std::string_view>;

const Names kTextMethods = {"strip",        "lstrip",     "rstrip",    "split",     "rsplit",
                            "splitlines",   "startswith", "endswith",  "upper",     "lower",
                            "title",        "capitalize", "replace",   "find",      "rfind",
                            "index",        "count",      "join",      "isdigit",   "isalpha",
                            "isalnum",      "isspace",    "isupper",   "islower",   "removeprefix",
                            "removesuffix", "zfill",      "partition", "rpartition"};
const Names kDictMethods = {"get", "items", "keys", "values", "copy"};
const Names kListMethods = {"index", "count", "copy"};
// Names that transformers' sandbox refuses too.
const Names kChanging = {"append", "extend",  "insert", "pop",        "remove", "clear",
                         "update", "reverse", "sort",   "setdefault", "popitem"};

Value method(const Value& of, const std::string& name) {
  return {std::make_shared<const Function>(
      Function{name, std::make_shared<const Value>(of), nullptr, {}})};
}

const Names* methods_of(const Value& value) {
  if (value.text() != nullptr) return &kTextMethods;
  if (value.dict() != nullptr) return &kDictMethods;
  const auto* list = value.list();
  return list != nullptr && list->form != List::Form::lazy ? &kListMethods : nullptr;
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
  if (name == "depth") return of_whole(loop.depth);
  if (name == "depth0") return of_whole(loop.depth - 1);
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
    const Value* found = find(place);
    if (found == nullptr || found->text() == nullptr)
      throw Fault(fmt::format("{}() takes a text", name_));
    return *found->text();
  }
  const std::string* text_or_none(std::size_t place, std::string_view name = "") const {
    const Value* found = find(place, name);
    if (found == nullptr) return nullptr;
    if (found->text() == nullptr) throw Fault(fmt::format("{}() takes a text", name_));
    return found->text();
  }
  std::int64_t whole(std::size_t place, std::string_view name, std::int64_t otherwise) const {
    const Value* found = find(place, name);
    std::int64_t number = otherwise;
    if (found != nullptr && !found->whole(number))
      throw Fault(fmt::format("{}() takes an integer", name_));
    return number;
  }
  const std::vector<Value>& plain() const { return arguments_.plain; }

 private:
  const std::string& name_;
  const Arguments& arguments_;
};

bool begins_or_ends(const std::string& text, const Given& given, bool begins) {
  const Value* with = given.find(0);
  const auto fits = [&](const Value& one) {
    if (one.text() == nullptr) throw Fault("startswith() and endswith() take texts");
    return begins ? text.starts_with(*one.text()) : text.ends_with(*one.text());
  };
  if (with != nullptr && with->list() != nullptr)
    return std::any_of(with->list()->items.begin(), with->list()->items.end(), fits);
  given.text(0);
  return fits(*with);
}

Value texts(Work& work, const std::vector<std::string>& parts, List::Form form = List::Form::list) {
  std::vector<Value> items;
  for (const auto& part : parts) items.push_back(work.text(part));
  return of_list(std::move(items), form);
}

Value text_method(Work& work, const std::string& text, const std::string& name,
                  const Given& given) {
  work.spend(1 + text.size() / 16);
  const auto made = [&](std::string_view part) { return work.text(std::string(part)); };
  if (name == "strip" || name == "lstrip" || name == "rstrip")
    return made(stripped(text, given.text_or_none(0), name != "rstrip", name != "lstrip"));
  if (name == "split" || name == "rsplit") {
    const auto* separator = given.text_or_none(0, "sep");
    if (separator != nullptr && separator->empty()) throw Fault("split() by an empty text");
    return texts(work, split(text, separator, given.whole(1, "maxsplit", -1), name == "rsplit"));
  }
  if (name == "splitlines") {
    const Value* keep = given.find(0, "keepends");
    return texts(work, split_lines(text, keep != nullptr && truth(*keep)));
  }
  if (name == "startswith" || name == "endswith")
    return of_bool(begins_or_ends(text, given, name == "startswith"));
  if (name == "upper") return made(upper(text));
  if (name == "lower") return made(lower(text));
  if (name == "title") return made(titled(text));
  if (name == "capitalize") return made(capitalized(text));
  if (name == "replace") {
    const std::string &from = given.text(0), &to = given.text(1);
    const auto most = given.whole(2, "count", -1);
    if (to.size() > from.size())
      work.expect_room(static_cast<double>(text.size() + 1) * static_cast<double>(to.size() + 1) /
                       static_cast<double>(std::max<std::size_t>(1, from.size())));
    return made(replaced(text, from, to, most));
  }
  if (name == "find" || name == "rfind" || name == "index") {
    if (given.find(1) != nullptr)
      throw Fault(fmt::format("{}() with bounds is not supported", name));
    const auto at = name == "rfind" ? text.rfind(given.text(0)) : text.find(given.text(0));
    if (at != text.npos)
      return of_whole(
          static_cast<std::int64_t>(character_count(std::string_view(text).substr(0, at))));
    if (name == "index") throw Fault("index(): the text is not there");
    return of_whole(-1);
  }
  if (name == "count") {
    const std::string& part = given.text(0);
    if (part.empty()) return of_whole(static_cast<std::int64_t>(character_count(text)) + 1);
    std::int64_t n = 0;
    for (std::size_t at = 0; (at = text.find(part, at)) != text.npos; at += part.size()) ++n;
    return of_whole(n);
  }
  if (name == "join") {
    const Value* all = given.find(0);
    if (all == nullptr) throw Fault("join() takes a list");
    std::string out;
    bool first = true;
    for (const auto& one : elements(*all)) {
      if (one.text() == nullptr) throw Fault("join() takes a list of texts");
      if (!std::exchange(first, false)) out += text;
      out += *one.text();
      work.expect_room(static_cast<double>(out.size()));
      work.spend(1 + (one.text()->size() + text.size()) / 16);
    }
    return made(out);
  }
  if (name == "removeprefix" || name == "removesuffix") {
    const bool front = name == "removeprefix";
    const std::string& part = given.text(0);
    const bool has = front ? text.starts_with(part) : text.ends_with(part);
    return made(
        has ? std::string_view(text).substr(front ? part.size() : 0, text.size() - part.size())
            : text);
  }
  if (name == "partition" || name == "rpartition") {
    const std::string& part = given.text(0);
    const bool back = name == "rpartition";
    if (part.empty()) throw Fault("partition() by an empty text");
    const auto at = back ? text.rfind(part) : text.find(part);
    if (at == text.npos)
      return back ? texts(work, {"", "", text}, List::Form::tuple)
                  : texts(work, {text, "", ""}, List::Form::tuple);
    return texts(work, {text.substr(0, at), part, text.substr(at + part.size())},
                 List::Form::tuple);
  }
  if (name == "zfill") {
    const auto width = given.whole(0, "width", 0),
               size = static_cast<std::int64_t>(character_count(text));
    work.expect_room(static_cast<double>(width));
    const std::string zeros(static_cast<std::size_t>(std::max<std::int64_t>(0, width - size)), '0');
    const bool is_signed = text.starts_with('-') || text.starts_with('+');
    return made(is_signed ? text.substr(0, 1) + zeros + text.substr(1) : zeros + text);
  }
  static const std::pair<std::string_view, CharTest> kChecks[] = {
      {"isdigit", CharTest::digit}, {"isalpha", CharTest::letter}, {"isalnum", CharTest::alnum},
      {"isspace", CharTest::space}, {"isupper", CharTest::upper},  {"islower", CharTest::lower}};
  for (const auto& [check, test] : kChecks)
    if (name == check) return of_bool(all_are(text, test));
  throw Fault(fmt::format("the method {} of a text is not supported", name));
}

Value dict_method(Work& work, const Value& self, const std::string& name, const Given& given) {
  const Dict& dict = *self.dict();
  work.spend(1 + dict.members.size());
  if (name == "get") {
    const Value* key = given.find(0, "key");
    const Value* found =
        key != nullptr && key->text() != nullptr ? dict.find(*key->text()) : nullptr;
    if (found != nullptr) return *found;
    return given.plain().size() > 1 ? given.plain()[1] : Value{None{}};
  }
  if (name == "copy") return self;
  std::vector<Value> items;
  for (const auto& [key, value] : dict.members) {
    if (name == "keys") {
      items.push_back(of_text(key));
    } else if (name == "values") {
      items.push_back(value);
    } else {
      items.push_back(of_list({of_text(key), value}, List::Form::tuple));
    }
  }
  return of_list(std::move(items));
}

}  // namespace

const Value* Arguments::find(std::size_t place, std::string_view name) const {
  if (place < plain.size()) return &plain[place];
  for (const auto& [own, value] : named)
    if (!name.empty() && own == name) return &value;
  return nullptr;
}

Value attribute(const Value& of, const std::string& name) {
  if (const auto* nothing = std::get_if<Undefined>(&of.is)) throw Fault(*nothing->why);
  if (const auto* space = std::get_if<std::shared_ptr<Space>>(&of.is)) {
    const Value* found = (*space)->find(name);
    return found != nullptr
               ? *found
               : undefined(fmt::format("the namespace has no member '{}'", name.substr(0, 100)));
  }
  if (const auto* loop = std::get_if<std::shared_ptr<const Loop>>(&of.is)) {
    if (name == "cycle") return method(of, name);
    if (auto found = of_loop(**loop, name)) return *std::move(found);
    throw Fault(fmt::format("loop.{} is not supported", name));
  }
  if (const auto* methods = methods_of(of)) {
    if (methods->count(name) > 0) return method(of, name);
    const bool changes = of.text() == nullptr && kChanging.count(name) > 0;
    if (const auto* found = of.dict() != nullptr ? of.dict()->find(name) : nullptr;
        found != nullptr && !changes)
      return *found;
    if (changes)
      throw Fault(
          fmt::format("the method {} changes a {}, which is not supported in a chat template", name,
                      type_name(of)));
  }
  return missing(of, name);
}

Value item(const Value& of, const Value& key) {
  if (const auto* nothing = std::get_if<Undefined>(&of.is)) throw Fault(*nothing->why);
  if (const auto* dict = of.dict(); dict != nullptr && key.text() != nullptr) {
    const Value* found = dict->find(*key.text());
    return found != nullptr ? *found : missing(of, *key.text());
  }
  if (std::int64_t at = 0; key.whole(at)) {
    const auto* list = of.list();
    std::vector<std::string_view> all;
    if (of.text() != nullptr) all = characters(*of.text());
    const auto size = list != nullptr && list->form != List::Form::lazy ? std::ssize(list->items)
                                                                        : std::ssize(all);
    if (at < 0) at += size;
    if (at < 0 || at >= size)
      return undefined(fmt::format("'{} object' has no element {}", type_name(of), at));
    return list != nullptr ? list->items[static_cast<std::size_t>(at)]
                           : of_text(std::string(all[static_cast<std::size_t>(at)]));
  }
  if (key.text() != nullptr && of.dict() == nullptr) return attribute(of, *key.text());
  return undefined(fmt::format("'{} object' has no such element", type_name(of)));
}

Value call_method(Work& work, const Value& self, const std::string& name,
                  const Arguments& arguments) {
  const Given given(name, arguments);
  if (const auto* text = self.text()) return text_method(work, *text, name, given);
  if (self.dict() != nullptr) return dict_method(work, self, name, given);
  if (const auto* loop = std::get_if<std::shared_ptr<const Loop>>(&self.is)) {
    if (arguments.plain.empty()) throw Fault("loop.cycle() takes values");
    return arguments.plain[(*loop)->at % arguments.plain.size()];
  }
  const auto& items = self.list()->items;
  if (name == "copy") return self;
  const Value* one = given.find(0);
  if (one == nullptr) throw Fault(fmt::format("{}() takes a value", name));
  work.read(self);
  if (name == "count")
    return of_whole(
        std::count_if(items.begin(), items.end(), [&](const Value& v) { return equal(v, *one); }));
  const auto found =
      std::find_if(items.begin(), items.end(), [&](const Value& v) { return equal(v, *one); });
  if (found == items.end()) throw Fault("index(): the value is not in the list");
  return of_whole(found - items.begin());
}

}  // namespace text::chat
