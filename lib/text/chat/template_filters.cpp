#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <map>
#include <optional>

#include "text/chat/template_calls.h"
#include "text/chat/template_text.h"

namespace text::chat {
namespace {

// The arguments of a filter.
struct Filtered {
  Work& work;
  const std::string& name;
  const Value& value;
  const Arguments& arguments;

  const Value* find(std::size_t place, std::string_view of) const {
    return arguments.find(place, of);
  }
  bool flag(std::size_t place, std::string_view of, bool otherwise) const {
    const Value* found = find(place, of);
    return found == nullptr ? otherwise : truth(*found);
  }
  std::int64_t whole(std::size_t place, std::string_view of, std::int64_t otherwise) const {
    const Value* found = find(place, of);
    std::int64_t number = otherwise;
    if (found != nullptr && !found->none() && !found->whole(number))
      throw Fault(fmt::format("the filter {}: {} is not an integer", name, of));
    return number;
  }
  std::string shown(std::size_t place, std::string_view of) const {
    const Value* found = find(place, of);
    if (found == nullptr) throw Fault(fmt::format("the filter {}: {} is missing", name, of));
    return printed(*found);
  }
  std::string text() const { return printed(value); }
  Value made(std::string text) const { return work.text(std::move(text)); }
  std::vector<Value> items() const { return elements(value); }
};

// Returns the values at a path such as map(attribute="a.b.0").
Value at_path(Value value, const Value& path) {
  if (path.text() == nullptr) return item(value, path);
  const std::string dot = ".";
  for (const auto& part : split(*path.text(), &dot, -1, false)) {
    const bool digits =
        !part.empty() && part.find_first_not_of("0123456789") == part.npos && part.size() < 10;
    if (value.undefined()) return value;
    value = item(value, digits ? of_whole(std::stoll(part)) : of_text(part));
  }
  return value;
}

Arguments rest_of(const Arguments& arguments, std::size_t from) {
  Arguments rest;
  for (std::size_t i = from; i < arguments.plain.size(); ++i)
    rest.plain.push_back(arguments.plain[i]);
  rest.named = arguments.named;
  return rest;
}

// Ignores case unless the filter is case sensitive.
Value folded(const Value& value, bool case_sensitive) {
  return case_sensitive || value.text() == nullptr ? value : of_text(lower(*value.text()));
}

Value sorted(const Filtered& f, const std::function<Value(const Value&)>& key) {
  auto items = f.items();
  for (std::size_t i = 1, log = 1; i < items.size(); i *= 2, ++log) f.work.spend(items.size());
  f.work.spend(extent(f.value));
  std::vector<std::pair<Value, Value>> keyed;
  for (auto& one : items) keyed.emplace_back(key(one), one);
  const bool down = f.flag(0, "reverse", false);
  // The sort is stable, also in reverse, as Python's sorted() is.
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
    return down ? less(b.first, a.first) : less(a.first, b.first);
  });
  items.clear();
  for (auto& [of, one] : keyed) items.push_back(std::move(one));
  return of_list(std::move(items));
}

Value sort_filter(const Filtered& f) {
  const bool exact = f.flag(1, "case_sensitive", false);
  const Value* path = f.find(2, "attribute");
  return sorted(f, [&](const Value& one) {
    return folded(path == nullptr || path->none() ? one : at_path(one, *path), exact);
  });
}

Value dictsort(const Filtered& f) {
  if (f.value.dict() == nullptr) throw Fault("the filter dictsort takes a dict");
  const bool exact = f.flag(0, "case_sensitive", false), down = f.flag(2, "reverse", false);
  const Value* by = f.find(1, "by");
  const std::int64_t place =
      by != nullptr && by->text() != nullptr && *by->text() == "value" ? 1 : 0;
  std::vector<Value> pairs;
  for (const auto& [key, value] : f.value.dict()->members)
    pairs.push_back(of_list({of_text(key), value}, List::Form::tuple));
  const Value all = of_list(std::move(pairs));
  const Arguments how{{of_bool(down)}, {}};
  return sorted({f.work, f.name, all, how},
                [&](const Value& one) { return folded(item(one, of_whole(place)), exact); });
}

Value unique(const Filtered& f) {
  const bool exact = f.flag(0, "case_sensitive", false);
  const Value* path = f.find(1, "attribute");
  std::vector<Value> seen, kept;
  for (const auto& one : f.items()) {
    const Value key = folded(path == nullptr || path->none() ? one : at_path(one, *path), exact);
    bool there = false;
    for (const auto& other : seen) {
      f.work.spend(std::min(extent(key), extent(other)));
      there = there || equal(key, other);
      if (there) break;
    }
    if (there) continue;
    seen.push_back(key);
    kept.push_back(one);
  }
  return of_list(std::move(kept), List::Form::lazy);
}

Value map_filter(const Filtered& f) {
  std::vector<Value> made;
  if (const Value* path = f.find(f.arguments.plain.size(), "attribute")) {
    const Value* otherwise = f.find(f.arguments.plain.size(), "default");
    for (const auto& one : f.items()) {
      made.push_back(at_path(one, *path));
      if (made.back().undefined() && otherwise != nullptr) made.back() = *otherwise;
    }
    return of_list(std::move(made), List::Form::lazy);
  }
  if (f.arguments.plain.empty() || f.arguments.plain[0].text() == nullptr)
    throw Fault("map takes a filter's name or attribute=...");
  const Arguments rest = rest_of(f.arguments, 1);
  for (const auto& one : f.items())
    made.push_back(apply_filter(f.work, *f.arguments.plain[0].text(), one, rest));
  return of_list(std::move(made), List::Form::lazy);
}

// Implements select, reject, selectattr and rejectattr.
Value choose(const Filtered& f, bool by_attribute, bool wanted) {
  std::size_t from = 0;
  const Value* path = nullptr;
  if (by_attribute) {
    if (f.arguments.plain.empty())
      throw Fault(fmt::format("{} takes the name of an attribute", f.name));
    path = &f.arguments.plain[from++];
  }
  const Value* test = f.find(from, "");
  if (test != nullptr && test->text() == nullptr)
    throw Fault(fmt::format("{}: takes the name of a test", f.name));
  const Arguments rest = rest_of(f.arguments, from + 1);
  std::vector<Value> kept;
  for (const auto& one : f.items()) {
    f.work.spend(1);
    const Value of = path != nullptr ? at_path(one, *path) : one;
    const bool holds = test == nullptr ? truth(of) : apply_test(f.work, *test->text(), of, rest);
    if (holds == wanted) kept.push_back(one);
  }
  return of_list(std::move(kept), List::Form::lazy);
}

Value json_filter(const Filtered& f) {
  JsonForm form;
  form.ascii = f.flag(0, "ensure_ascii", false);
  const Value* indent = f.find(1, "indent");
  if (indent != nullptr && !indent->none()) {
    std::int64_t width = 0;
    if (!indent->whole(width) || width < 0 || width > 64)
      throw Fault("tojson: indent takes 0 to 64");
    form.indent = static_cast<int>(width);
    form.comma = ",";
  }
  if (const Value* separators = f.find(2, "separators");
      separators != nullptr && !separators->none()) {
    const auto* list = separators->list();
    if (list == nullptr || list->items.size() != 2 || list->items[0].text() == nullptr ||
        list->items[1].text() == nullptr)
      throw Fault("tojson: separators takes two texts");
    form.comma = *list->items[0].text();
    form.colon = *list->items[1].text();
  }
  form.sorted = f.flag(3, "sort_keys", false);
  const auto elements = static_cast<double>(extent(f.value));
  f.work.expect_room(elements * static_cast<double>(std::max(0, form.indent) + 1));
  f.work.expect_room(elements * static_cast<double>(form.comma.size() + form.colon.size()));
  return f.made(to_json(f.value, form));
}

Value indent_filter(const Filtered& f) {
  const Value* width = f.find(0, "width");
  std::string by(4, ' ');
  if (width != nullptr && width->text() != nullptr) {
    by = *width->text();
  } else {
    const auto n = f.whole(0, "width", 4);
    f.work.expect_room(static_cast<double>(n));
    by.assign(static_cast<std::size_t>(std::max<std::int64_t>(0, n)), ' ');
  }
  const bool first = f.flag(1, "first", false), blank = f.flag(2, "blank", false);
  const auto lines = split_lines(f.text() + "\n", false);
  f.work.expect_room(static_cast<double>(lines.size()) * static_cast<double>(by.size()));
  std::string out = first ? by : "";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out += '\n';
    if (i > 0 && (blank || !lines[i].empty())) out += by;
    out += lines[i];
  }
  return f.made(std::move(out));
}

std::optional<double> read_number(std::string text) {
  std::erase(text, '_');
  const std::string bare(stripped(text, nullptr, true, true));
  const char* begin = bare.data() + (bare.starts_with('+') ? 1 : 0);
  double number = 0;
  const auto [end, error] = std::from_chars(begin, bare.data() + bare.size(), number);
  if (bare.empty() || error != std::errc() || end != bare.data() + bare.size()) return std::nullopt;
  return number;
}

Value int_filter(const Filtered& f) {
  const Value* otherwise = f.find(0, "default");
  Value fallback = otherwise != nullptr ? *otherwise : of_whole(0);
  const auto base = f.whole(1, "base", 10);
  if (base != 10) throw Fault("the filter int with a base is not supported");
  if (std::int64_t n = 0; f.value.whole(n)) return of_whole(n);
  std::optional<double> number;
  if (double real = 0; f.value.number(real)) number = real;
  if (const auto* text = f.value.text()) {
    const std::string bare(stripped(*text, nullptr, true, true));
    std::int64_t n = 0;
    const char* begin = bare.data() + (bare.starts_with('+') ? 1 : 0);
    const auto [end, error] = std::from_chars(begin, bare.data() + bare.size(), n);
    if (!bare.empty() && error == std::errc() && end == bare.data() + bare.size())
      return of_whole(n);
    number = read_number(*text);
  }
  if (!number || !(std::abs(*number) < 9e18)) return fallback;
  return of_whole(static_cast<std::int64_t>(*number));
}

Value float_filter(const Filtered& f) {
  const Value* otherwise = f.find(0, "default");
  if (double real = 0; f.value.number(real)) return {real};
  if (f.value.text() != nullptr)
    if (const auto number = read_number(*f.value.text())) return {*number};
  return otherwise != nullptr ? *otherwise : Value{0.0};
}

Value round_filter(const Filtered& f) {
  const auto places = f.whole(0, "precision", 0);
  const Value* given = f.find(1, "method");
  const std::string method = given != nullptr ? printed(*given) : "common";
  double number = 0;
  if (!f.value.number(number)) throw Fault("the filter round takes a number");
  if (places < 0 || places > 15) throw Fault("round: precision takes 0 to 15");
  const double scale = std::pow(10.0, static_cast<double>(places));
  if (method == "ceil") return {std::ceil(number * scale) / scale};
  if (method == "floor") return {std::floor(number * scale) / scale};
  if (method != "common") throw Fault("round: method takes common, ceil or floor");
  if (f.value.holds<std::int64_t>()) return f.value;
  if (!std::isfinite(number)) return f.value;
  return {std::strtod(fmt::format("{:.{}f}", number, places).c_str(), nullptr)};
}

Value abs_filter(const Filtered& f) {
  double number = 0;
  if (!f.value.number(number)) throw Fault("the filter abs takes a number");
  return number < 0 ? negative(f.value) : f.value;
}

Value join_filter(const Filtered& f) {
  const Value* between = f.find(0, "d");
  const std::string separator = between != nullptr ? printed(*between) : "";
  const Value* path = f.find(1, "attribute");
  std::string out;
  bool first = true;
  for (const auto& one : f.items()) {
    const Value value = path != nullptr && !path->none() ? at_path(one, *path) : one;
    f.work.spend(1 + extent(value) + separator.size() / 16);
    if (!std::exchange(first, false)) out += separator;
    out += printed(value);
    f.work.expect_room(static_cast<double>(out.size()));
  }
  return f.made(std::move(out));
}

Value length_filter(const Filtered& f) {
  if (f.value.undefined()) return of_whole(0);
  if (f.value.text() != nullptr)
    return of_whole(static_cast<std::int64_t>(character_count(*f.value.text())));
  if (f.value.dict() != nullptr) return of_whole(std::ssize(f.value.dict()->members));
  const auto* list = f.value.list();
  if (list == nullptr || list->form == List::Form::lazy)
    throw Fault(fmt::format("a value of type {} has no length", type_name(f.value)));
  return of_whole(std::ssize(list->items));
}

Value end_filter(const Filtered& f, bool first) {
  const auto* list = f.value.list();
  if (!first && list != nullptr && list->form == List::Form::lazy)
    throw Fault("the filter last does not take a generator; apply | list first");
  const auto items = f.items();
  if (items.empty()) return undefined("there is no such item: the list is empty");
  return first ? items.front() : items.back();
}

Value reverse_filter(const Filtered& f) {
  auto items = f.items();
  std::reverse(items.begin(), items.end());
  if (f.value.text() == nullptr) return of_list(std::move(items), List::Form::lazy);
  std::string out;
  for (const auto& one : items) out += *one.text();
  return f.made(std::move(out));
}

Value extreme(const Filtered& f, bool most) {
  const auto items = f.items();
  if (items.empty()) return undefined("there is no such item: the list is empty");
  const bool exact = f.flag(0, "case_sensitive", false);
  const auto key = [&](const Value& one) { return folded(one, exact); };
  const Value* best = items.data();
  for (const auto& one : items)
    if (most ? less(key(*best), key(one)) : less(key(one), key(*best))) best = &one;
  return *best;
}

Value sum_filter(const Filtered& f) {
  const Value* path = f.find(0, "attribute");
  const Value* start = f.find(1, "start");
  Value sum = start != nullptr ? *start : of_whole(0);
  for (const auto& one : f.items())
    sum = operate(f.work, "+", sum, path != nullptr && !path->none() ? at_path(one, *path) : one);
  return sum;
}

Value items_filter(const Filtered& f) {
  if (f.value.undefined()) return of_list({}, List::Form::lazy);
  if (f.value.dict() == nullptr) throw Fault("the filter items takes a dict");
  const Value pairs = call_method(f.work, f.value, "items", {});
  return of_list(pairs.list()->items, List::Form::lazy);
}

Value escape_filter(const Filtered& f) {
  std::string out;
  for (const char c : f.text()) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '\'')
      out += "&#39;";
    else if (c == '"')
      out += "&#34;";
    else
      out += c;
  }
  return f.made(std::move(out));
}

Value replace_filter(const Filtered& f) {
  const std::string text = f.text(), from = f.shown(0, "old"), to = f.shown(1, "new");
  if (to.size() > from.size())
    f.work.expect_room(static_cast<double>(text.size() + 1) * static_cast<double>(to.size() + 1) /
                       static_cast<double>(std::max<std::size_t>(1, from.size())));
  return f.made(replaced(text, from, to, f.whole(2, "count", -1)));
}

Value trim_filter(const Filtered& f) {
  const Value* chars = f.find(0, "chars");
  if (chars != nullptr && !chars->none() && chars->text() == nullptr)
    throw Fault("trim takes a text");
  const std::string text = f.text();
  return f.made(
      std::string(stripped(text, chars != nullptr ? chars->text() : nullptr, true, true)));
}

Value default_filter(const Filtered& f) {
  const bool falls = f.value.undefined() || (f.flag(1, "boolean", false) && !truth(f.value));
  if (!falls) return f.value;
  const Value* otherwise = f.find(0, "default_value");
  return otherwise != nullptr ? *otherwise : of_text("");
}

using FilterCall = Value (*)(const Filtered&);
const std::map<std::string_view, FilterCall>& filters() {
  static const std::map<std::string_view, FilterCall> kFilters = {
      {"abs", abs_filter},
      {"attr", [](const Filtered& f) { return attribute(f.value, f.shown(0, "name")); }},
      {"capitalize", [](const Filtered& f) { return f.made(capitalized(f.text())); }},
      {"count", length_filter},
      {"d", default_filter},
      {"default", default_filter},
      {"dictsort", dictsort},
      {"e", escape_filter},
      {"escape", escape_filter},
      {"first", [](const Filtered& f) { return end_filter(f, true); }},
      {"float", float_filter},
      {"indent", indent_filter},
      {"int", int_filter},
      {"items", items_filter},
      {"join", join_filter},
      {"last", [](const Filtered& f) { return end_filter(f, false); }},
      {"length", length_filter},
      {"list", [](const Filtered& f) { return of_list(f.items()); }},
      {"lower", [](const Filtered& f) { return f.made(lower(f.text())); }},
      {"map", map_filter},
      {"max", [](const Filtered& f) { return extreme(f, true); }},
      {"min", [](const Filtered& f) { return extreme(f, false); }},
      {"reject", [](const Filtered& f) { return choose(f, false, false); }},
      {"rejectattr", [](const Filtered& f) { return choose(f, true, false); }},
      {"replace", replace_filter},
      {"reverse", reverse_filter},
      {"round", round_filter},
      {"safe", [](const Filtered& f) { return f.made(f.text()); }},
      {"select", [](const Filtered& f) { return choose(f, false, true); }},
      {"selectattr", [](const Filtered& f) { return choose(f, true, true); }},
      {"sort", sort_filter},
      {"string", [](const Filtered& f) { return f.made(f.text()); }},
      {"sum", sum_filter},
      {"title", [](const Filtered& f) { return f.made(title_words(f.text())); }},
      {"tojson", json_filter},
      {"trim", trim_filter},
      {"unique", unique},
      {"upper", [](const Filtered& f) { return f.made(upper(f.text())); }},
      {"wordcount",
       [](const Filtered& f) { return of_whole(std::ssize(split(f.text(), nullptr, -1, false))); }},
  };
  return kFilters;
}

bool is_text_of(const Value& value, CharTest test) { return all_are(printed(value), test); }

const Value& only(const std::string& name, const Arguments& arguments) {
  if (arguments.plain.size() != 1) throw Fault(fmt::format("the test {} takes one value", name));
  return arguments.plain[0];
}

std::int64_t integer(const std::string& name, const Value& value) {
  std::int64_t number = 0;
  if (!value.whole(number)) throw Fault(fmt::format("the test {} takes integers", name));
  return number;
}

}  // namespace

Value apply_filter(Work& work, const std::string& name, const Value& value,
                   const Arguments& arguments) {
  const auto found = filters().find(name);
  if (found == filters().end())
    throw Fault(fmt::format("the filter {} is not supported", name.substr(0, 100)));
  work.spend(1);
  work.read(value);
  return found->second({work, name, value, arguments});
}

bool apply_test(Work& work, const std::string& name, const Value& value,
                const Arguments& arguments) {
  work.spend(1);
  if (name == "defined") return !value.undefined();
  if (name == "undefined") return value.undefined();
  if (name == "none") return value.none();
  if (name == "string") return value.text() != nullptr;
  if (name == "mapping") return value.dict() != nullptr;
  if (name == "boolean") return value.holds<bool>();
  if (name == "true") return value.holds<bool>() && truth(value);
  if (name == "false") return value.holds<bool>() && !truth(value);
  if (name == "integer") return value.holds<std::int64_t>();
  if (name == "float") return value.holds<double>();
  if (name == "number")
    return value.holds<bool>() || value.holds<std::int64_t>() || value.holds<double>();
  const bool listed = value.undefined() || value.text() != nullptr || value.dict() != nullptr;
  if (name == "iterable") return listed || value.list() != nullptr;
  if (name == "sequence")
    return listed || (value.list() != nullptr && value.list()->form != List::Form::lazy);
  if (name == "callable")
    return value.undefined() || value.holds<std::shared_ptr<const Function>>();
  if (name == "lower") return is_text_of(value, CharTest::lower);
  if (name == "upper") return is_text_of(value, CharTest::upper);
  if (name == "odd") return integer(name, value) % 2 != 0;
  if (name == "even") return integer(name, value) % 2 == 0;
  if (name == "divisibleby") {
    const auto by = integer(name, only(name, arguments));
    if (by == 0) throw Fault("division by zero");
    return by == -1 || integer(name, value) % by == 0;
  }
  if (name == "filter") return value.text() != nullptr && filters().count(*value.text()) > 0;
  if (name == "sameas") {
    const Value& other = only(name, arguments);
    work.spend(std::min(extent(value), extent(other)));
    return value.is.index() == other.is.index() && equal(value, other);
  }
  static const std::map<std::string_view, std::string> kSigns = {
      {"==", "=="},         {"eq", "=="}, {"equalto", "=="}, {"!=", "!="},
      {"ne", "!="},         {"<", "<"},   {"lt", "<"},       {"lessthan", "<"},
      {"<=", "<="},         {"le", "<="}, {">", ">"},        {"gt", ">"},
      {"greaterthan", ">"}, {">=", ">="}, {"ge", ">="},      {"in", "in"}};
  const auto sign = kSigns.find(name);
  if (sign == kSigns.end())
    throw Fault(fmt::format("the test {} is not supported", name.substr(0, 100)));
  return compare(work, sign->second, value, only(name, arguments));
}

}  // namespace text::chat
