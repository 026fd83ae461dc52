// Formats texts as Python's % operator and str.format() do.

#include <cstdio>

#include "text/chat/template_run.h"
#include "text/python/python_text.h"

namespace text::chat {
namespace {

using namespace python;

// How a value is written: [[fill]align][sign][#][0][width][grouping][.precision][type].
struct FieldForm {
  std::string fill = " ";
  char align = 0, sign = '-', grouping = 0, type = 0;
  bool alternate = false;
  std::int64_t width = 0, precision = -1;
};

// Reads a number at `at`, if there is one.
bool take_whole(std::string_view text, std::size_t& at, std::int64_t& number) {
  const std::size_t begin = at;
  for (number = 0; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at)
    if ((number = number * 10 + (text[at] - '0')) > INT32_MAX)
      throw Fault("the number in a format is too large");
  return at > begin;
}

std::string with_precision(Work& work, const char* form, std::int64_t precision, double value) {
  work.room()(static_cast<double>(precision));
  const auto places = static_cast<int>(precision);
  std::string out(static_cast<std::size_t>(std::snprintf(nullptr, 0, form, places, value)), ' ');
  std::snprintf(out.data(), out.size() + 1, form, places, value);
  return out;
}

// Returns the digits of a number that is not negative.
std::string real_digits(Work& work, double value, const FieldForm& form) {
  const auto precision = form.precision < 0 ? 6 : form.precision;
  if (!std::isfinite(value)) {
    const bool upper = form.type == 'F' || form.type == 'E' || form.type == 'G';
    return std::isnan(value) ? (upper ? "NAN" : "nan") : (upper ? "INF" : "inf");
  }
  if (form.type != 0) {
    const bool percent = form.type == '%';
    const char letter = percent || form.type == 'F' ? 'f' : form.type == 'n' ? 'g' : form.type;
    const std::string how = fmt::format("%{}.*{}", form.alternate ? "#" : "", letter);
    const auto digits = with_precision(work, how.c_str(), precision, percent ? value * 100 : value);
    return percent ? digits + "%" : digits;
  }
  if (form.precision < 0) return work.print({value});
  // Without a type: as g, but with a digit after the point.
  const auto most = std::max<std::int64_t>(1, precision);
  const std::string scientific = with_precision(work, "%.*e", most - 1, value);
  const int exponent = std::stoi(scientific.substr(scientific.find('e') + 1));
  std::string out = with_precision(work, "%.*g", most, value);
  if (exponent >= most - 1 && out.find('e') == out.npos) {
    out = scientific;  // g keeps one digit more
    const auto end = out.find('e');
    auto last = out.find_last_not_of('0', end - 1);
    if (out.find('.') < end)
      out.erase(out[last] == '.' ? last : last + 1, end - (out[last] == '.' ? last : last + 1));
  } else if (out.find_first_not_of("0123456789") == out.npos) {
    out += ".0";
  }
  return out;
}

std::string whole_digits(std::uint64_t value, const FieldForm& form) {
  switch (form.type) {
    case 'b': return fmt::format("{:b}", value);
    case 'o': return fmt::format("{:o}", value);
    case 'x': return fmt::format("{:x}", value);
    case 'X': return fmt::format("{:X}", value);
    default: return fmt::format("{}", value);
  }
}

// Returns how many digits are before the point or the exponent; groups of 4 are of any base.
std::size_t whole_size(const std::string& digits, std::size_t group) {
  const char* const all = group == 4 ? "0123456789abcdefABCDEF" : "0123456789";
  return std::min(digits.find_first_not_of(all), digits.size());
}
// Separates the digits before the point into groups.
std::string grouped(const std::string& digits, char separator, std::size_t size) {
  const auto whole = whole_size(digits, size);
  std::string out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && i < whole && (whole - i) % size == 0) out += separator;
    out += digits[i];
  }
  return out;
}

std::string number_text(Work& work, const Value& value, const FieldForm& form) {
  static constexpr std::string_view kReal = "eEfFgG%";
  const bool real_type = form.type != 0 && kReal.find(form.type) != kReal.npos;
  std::int64_t whole = 0;
  double real = 0;
  const bool is_whole = value.whole(whole) && !real_type;
  if (!is_whole && (!value.number(real) || (form.type != 0 && form.type != 'n' && !real_type)))
    throw Fault("a {} has no format {}", type_name(value), form.type);
  if (is_whole && form.precision >= 0) throw Fault("the format of an integer has no precision");
  const bool negative = is_whole ? whole < 0 : std::signbit(real) && !std::isnan(real);
  const auto size = is_whole ? (whole < 0 ? 0 - static_cast<std::uint64_t>(whole)
                                          : static_cast<std::uint64_t>(whole))
                             : 0;
  std::string digits =
      is_whole ? whole_digits(size, form) : real_digits(work, std::abs(real), form);
  std::string front = negative ? "-" : form.sign == '-' ? "" : std::string(1, form.sign);
  const bool based =
      is_whole && (form.type == 'b' || form.type == 'o' || form.type == 'x' || form.type == 'X');
  if (based && form.alternate) front += {'0', form.type};
  const char align = form.align == 0 ? '>' : form.align;
  const std::size_t group = based ? 4 : 3;
  if (align == '=') {
    work.room()(static_cast<double>(form.width));
    const auto room =
        static_cast<std::size_t>(std::max<std::int64_t>(0, form.width - std::ssize(front)));
    if (form.grouping != 0 && form.fill == "0") {
      const auto own = whole_size(digits, group), tail = digits.size() - own;
      auto n = own;
      while (tail + n + (n - 1) / group < room) ++n;
      digits.insert(0, n - own, '0');
      return front + grouped(digits, form.grouping, group);
    }
    if (form.grouping != 0) digits = grouped(digits, form.grouping, group);
    return front + padded(work, std::move(digits), static_cast<std::int64_t>(room), '>', form.fill);
  }
  if (form.grouping != 0) digits = grouped(digits, form.grouping, group);
  return padded(work, front + digits, form.width, align, form.fill);
}

std::string of_code(const Value& value) {
  std::int64_t code = 0;
  if (!value.whole(code) || code < 0 || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
    throw Fault("the format c takes the number of a character");
  std::string out;
  append_char(out, static_cast<std::uint32_t>(code));
  return out;
}

std::string cut(std::string text, std::int64_t precision) {
  if (precision >= 0) text.resize(byte_of(text, static_cast<std::size_t>(precision)));
  return text;
}

// Reads a format; numbers are padded with 0 after their sign.
FieldForm parse_form(std::string_view text, bool of_number) {
  FieldForm form;
  form.fill.clear();
  std::size_t at = 0;
  const auto is_align = [](char c) { return c == '<' || c == '>' || c == '^' || c == '='; };
  if (!text.empty()) {
    const auto first = byte_of(text, 1);
    if (first < text.size() && is_align(text[first])) {
      form.fill = text.substr(0, first);
      form.align = text[first];
      at = first + 1;
    } else if (is_align(text[0])) {
      form.align = text[0];
      at = 1;
    }
  }
  const auto take = [&](std::string_view any) {
    return at < text.size() && any.find(text[at]) != any.npos ? text[at++] : '\0';
  };
  if (const char sign = take("+- ")) form.sign = sign;
  form.alternate = take("#") != 0;
  if (take("0") != 0 && form.fill.empty()) {
    form.fill = "0";
    if (form.align == 0 && of_number) form.align = '=';
  }
  if (form.fill.empty()) form.fill = " ";
  take_whole(text, at, form.width);
  form.grouping = take(",_");
  if (take(".") != 0 && !take_whole(text, at, form.precision))
    throw Fault("the precision of a format is missing");
  form.type = take("bcdeEfFgGnosxX%");
  if (at < text.size()) throw Fault("unknown format {}", text.substr(0, 100));
  return form;
}

std::string field_text(Work& work, const Value& value, std::string_view spec) {
  if (spec.empty()) return work.print(value);
  const FieldForm form = parse_form(spec, value.text() == nullptr);
  if (const auto* text = value.text()) {
    if ((form.type != 0 && form.type != 's') || form.align == '=' || form.sign != '-' ||
        form.alternate || form.grouping != 0)
      throw Fault("a text has no format {}", spec.substr(0, 100));
    return padded(work, cut(*text, form.precision), form.width, form.align == 0 ? '<' : form.align,
        form.fill);
  }
  double number = 0;
  if (!value.number(number))
    throw Fault("a {} has no format {}", type_name(value), spec.substr(0, 100));
  if (form.type == 'c')
    return padded(work, of_code(value), form.width, form.align == 0 ? '<' : form.align, form.fill);
  if (form.type == 's') throw Fault("a {} has no format s", type_name(value));
  return number_text(work, value, form);
}

// Writes a text with fields in braces.
class BraceFormat {
 public:
  BraceFormat(Work& work, const Arguments& arguments) : work_(work), arguments_(arguments) {}
  std::string write(std::string_view form, int depth) {
    if (depth > 3) throw Fault("format(): fields more than 2 deep");
    std::string out;
    for (std::size_t at = 0; at < form.size();) {
      const auto brace = std::min(form.find_first_of("{}", at), form.size());
      out += form.substr(at, brace - at);
      at = brace;
      if (at == form.size()) break;
      if (at + 1 < form.size() && form[at + 1] == form[at] && depth == 1) {
        out += form[at];
        at += 2;
        continue;
      }
      if (form[at] == '}') throw Fault("format(): a single }");
      const auto end = end_of_field(form, at + 1);
      work_.append(out, field(form.substr(at + 1, end - at - 1), depth));
      at = end + 1;
    }
    return out;
  }

 private:
  static std::size_t end_of_field(std::string_view form, std::size_t at) {
    for (int open = 1; at < form.size(); ++at) {
      if (form[at] == '{') ++open;
      if (form[at] == '}' && --open == 0) return at;
    }
    throw Fault("format(): a } is missing");
  }
  // Writes a field: [name][!conversion][:format].
  std::string field(std::string_view text, int depth) {
    std::size_t end = 0;
    for (bool bracket = false; end < text.size(); ++end) {
      if (text[end] == '[') bracket = true;
      if (text[end] == ']') bracket = false;
      if (!bracket && (text[end] == '!' || text[end] == ':')) break;
    }
    Value value = named(text.substr(0, end));
    text.remove_prefix(end);
    if (text.starts_with('!')) {
      if (text.size() < 2 || (text.size() > 2 && text[2] != ':') ||
          (text[1] != 's' && text[1] != 'r'))
        throw Fault("format(): the conversion {} is not supported", text.substr(0, 20));
      value = work_.text(text[1] == 's' ? work_.print(value) : work_.print_repr(value));
      text.remove_prefix(2);
    }
    if (!text.empty()) text.remove_prefix(1);
    return field_text(work_, value, write(text, depth + 1));
  }
  Value named(std::string_view name) {
    const auto end = std::min(name.find_first_of(".["), name.size());
    Value value = first(name.substr(0, end));
    for (std::size_t at = end; at < name.size();) {
      const bool bracket = name[at] == '[';
      if (!bracket && name[at] != '.') throw Fault("format(): only . or [ may follow ]");
      const auto stop = std::min(name.find_first_of(bracket ? "]" : ".[", at + 1), name.size());
      const auto part = name.substr(at + 1, stop - at - 1);
      if (part.empty() || (bracket && stop == name.size()))
        throw Fault("format(): the name of a part is missing");
      std::size_t digits = 0;
      std::int64_t place = 0;
      const bool is_place = bracket && take_whole(part, digits, place) && digits == part.size();
      if (is_place) value = item(work_, value, of_whole(place));
      else if (bracket) value = item(work_, value, work_.text(part));
      else value = attribute(work_, value, std::string(part));
      at = stop + (bracket ? 1 : 0);
    }
    return value;
  }
  Value first(std::string_view name) {
    std::size_t at = 0;
    std::int64_t place = 0;
    const bool counts = name.empty();
    if (counts || (take_whole(name, at, place) && at == name.size())) {
      if (counted_ && *counted_ != counts)
        throw Fault("format(): fields with and without numbers do not mix");
      counted_ = counts;
      if (counts) place = next_++;
      if (place >= std::ssize(arguments_.plain))
        throw Fault("format(): there is no argument {}", place);
      return arguments_.plain[static_cast<std::size_t>(place)];
    }
    if (names_.empty())
      for (const auto& [own, value] : arguments_.named) names_.emplace(own, &value);
    const auto found = names_.find(name);
    if (found == names_.end())
      throw Fault("format(): there is no argument {}", name.substr(0, 100));
    return *found->second;
  }

  Work& work_;
  const Arguments& arguments_;
  std::map<std::string_view, const Value*> names_;
  std::optional<bool> counted_;  // the fields have no numbers
  std::int64_t next_ = 0;
};

// Writes a text with %s and the like.
class PercentFormat {
 public:
  PercentFormat(Work& work, std::string_view form, const Value& values)
      : work_(work), form_(form), values_(values) {
    const auto* list = values.list();
    tuple_ = list != nullptr && list->form == List::Form::tuple ? list : nullptr;
  }
  std::string write() {
    std::string out;
    while (at_ < form_.size()) {
      const auto percent = std::min(form_.find('%', at_), form_.size());
      out += form_.substr(at_, percent - at_);
      at_ = percent;
      if (at_ == form_.size()) break;
      ++at_;
      work_.append(out, field());
    }
    const bool has_keys =
        values_.dict() != nullptr || (tuple_ == nullptr && values_.list() != nullptr);
    if (!has_keys && used_ < (tuple_ != nullptr ? tuple_->items.size() : 1))
      throw Fault("%: not all values are in the text's format");
    return out;
  }

 private:
  const Value& next() {
    const std::size_t n = tuple_ != nullptr ? tuple_->items.size() : 1;
    if (used_ >= n) throw Fault("%: the text's format has more fields than there are values");
    ++used_;
    return tuple_ != nullptr ? tuple_->items[used_ - 1] : values_;
  }
  std::int64_t number() {
    std::int64_t found = 0;
    if (at_ < form_.size() && form_[at_] == '*') {
      ++at_;
      if (!next().whole(found) || std::abs(found) > INT32_MAX) throw Fault("%: * takes an integer");
      return found;
    }
    take_whole(form_, at_, found);
    return found;
  }
  std::string field() {
    const Value* value = nullptr;
    if (at_ < form_.size() && form_[at_] == '(') {
      const std::size_t begin = ++at_;
      for (int open = 1; at_ < form_.size(); ++at_) {
        if (form_[at_] == '(') ++open;
        if (form_[at_] == ')' && --open == 0) break;
      }
      if (at_ == form_.size()) throw Fault("%: a ) is missing");
      if (values_.dict() == nullptr) throw Fault("%: (name) takes a dict");
      const auto key = form_.substr(begin, at_ - begin);
      work_.spend_bytes(key.size());
      value = values_.dict()->find(key);
      if (value == nullptr) throw Fault("%: there is no {}", key.substr(0, 100));
      ++at_;
    }
    FieldForm form;
    bool left = false, zeros = false;
    for (; at_ < form_.size(); ++at_) {
      const char c = form_[at_];
      if (c == '-') left = true;
      else if (c == '+' || (c == ' ' && form.sign != '+')) form.sign = c;
      else if (c == '#') form.alternate = true;
      else if (c == '0') zeros = true;
      else if (c != ' ') break;
    }
    form.width = number();
    if (form.width < 0) left = true, form.width = -form.width;
    if (at_ < form_.size() && form_[at_] == '.') {
      ++at_;
      form.precision = std::max<std::int64_t>(0, number());
    }
    if (at_ < form_.size() && std::string_view("hlL").find(form_[at_]) != std::string_view::npos)
      ++at_;
    if (at_ == form_.size()) throw Fault("%: the text's format ends too early");
    form.type = form_[at_++];
    form.align = left ? '<' : '>';
    if (form.type == '%') return "%";
    const Value& of = value != nullptr ? *value : next();
    if (zeros && !left) form.fill = "0", form.align = '=';
    return converted(of, form);
  }
  std::string converted(const Value& value, FieldForm& form) {
    const char text_align = form.align == '=' ? '>' : form.align;
    double real = 0;
    std::int64_t whole = 0;
    const auto is_one_of = [&](std::string_view types) {
      return types.find(form.type) != types.npos;
    };
    if (is_one_of("sr"))
      return padded(work_,
          cut(form.type == 's' ? work_.print(value) : work_.print_repr(value), form.precision),
          form.width, text_align, " ");
    if (form.type == 'c') {
      if (value.text() != nullptr && character_count(*value.text()) != 1)
        throw Fault("%: c takes one character");
      return padded(work_, value.text() != nullptr ? *value.text() : of_code(value), form.width,
          text_align, " ");
    }
    const bool decimal = is_one_of("diu"), is_real = is_one_of("eEfFgG");
    if (!decimal && !is_real && !is_one_of("xXo"))
      throw Fault("%: the format {} is not supported", form.type);
    if (is_real || !value.whole(whole)) {
      if (!value.number(real) || !(decimal || is_real))
        throw Fault("%: {} does not take a {}", form.type, type_name(value));
      if (is_real) return number_text(work_, {real}, form);
      if (!(std::abs(real) < 9e18)) throw Fault("the number is too large");
      whole = static_cast<std::int64_t>(real);
    }
    if (decimal) form.type = 'd';
    if (form.precision < 0) return number_text(work_, of_whole(whole), form);
    FieldForm digits = form;  // at least so many digits
    digits.fill = "0";
    digits.align = '=';
    digits.precision = -1;
    const bool front = whole < 0 || form.sign != '-';
    digits.width = form.precision + (front ? 1 : 0) + (form.alternate && !decimal ? 2 : 0);
    if (form.align == '=') digits.width = std::max(digits.width, form.width);
    return padded(work_, number_text(work_, of_whole(whole), digits), form.width, text_align, " ");
  }

  Work& work_;
  std::string_view form_;
  const Value& values_;
  const List* tuple_;
  std::size_t at_ = 0, used_ = 0;
};

}  // namespace

std::string padded(
    Work& work, std::string text, std::int64_t width, char align, std::string_view fill) {
  const auto size = static_cast<std::int64_t>(character_count(text));
  if (width <= size) return text;
  const auto more = static_cast<std::size_t>(width - size);
  work.room()(static_cast<double>(text.size()) +
              static_cast<double>(more) * static_cast<double>(fill.size()));
  const std::size_t before = align == '>' ? more : align == '^' ? more / 2 : 0;
  std::string out;
  for (std::size_t i = 0; i < before; ++i) out += fill;
  out += text;
  for (std::size_t i = before; i < more; ++i) out += fill;
  return out;
}

Value percent_format(Work& work, const std::string& form, const Value& values) {
  work.spend_bytes(form.size());
  return work.text(PercentFormat(work, form, values).write());
}

Value brace_format(Work& work, const std::string& form, const Arguments& arguments) {
  return work.text(BraceFormat(work, arguments).write(form, 1));
}

}  // namespace text::chat
