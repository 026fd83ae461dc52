#include <charconv>
#include <ranges>

#include "text/chat/template_run.h"
#include "text/python/python_text.h"

namespace text::chat {
namespace {

using namespace python;

// The value and the arguments of a filter.
struct Filtered {
  Work& work;
  const std::string& name;
  const Value& value;
  const Arguments& arguments;
  const std::vector<std::string_view>& parameters;

  const Value* find(std::string_view of) const {
    const auto place = std::ranges::find(parameters, of) - parameters.begin();
    return arguments.find(static_cast<std::size_t>(place), of);
  }
  // Returns an argument that is neither absent nor none, else nullptr.
  const Value* given(std::string_view of) const {
    const Value* found = find(of);
    return found == nullptr || found->none() ? nullptr : found;
  }
  bool flag(std::string_view of, bool otherwise) const {
    const Value* found = find(of);
    return found == nullptr ? otherwise : truth(*found);
  }
  std::int64_t whole(std::string_view of, std::int64_t otherwise) const {
    const Value* found = given(of);
    std::int64_t number = otherwise;
    if (found != nullptr && !found->whole(number))
      throw Fault("the filter {}: {} is not an integer", name, of);
    return number;
  }
  std::string shown(std::string_view of) const {
    const Value* found = find(of);
    if (found == nullptr) throw Fault("the filter {}: {} is missing", name, of);
    return work.print(*found);
  }
  std::string text() const { return work.print(value); }
  Value made(std::string_view text) const { return work.text(text); }
  std::shared_ptr<const List> items() const { return elements(work, value); }
};

// Paths such as map(attribute="a.b.0"), and sort(attribute="a,b") with several of them.
using Path = std::vector<Value>;
Path path_of(Work& work, const Value& path) {
  if (path.text() == nullptr) return {path};
  Path parts;
  const std::string dot = ".";
  split(*path.text(), &dot, -1, false, [&](std::string_view part) {
    const bool digits =
        !part.empty() && part.find_first_not_of("0123456789") == part.npos && part.size() < 10;
    parts.push_back(digits ? of_whole(std::stoll(std::string(part))) : work.text(part));
  });
  return parts;
}
Value at_path(Work& work, Value value, const Path& path, const Value* otherwise = nullptr) {
  for (const auto& part : path) {
    work.spend(1);
    value = item(work, value, part);
    if (otherwise != nullptr && value.undefined()) value = *otherwise;
  }
  return value;
}

Arguments rest_of(const Arguments& arguments, std::size_t from) {
  const auto left = std::span(arguments.plain).subspan(std::min(from, arguments.plain.size()));
  return {{left.begin(), left.end()}, arguments.named};
}

// Returns the values that a filter compares: those at its paths, regardless of case unless it is
// case sensitive.
class Keys {
 public:
  explicit Keys(const Filtered& f)
      : work_(f.work), exact_(f.flag("case_sensitive", false)), several_(f.name == "sort") {
    const Value* path = f.given("attribute");
    if (path == nullptr) {
      paths_.emplace_back();
    } else if (several_ && path->text() != nullptr) {
      const std::string comma = ",";
      split(*path->text(), &comma, -1, false,
          [&](std::string_view one) { paths_.push_back(path_of(work_, work_.text(one))); });
    } else {
      paths_.push_back(path_of(work_, *path));
    }
  }
  Value operator()(const Value& one) const {
    if (!several_) return folded(at_path(work_, one, paths_[0]));
    return work_.list(
        core::mapped(paths_, [&](const Path& path) { return folded(at_path(work_, one, path)); }));
  }

 private:
  Value folded(Value value) const {
    if (exact_ || value.text() == nullptr) return value;
    work_.read(value);
    return work_.text(lower(*value.text()));
  }
  Work& work_;
  bool exact_, several_;
  std::vector<Path> paths_;
};

// Sorts the items by their keys, which are stably ordered also in reverse, as by Python's sorted().
Value sorted(Work& work, const std::vector<Value>& items, bool down,
    const std::function<Value(const Value&)>& key) {
  std::vector<std::pair<Value, Value>> keyed;
  work.spend(8 * items.size());
  std::size_t sum = items.size();
  for (const auto& one : items) {
    keyed.emplace_back(key(one), one);
    sum += extent(keyed.back().first);
  }
  work.spend(sum * static_cast<std::size_t>(std::bit_width(items.size())));
  std::ranges::stable_sort(keyed, [&](const auto& a, const auto& b) {
    return down ? less(b.first, a.first) : less(a.first, b.first);
  });
  return of_list(core::mapped(keyed, [](auto& of) { return std::move(of.second); }));
}

Value sort_filter(const Filtered& f) {
  return sorted(f.work, f.items()->items, f.flag("reverse", false), Keys(f));
}

Value dictsort(const Filtered& f) {
  if (f.value.dict() == nullptr) throw Fault("the filter dictsort takes a dict");
  const Value* by = f.find("by");
  const bool by_value = by != nullptr && equal(*by, of_text("value"));
  if (by != nullptr && !by_value && !equal(*by, of_text("key")))
    throw Fault("dictsort: by takes key or value");
  const Value pairs = call_method(f.work, f.value, "items", {});
  const Keys keys(f);
  return sorted(f.work, pairs.list()->items, f.flag("reverse", false),
      [&](const Value& one) { return keys(one.list()->items[by_value ? 1 : 0]); });
}

Value unique(const Filtered& f) {
  const auto before = [](const Value& a, const Value& b) { return std::is_lt(key_order(a, b)); };
  std::set<Value, decltype(before)> seen(before);
  const auto items = f.items();
  const auto log = static_cast<std::size_t>(std::bit_width(items->items.size()));
  const Keys keys(f);
  std::vector<Value> kept;
  for (const auto& one : items->items) {
    Value key = keys(one);
    f.work.spend(8 + extent(key) * log);
    key_order(key, key);  // refuses what is no key
    if (seen.insert(std::move(key)).second) kept.push_back(one);
  }
  return of_list(std::move(kept), List::Form::lazy);
}

Value map_filter(const Filtered& f) {
  if (!truth(f.value)) return of_list({}, List::Form::lazy);
  const auto items = f.items();
  std::vector<Value> made;
  f.work.spend(2 * items->items.size());
  if (f.arguments.plain.empty()) {
    const Value* path = f.arguments.find(0, "attribute");
    if (path == nullptr) throw Fault("map takes a filter's name or attribute=...");
    for (const auto& [name, value] : f.arguments.named)
      if (name != "attribute" && name != "default")
        throw Fault("map takes no argument {}", name.substr(0, 100));
    const Value* otherwise = f.given("default");
    const Path parts = path_of(f.work, *path);
    for (const auto& one : items->items) made.push_back(at_path(f.work, one, parts, otherwise));
    return of_list(std::move(made), List::Form::lazy);
  }
  if (f.arguments.plain[0].text() == nullptr) throw Fault("map takes a filter's name");
  const Arguments rest = rest_of(f.arguments, 1);
  for (const auto& one : items->items)
    made.push_back(apply_filter(f.work, *f.arguments.plain[0].text(), one, rest));
  return of_list(std::move(made), List::Form::lazy);
}

// Implements select, reject, selectattr and rejectattr.
Value choose(const Filtered& f) {
  const bool by_attribute = f.name.ends_with("attr"), wanted = f.name.starts_with("select");
  if (!truth(f.value)) return of_list({}, List::Form::lazy);
  std::size_t from = 0;
  Path path;
  if (by_attribute) {
    if (f.arguments.plain.empty()) throw Fault("{} takes the name of an attribute", f.name);
    path = path_of(f.work, f.arguments.plain[from++]);
  }
  const Value* test = f.arguments.find(from, "");
  if (test != nullptr && test->text() == nullptr)
    throw Fault("{}: takes the name of a test", f.name);
  const Arguments rest = rest_of(f.arguments, from + 1);
  std::vector<Value> kept;
  for (const auto items = f.items(); const auto& one : items->items) {
    f.work.spend(3);
    const Value of = at_path(f.work, one, path);
    const bool holds = test == nullptr ? truth(of) : apply_test(f.work, *test->text(), of, rest);
    if (holds == wanted) kept.push_back(one);
  }
  return of_list(std::move(kept), List::Form::lazy);
}

Value json_filter(const Filtered& f) {
  JsonForm form;
  form.ascii = f.flag("ensure_ascii", false);
  if (const Value* indent = f.given("indent")) {
    std::int64_t width = 0;
    if (!indent->whole(width) || width < 0 || width > 64)
      throw Fault("tojson: indent takes 0 to 64");
    form.indent = static_cast<int>(width);
    form.comma = ",";
  }
  if (const Value* separators = f.given("separators")) {
    const auto* list = separators->list();
    if (list == nullptr || list->items.size() != 2 || list->items[0].text() == nullptr ||
        list->items[1].text() == nullptr)
      throw Fault("tojson: separators takes two texts");
    form.comma = *list->items[0].text();
    form.colon = *list->items[1].text();
  }
  form.sorted = f.flag("sort_keys", false);
  return f.work.json(f.value, form);
}

Value indent_filter(const Filtered& f) {
  const Value* width = f.find("width");
  std::string by;
  if (width != nullptr && width->text() != nullptr) by = *width->text();
  else by = padded(f.work, "", f.whole("width", 4), '>', " ");
  const bool first = f.flag("first", false), blank = f.flag("blank", false);
  std::string out = first ? by : "";
  bool begins = true;
  if (f.value.text() == nullptr) throw Fault("the filter indent takes a text");
  split_lines(f.text() + "\n", false, [&](std::string_view line) {
    f.work.expect_room(static_cast<double>(out.size() + by.size() + line.size()));
    f.work.spend_bytes(by.size());
    if (!begins) out += '\n';
    if (!begins && (blank || !line.empty())) out += by;
    out += line;
    begins = false;
  });
  return f.made(out);
}

// Reads a number as Python does: decimal digits of any script, with _ between them, within white
// space. Returns nothing for other texts.
std::optional<std::string> ascii_number(const std::string& text) {
  std::string out;
  bool digit = false, fits = true;
  each_character(stripped(text, nullptr, true, true), [&](std::string_view c, std::uint32_t code) {
    const int value = decimal_value(code);
    if (out.ends_with('_')) {
      fits = fits && value >= 0;
      out.pop_back();
    }
    fits = fits && (code != '_' || digit);
    digit = value >= 0;
    if (digit) out += static_cast<char>('0' + value);
    else out += c;
  });
  if (!fits || out.ends_with('_') || out.find_first_of("()") != out.npos) return std::nullopt;
  if (out.starts_with('+') && !out.starts_with("+-")) out.erase(0, 1);
  return out;
}

std::optional<double> read_number(const std::string& text) {
  const auto bare = ascii_number(text);
  if (!bare || bare->empty()) return std::nullopt;
  double number = 0;
  const auto [end, error] = std::from_chars(bare->data(), bare->data() + bare->size(), number);
  if (end != bare->data() + bare->size()) return std::nullopt;
  if (error == std::errc::result_out_of_range) return std::strtod(bare->c_str(), nullptr);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

Value int_filter(const Filtered& f) {
  const Value* otherwise = f.find("default");
  Value fallback = otherwise != nullptr ? *otherwise : of_whole(0);
  const auto base = f.whole("base", 10);
  if (base < 2 || base > 36) throw Fault("the filter int: base takes 2 to 36");
  expect_defined(f.value);
  if (std::int64_t n = 0; f.value.whole(n)) return of_whole(n);
  std::optional<double> number;
  if (double real = 0; f.value.number(real)) {
    if (std::isinf(real)) throw Fault("the number is too large");
    number = real;
  }
  if (const auto* text = f.value.text()) {
    if (auto bare = ascii_number(*text); bare && !bare->empty()) {
      const std::size_t sign = bare->starts_with('-') ? 1 : 0;
      const char mark = base == 16 ? 'x' : base == 8 ? 'o' : base == 2 ? 'b' : '\0';
      if (bare->size() > sign + 2 && (*bare)[sign] == '0' && ((*bare)[sign + 1] | 32) == mark)
        bare->erase(sign, 2);
      std::int64_t n = 0;
      const char* const all = bare->data() + bare->size();
      const auto [end, error] = std::from_chars(bare->data(), all, n, static_cast<int>(base));
      if (end == all && error == std::errc()) return of_whole(n);
      if (end == all && error == std::errc::result_out_of_range)
        throw Fault("the number is too large");
    }
    number = read_number(*text);
  }
  if (!number || !std::isfinite(*number)) return fallback;
  if (!(std::abs(*number) < 9e18)) throw Fault("the number is too large");
  return of_whole(static_cast<std::int64_t>(*number));
}

Value float_filter(const Filtered& f) {
  const Value* otherwise = f.find("default");
  expect_defined(f.value);
  if (double real = 0; f.value.number(real)) return {real};
  if (f.value.text() != nullptr)
    if (const auto number = read_number(*f.value.text())) return {*number};
  return otherwise != nullptr ? *otherwise : Value{0.0};
}

Value round_filter(const Filtered& f) {
  const auto places = f.whole("precision", 0);
  const Value* given = f.find("method");
  const std::string method = given != nullptr ? f.shown("method") : "common";
  double number = 0;
  if (!f.value.number(number)) throw Fault("the filter round takes a number");
  if (places < 0 || places > 15) throw Fault("round: precision takes 0 to 15");
  const double scale = std::pow(10.0, static_cast<double>(places));
  if (method == "ceil") return {std::ceil(number * scale) / scale};
  if (method == "floor") return {std::floor(number * scale) / scale};
  if (method != "common") throw Fault("round: method takes common, ceil or floor");
  if (std::int64_t n = 0; f.value.whole(n)) return of_whole(n);
  if (!std::isfinite(number)) return f.value;
  return {std::strtod(fmt::format("{:.{}f}", number, places).c_str(), nullptr)};
}

Value abs_filter(const Filtered& f) {
  double number = 0;
  if (!f.value.number(number)) throw Fault("the filter abs takes a number");
  if (std::int64_t n = 0; number >= 0 && f.value.whole(n)) return of_whole(n);
  return number < 0 ? negative(f.value) : f.value;
}

Value join_filter(const Filtered& f) {
  const std::string separator = f.find("d") != nullptr ? f.shown("d") : "";
  const Value* given = f.given("attribute");
  const Path path = given != nullptr ? path_of(f.work, *given) : Path();
  std::string out;
  bool first = true;
  for (const auto items = f.items(); const auto& one : items->items) {
    const std::string text = f.work.print(at_path(f.work, one, path));
    if (!std::exchange(first, false)) f.work.append(out, separator);
    f.work.append(out, text);
  }
  return of_text(std::move(out));
}

Value length_filter(const Filtered& f) {
  if (f.value.undefined()) return of_whole(0);
  if (f.value.text() != nullptr)
    return of_whole(static_cast<std::int64_t>(character_count(*f.value.text())));
  if (f.value.dict() != nullptr) return of_whole(std::ssize(f.value.dict()->members));
  const auto* list = f.value.list();
  if (list == nullptr || list->form == List::Form::lazy)
    throw Fault("a value of type {} has no length", type_name(f.value));
  return of_whole(std::ssize(list->items));
}

Value end_filter(const Filtered& f) {
  const bool first = f.name == "first";
  const auto* list = f.value.list();
  if (!first && list != nullptr && list->form == List::Form::lazy)
    throw Fault("the filter last does not take a generator; apply | list first");
  if (const auto* text = f.value.text(); text != nullptr && !text->empty()) {
    const char *begin = text->data(), *end = begin + text->size();
    return first ? f.made({begin, decode_char(begin, end).bytes})
                 : f.made({previous_char(begin, end), end});
  }
  const auto items = f.items();
  if (items->items.empty()) return undefined("there is no such item: the list is empty");
  return first ? items->items.front() : items->items.back();
}

Value reverse_filter(const Filtered& f) {
  if (const auto* text = f.value.text()) {
    std::string out;
    for (const char *begin = text->data(), *p = begin + text->size(); p > begin;) {
      const char* const before = previous_char(begin, p);
      out.append(before, p);
      p = before;
    }
    return f.made(out);
  }
  const auto items = f.items();
  return f.work.list({items->items.rbegin(), items->items.rend()}, List::Form::lazy);
}

Value extreme(const Filtered& f) {
  const bool most = f.name == "max";
  const auto items = f.items();
  if (items->items.empty()) return undefined("there is no such item: the list is empty");
  const Keys keys(f);
  const Value* best = nullptr;
  Value best_key;
  for (const auto& one : items->items) {
    Value key = keys(one);
    f.work.read(key);
    if (best != nullptr && !(most ? less(best_key, key) : less(key, best_key))) continue;
    best = &one;
    best_key = std::move(key);
  }
  return *best;
}

Value sum_filter(const Filtered& f) {
  const Value *given = f.given("attribute"), *start = f.find("start");
  const Path path = given != nullptr ? path_of(f.work, *given) : Path();
  Value sum = start != nullptr ? *start : of_whole(0);
  for (const auto items = f.items(); const auto& one : items->items)
    sum = operate(f.work, "+", sum, at_path(f.work, one, path));
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
    if (c == '&') out += "&amp;";
    else if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else if (c == '\'') out += "&#39;";
    else if (c == '"') out += "&#34;";
    else out += c;
    f.work.expect_room(static_cast<double>(out.size()));
  }
  return f.made(out);
}

Value replace_filter(const Filtered& f) {
  return of_text(
      replaced(f.text(), f.shown("old"), f.shown("new"), f.whole("count", -1), f.work.room()));
}

Value trim_filter(const Filtered& f) {
  const Value* chars = f.given("chars");
  if (chars != nullptr && chars->text() == nullptr) throw Fault("trim takes a text");
  if (chars != nullptr) f.work.read(*chars);
  return f.made(stripped(f.text(), chars != nullptr ? chars->text() : nullptr, true, true));
}

Value default_filter(const Filtered& f) {
  const bool falls = f.value.undefined() || (f.flag("boolean", false) && !truth(f.value));
  if (!falls) return f.value;
  const Value* otherwise = f.find("default_value");
  return otherwise != nullptr ? *otherwise : of_text("");
}

Value format_filter(const Filtered& f) {
  if (f.arguments.named.empty())
    return percent_format(f.work, f.text(), of_list(f.arguments.plain, List::Form::tuple));
  if (!f.arguments.plain.empty()) throw Fault("format takes values either in order or by names");
  std::vector<std::pair<Value, Value>> members;
  for (const auto& [name, value] : f.arguments.named) members.emplace_back(f.made(name), value);
  return percent_format(f.work, f.text(), of_dict(std::move(members)));
}

Value word_count(const Filtered& f) {
  std::int64_t n = 0;
  bool within = false;
  each_character(f.text(), [&](std::string_view, std::uint32_t code) {
    const bool word = code == '_' || is_alnum(code);
    n += word && !within ? 1 : 0;
    within = word;
  });
  return of_whole(n);
}

template <std::string Map(std::string_view)> Value case_filter(const Filtered& f) {
  f.work.spend(4 * extent(f.value));  // slower than copying
  return f.made(Map(f.text()));
}
Value text_filter(const Filtered& f) { return f.made(f.text()); }

struct Filter {
  Value (*call)(const Filtered&);
  std::vector<std::string_view> parameters = {};
  bool any = false;  // it takes further arguments
};
const std::map<std::string_view, Filter>& filters() {
  static const std::map<std::string_view, Filter> kFilters = {{"abs", {abs_filter}},
      {"attr", {[](const Filtered& f) { return attribute(f.work, f.value, f.shown("name")); },
                   {"name"}}},
      {"capitalize", {case_filter<capitalized>}},
      {"center", {[](const Filtered& f) {
                    return call_method(
                        f.work, f.made(f.text()), "center", {{of_whole(f.whole("width", 80))}});
                  },
                     {"width"}}},
      {"count", {length_filter}}, {"d", {default_filter, {"default_value", "boolean"}}},
      {"default", {default_filter, {"default_value", "boolean"}}},
      {"dictsort", {dictsort, {"case_sensitive", "by", "reverse"}}}, {"e", {escape_filter}},
      {"escape", {escape_filter}}, {"first", {end_filter}}, {"float", {float_filter, {"default"}}},
      {"format", {format_filter, {}, true}},
      {"indent", {indent_filter, {"width", "first", "blank"}}},
      {"int", {int_filter, {"default", "base"}}}, {"items", {items_filter}},
      {"join", {join_filter, {"d", "attribute"}}}, {"last", {end_filter}},
      {"length", {length_filter}},
      {"list", {[](const Filtered& f) { return f.work.list(f.items()->items); }}},
      {"lower", {case_filter<lower>}}, {"map", {map_filter, {}, true}},
      {"max", {extreme, {"case_sensitive", "attribute"}}},
      {"min", {extreme, {"case_sensitive", "attribute"}}}, {"reject", {choose, {}, true}},
      {"rejectattr", {choose, {}, true}}, {"replace", {replace_filter, {"old", "new", "count"}}},
      {"reverse", {reverse_filter}}, {"round", {round_filter, {"precision", "method"}}},
      {"safe", {text_filter}}, {"select", {choose, {}, true}}, {"selectattr", {choose, {}, true}},
      {"sort", {sort_filter, {"reverse", "case_sensitive", "attribute"}}},
      {"string", {text_filter}}, {"sum", {sum_filter, {"attribute", "start"}}},
      {"title", {case_filter<title_words>}},
      {"tojson", {json_filter, {"ensure_ascii", "indent", "separators", "sort_keys"}}},
      {"trim", {trim_filter, {"chars"}}}, {"unique", {unique, {"case_sensitive", "attribute"}}},
      {"upper", {case_filter<upper>}}, {"wordcount", {word_count}}};
  return kFilters;
}

const Value& only(const std::string& name, const Arguments& arguments) {
  if (arguments.plain.size() != 1) throw Fault("the test {} takes one value", name);
  return arguments.plain[0];
}

std::int64_t integer(const std::string& name, const Value& value) {
  std::int64_t number = 0;
  if (!value.whole(number)) throw Fault("the test {} takes integers", name);
  return number;
}

}  // namespace

Value apply_filter(
    Work& work, const std::string& name, const Value& value, const Arguments& arguments) {
  const auto found = filters().find(name);
  if (found == filters().end()) throw Fault("the filter {} is not supported", name.substr(0, 100));
  work.spend(1);
  const auto& [call, parameters, any] = found->second;
  if (!any && arguments.plain.size() > parameters.size())
    throw Fault("the filter {} takes not more than {} argument{}", name, parameters.size(),
        parameters.size() == 1 ? "" : "s");
  for (const auto& [own, given] : arguments.named)
    if (!any && !core::contains(parameters, own))
      throw Fault("the filter {} takes no argument {}", name, own.substr(0, 100));
  if (value.text() != nullptr) work.read(value);
  return call({work, name, value, arguments, parameters});
}

bool apply_test(
    Work& work, const std::string& name, const Value& value, const Arguments& arguments) {
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
    return listed || (value.list() != nullptr && value.list()->form < List::Form::view);
  if (name == "callable")
    return value.undefined() || value.holds<std::shared_ptr<const Function>>();
  if (name == "lower" || name == "upper") return is_of_case(work.print(value), name == "upper");
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
  static const std::map<std::string_view, std::string> kSigns = {{"==", "=="}, {"eq", "=="},
      {"equalto", "=="}, {"!=", "!="}, {"ne", "!="}, {"<", "<"}, {"lt", "<"}, {"lessthan", "<"},
      {"<=", "<="}, {"le", "<="}, {">", ">"}, {"gt", ">"}, {"greaterthan", ">"}, {">=", ">="},
      {"ge", ">="}, {"in", "in"}};
  const auto sign = kSigns.find(name);
  if (sign == kSigns.end()) throw Fault("the test {} is not supported", name.substr(0, 100));
  return compare(work, sign->second, value, only(name, arguments));
}

}  // namespace text::chat
