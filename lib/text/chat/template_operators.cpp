#include "text/chat/template_run.h"
#include "text/python/python_text.h"

namespace text::chat {
namespace {

using namespace python;

// The most bytes that Python's repr() and JSON make of one byte.
constexpr std::size_t kBytesOfRepr = 4, kBytesOfJson = 6;

[[noreturn]] void refuse_types(const std::string& sign, const Value& a, const Value& b) {
  expect_defined(a);
  expect_defined(b);
  throw Fault("{} does not take {} and {}", sign, type_name(a), type_name(b));
}

void refuse_overflow(bool overflows) {
  if (overflows) throw Fault("the number is too large");
}

Value of_whole_numbers(const std::string& sign, std::int64_t x, std::int64_t y) {
  std::int64_t result = 0;
  if (sign == "+" || sign == "-" || sign == "*") {
    refuse_overflow(sign == "+"   ? __builtin_add_overflow(x, y, &result)
                    : sign == "-" ? __builtin_sub_overflow(x, y, &result)
                                  : __builtin_mul_overflow(x, y, &result));
    return of_whole(result);
  }
  if (sign == "**") {
    if (y < 0) return {std::pow(static_cast<double>(x), static_cast<double>(y))};
    result = 1;
    for (std::int64_t i = 0; i < y; ++i) {
      if (x == 0 || x == 1 || x == -1) return of_whole(x == -1 && y % 2 == 0 ? 1 : x);
      refuse_overflow(__builtin_mul_overflow(result, x, &result));
    }
    return of_whole(result);
  }
  if (y == 0) throw Fault("division by zero");
  if (sign == "/") return {static_cast<double>(x) / static_cast<double>(y)};
  if (y == -1) {
    if (sign == "%") return of_whole(0);
    refuse_overflow(x == INT64_MIN);
    return of_whole(-x);
  }
  const std::int64_t rest = x % y;
  const bool down = rest != 0 && (rest < 0) != (y < 0);
  if (sign == "//") return of_whole(x / y - (down ? 1 : 0));
  return of_whole(rest + (down ? y : 0));
}

Value of_numbers(const std::string& sign, double x, double y) {
  if (sign == "+") return {x + y};
  if (sign == "-") return {x - y};
  if (sign == "*") return {x * y};
  if (sign == "**") return {std::pow(x, y)};
  if (y == 0) throw Fault("division by zero");
  if (sign == "/") return {x / y};
  if (sign == "//") return {std::floor(x / y)};
  const double rest = std::fmod(x, y);
  return {rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest};
}

Value repeated(Work& work, const Value& of, std::int64_t times) {
  times = std::max<std::int64_t>(times, 0);
  if (const auto* text = of.text()) {
    work.room()(static_cast<double>(text->size()) * static_cast<double>(times));
    std::string out;
    for (std::int64_t i = 0; i < (text->empty() ? 0 : times); ++i) out += *text;
    return of_text(std::move(out));
  }
  const auto* list = of.list();
  const double most = static_cast<double>(list->items.size()) * static_cast<double>(times);
  work.expect_room(most);
  work.spend(2 * static_cast<std::size_t>(most));
  std::vector<Value> items;
  for (std::int64_t i = 0; i < (list->items.empty() ? 0 : times); ++i)
    items.insert(items.end(), list->items.begin(), list->items.end());
  return of_list(std::move(items), list->form);
}

bool is_sequence(const Value& value, List::Form below = List::Form::view) {
  const auto* list = value.list();
  return value.text() != nullptr || (list != nullptr && list->form < below);
}

bool contains(Work& work, const Value& all, const Value& one) {
  if (all.undefined()) return false;
  work.read(all);
  work.read(one);
  if (const auto* text = all.text()) {
    if (one.text() == nullptr) throw Fault("in: a {} cannot be in a text", type_name(one));
    return find_text(*text, *one.text()) != text->npos;
  }
  if (const auto* dict = all.dict()) return dict->find(one) != nullptr;
  if (const auto* list = all.list())
    return std::ranges::any_of(list->items, [&](const Value& value) { return equal(value, one); });
  throw Fault("in: a value of type {} has no elements", type_name(all));
}

std::int64_t bound_of(const Value* value, const char* what) {
  std::int64_t number = 0;
  if (!value->whole(number)) throw Fault("{} of a slice is not an integer", what);
  return number;
}

}  // namespace

void Work::spend(std::size_t steps) {
  if (steps > steps_) throw Fault("the template takes too many steps");
  steps_ -= steps;
}

void Work::expect_room(double bytes) const {
  if (bytes > static_cast<double>(bytes_)) throw Fault("the template makes too long a text");
}

void Work::append(std::string& out, std::string_view text) {
  expect_room(static_cast<double>(out.size()) + static_cast<double>(text.size()));
  spend_bytes(text.size());
  out += text;
}

std::function<void(double)> Work::room() {
  return [this](double bytes) {
    expect_room(bytes);
    spend_bytes(static_cast<std::size_t>(std::max(0.0, bytes)));
  };
}

Value Work::text(std::string_view text) {
  expect_room(static_cast<double>(text.size()));
  if (text.size() == 1 && static_cast<unsigned char>(text[0]) < 128) {  // these share their text
    static const auto kTexts = [] {
      std::array<Value, 128> all;
      for (std::size_t i = 0; i < all.size(); ++i)
        all[i] = of_text(std::string(1, static_cast<char>(i)));
      return all;
    }();
    return kTexts[static_cast<unsigned char>(text[0])];
  }
  spend(4 + text.size() / 16);
  return of_text(std::string(text));
}

Value Work::list(std::vector<Value> items, List::Form form) {
  spend(1 + 2 * items.size());
  return of_list(std::move(items), form);
}

std::string Work::print(const Value& value) {
  spend((value.text() != nullptr ? 1 : kBytesOfRepr) * extent(value));
  std::string out = printed(value, bytes_);
  expect_room(static_cast<double>(out.size()));
  return out;
}
std::string Work::print_repr(const Value& value) {
  spend(kBytesOfRepr * extent(value));
  return repr(value, bytes_);
}

Value Work::json(const Value& value, const JsonForm& form) {
  spend(kBytesOfJson * extent(value));
  return text(to_json(value, form, bytes_));
}

std::shared_ptr<const List> elements(Work& work, const Value& value) {
  if (const auto* list = std::get_if<std::shared_ptr<const List>>(&value.is)) return *list;
  List all;
  if (const auto* dict = value.dict()) {
    work.spend(2 * dict->members.size());
    for (const auto& member : dict->members) all.items.push_back(member.first);
  } else if (const auto* text = value.text()) {
    const auto n = character_count(*text);
    work.spend(2 * n);
    all.items.reserve(n);
    each_character(
        *text, [&](std::string_view c, std::uint32_t) { all.items.push_back(work.text(c)); });
  } else if (!value.undefined()) {
    throw Fault("a value of type {} cannot be iterated", type_name(value));
  }
  const Value made = of_list(std::move(all.items));
  return std::get<std::shared_ptr<const List>>(made.is);
}

Value operate(Work& work, const std::string& sign, const Value& a, const Value& b) {
  if (sign == "~") return work.text(work.print(a) + work.print(b));
  if (std::int64_t x = 0, y = 0; a.whole(x) && b.whole(y)) return of_whole_numbers(sign, x, y);
  if (double x = 0, y = 0; a.number(x) && b.number(y)) return of_numbers(sign, x, y);
  if (sign == "*") {
    constexpr auto kRange = List::Form::range;
    if (std::int64_t n = 0; is_sequence(a, kRange) && b.whole(n)) return repeated(work, a, n);
    if (std::int64_t n = 0; is_sequence(b, kRange) && a.whole(n)) return repeated(work, b, n);
  }
  if (sign == "%" && a.text() != nullptr) return percent_format(work, *a.text(), b);
  if (sign == "+" && a.text() != nullptr && b.text() != nullptr) {
    work.room()(static_cast<double>(a.text()->size()) + static_cast<double>(b.text()->size()));
    return of_text(*a.text() + *b.text());
  }
  const auto *left = a.list(), *right = b.list();
  if (sign == "+" && left != nullptr && right != nullptr && left->form == right->form &&
      left->form < List::Form::range) {
    work.spend(2 * (left->items.size() + right->items.size()));
    auto items = left->items;
    items.insert(items.end(), right->items.begin(), right->items.end());
    return of_list(std::move(items), left->form);
  }
  refuse_types(sign, a, b);
}

bool compare(Work& work, const std::string& sign, const Value& a, const Value& b) {
  if (sign == "in") return contains(work, b, a);
  if (sign == "not in") return !contains(work, b, a);
  work.spend(std::min(extent(a), extent(b)));
  if (sign == "==") return equal(a, b);
  if (sign == "!=") return !equal(a, b);
  if (sign == "<") return less(a, b);
  if (sign == ">") return less(b, a);
  return sign == "<=" ? std::is_lteq(order(a, b)) : std::is_gteq(order(a, b));
}

Value negative(const Value& value) {
  if (std::int64_t number = 0; value.whole(number)) {
    refuse_overflow(number == INT64_MIN);
    return of_whole(-number);
  }
  if (double number = 0; value.number(number)) return {-number};
  expect_defined(value);
  throw Fault("- does not take {}", type_name(value));
}

Value slice(Work& work, const Value& of, const Value* from, const Value* to, const Value* step) {
  const auto given = [](const Value* value) { return value != nullptr && !value->none(); };
  const std::int64_t by = given(step) ? bound_of(step, "the step") : 1;
  if (by == 0) throw Fault("the step of a slice is 0");
  expect_defined(of);
  if (!is_sequence(of)) return undefined(fmt::format("a {} cannot be sliced", type_name(of)));
  const auto* list = of.list();
  const std::string* text = of.text();
  if (text != nullptr) work.read(of);
  const auto size =
      list != nullptr ? std::ssize(list->items) : static_cast<std::int64_t>(character_count(*text));
  const auto place = [&](const Value* value, std::int64_t otherwise) {
    if (!given(value)) return otherwise;
    std::int64_t at = bound_of(value, "an end");
    const std::int64_t low = by > 0 ? 0 : -1, high = by > 0 ? size : size - 1;
    if (at < 0) at = at < -size ? low : at + size;
    return std::clamp(at, low, high);
  };
  const std::int64_t begin = place(from, by > 0 ? 0 : size - 1),
                     end = place(to, by > 0 ? size : -1);
  if (text != nullptr && by == 1) {
    const auto all = std::string_view(*text);
    const auto rest = all.substr(byte_of(all, static_cast<std::size_t>(begin)));
    return work.text(rest.substr(
        0, byte_of(rest, static_cast<std::size_t>(std::max<std::int64_t>(0, end - begin)))));
  }
  const std::int64_t n = by > 0 ? (end > begin ? (end - begin - 1) / by + 1 : 0)
                                : (begin > end ? (end - begin + 1) / by + 1 : 0);
  if (text != nullptr) {
    work.spend(static_cast<std::size_t>(size));
    std::vector<std::string_view> all;
    all.reserve(static_cast<std::size_t>(size));
    each_character(*text, [&](std::string_view c, std::uint32_t) { all.push_back(c); });
    std::string made;
    for (std::int64_t i = 0; i < n; ++i) made += all[static_cast<std::size_t>(begin + i * by)];
    return work.text(made);
  }
  work.spend(2 * static_cast<std::size_t>(n));
  const auto at = [&](auto i) { return list->items[static_cast<std::size_t>(begin + i * by)]; };
  return of_list(core::generated(n, at), list->form);
}

Value range(Work& work, const Arguments& arguments) {
  std::int64_t numbers[3] = {0, 0, 1};
  const auto n = arguments.plain.size();
  if (n == 0 || n > 3 || !arguments.named.empty())
    throw Fault("range() takes one to three integers");
  for (std::size_t i = 0; i < n; ++i)
    if (!arguments.plain[i].whole(numbers[n == 1 ? 1 : i])) throw Fault("range() takes integers");
  const auto [from, to, step] = numbers;
  if (step == 0) throw Fault("range(): the step is 0");
  constexpr std::size_t kMost = 100'000;  // Jinja's own limit
  std::vector<Value> items;
  for (std::int64_t at = from; step > 0 ? at < to : at > to;) {
    if (items.size() == kMost) throw Fault("range() of more than {} numbers", kMost);
    items.push_back(of_whole(at));
    if (__builtin_add_overflow(at, step, &at)) break;
  }
  return work.list(std::move(items), List::Form::range);
}

}  // namespace text::chat
