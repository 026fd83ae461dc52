#include "model/pickle/torch_file.h"

namespace model {
namespace {

constexpr std::size_t kCursorBytes = std::size_t{1} << 16;
constexpr std::string_view kOrderedDict = "collections OrderedDict";

enum Op : std::uint8_t {
  kMark = '(',
  kStop = '.',
  kPop = '0',
  kPopMark = '1',
  kDup = '2',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kNone = 'N',
  kBinPersId = 'Q',
  kReduce = 'R',
  kBinString = 'T',
  kShortBinString = 'U',
  kBinUnicode = 'X',
  kAppend = 'a',
  kBuild = 'b',
  kGlobal = 'c',
  kDict = 'd',
  kAppends = 'e',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kList = 'l',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kSetItem = 's',
  kTuple = 't',
  kSetItems = 'u',
  kBinFloat = 'G',
  kBinBytes = 'B',
  kShortBinBytes = 'C',
  kEmptyList = ']',
  kEmptyTuple = ')',
  kEmptyDict = '}',
  kProto = 0x80,
  kNewObj,
  kTuple1 = 0x85,
  kTuple2,
  kTuple3,
  kNewTrue,
  kNewFalse,
  kLong1,
  kLong4,
  kShortBinUnicode,
  kBinUnicode8,
  kBinBytes8,
  kEmptySet,
  kAddItems,
  kFrozenSet,
  kNewObjEx,
  kStackGlobal,
  kMemoize,
  kFrame,
  kByteArray8,
};

constexpr std::size_t kMostNameBytes = std::size_t{1} << 24;  // bytes of all class names

// Reads forward in blocks.
class Cursor {
 public:
  Cursor(const core::RandomSource& source, std::uint64_t begin, std::uint64_t end)
      : source_(source), at_(begin), end_(end) {}

  std::uint64_t at() const { return at_; }
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) const {
    core::bad_data("{}: byte {} of a pickle: {}", source_.name(), at_,
        fmt::format(text, std::forward<Args>(args)...));
  }
  void expect(std::uint64_t n) const {
    if (n > end_ - at_) fail("cut short");
  }

  std::uint8_t byte() {
    expect(1);
    if (at_ < block_begin_ || at_ - block_begin_ >= block_.size()) {
      block_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(kCursorBytes, end_ - at_)));
      source_.read_at(at_, block_);
      block_begin_ = at_;
    }
    return static_cast<std::uint8_t>(block_[static_cast<std::size_t>(at_++ - block_begin_)]);
  }
  std::uint64_t number(int bytes) {  // little-endian
    std::uint64_t n = 0;
    for (int i = 0; i < bytes; ++i) n |= std::uint64_t{byte()} << (8 * i);
    return n;
  }
  std::string text(std::uint64_t length) {
    expect(length);
    std::string out(static_cast<std::size_t>(length), '\0');
    source_.read_at(at_, std::as_writable_bytes(std::span(out.data(), out.size())));
    at_ += length;
    return out;
  }
  std::string line() {
    std::string out;
    for (auto c = byte(); c != '\n'; c = byte()) out += static_cast<char>(c);
    return out;
  }

 private:
  const core::RandomSource& source_;
  std::uint64_t at_, end_;
  core::Bytes block_;
  std::uint64_t block_begin_ = 0;
};

}  // namespace

// The stack machine that executes a pickle: a stack, marks on it, a memo.
class Unpickler {
 public:
  Unpickler(const core::RandomSource& source, std::uint64_t begin, std::uint64_t end)
      : in_(source, begin, std::min(end, begin + std::min(end - begin, kMostPickleBytes))) {}

  Pickle run() {
    while (true) {
      const auto op = in_.byte();
      if (op == kStop) break;
      step(op);
    }
    pickle_.root_ = pop();
    pickle_.end_ = in_.at();
    return std::move(pickle_);
  }

 private:
  using Value = PickleValue;

  void step(std::uint8_t op) {
    switch (op) {
      case kProto:
        if (const auto version = in_.byte(); version > 5) in_.fail("protocol {}", version);
        return;
      case kFrame: in_.number(8); return;
      case kMark:
        bound(marks_.size());
        marks_.push_back(stack_.size());
        return;
      case kPop:
        if (!marks_.empty() && marks_.back() == stack_.size()) marks_.pop_back();
        else pop();
        return;
      case kPopMark: since_mark(); return;
      case kDup: return push(top());
      case kBinPut: return put(in_.number(1));
      case kLongBinPut: return put(in_.number(4));
      case kMemoize: return put(memo_.size());
      case kBinGet: return get(in_.number(1));
      case kLongBinGet: return get(in_.number(4));
      default:
        if (!constant(op) && !container(op) && !object(op))
          in_.fail("opcode 0x{:02x} is not supported; save the checkpoint with torch.save", op);
    }
  }

  bool constant(std::uint8_t op) {
    switch (op) {
      case kNone: make(PickleKind::none); return true;
      case kNewTrue:
      case kNewFalse: make(PickleKind::boolean).integer = op == kNewTrue; return true;
      case kBinInt:
        make(PickleKind::integer).integer = static_cast<std::int32_t>(in_.number(4));
        return true;
      case kBinInt1:
      case kBinInt2:
        make(PickleKind::integer).integer =
            static_cast<std::int64_t>(in_.number(op == kBinInt1 ? 1 : 2));
        return true;
      case kLong1:
      case kLong4: long_integer(in_.number(op == kLong1 ? 1 : 4)); return true;
      case kBinFloat: {
        std::uint64_t bits = 0;  // big-endian
        for (int i = 0; i < 8; ++i) bits = bits << 8 | in_.byte();
        make(PickleKind::real).real = std::bit_cast<double>(bits);
        return true;
      }
      case kBinUnicode:
      case kBinString: make_text(PickleKind::text, 4); return true;
      case kShortBinUnicode:
      case kShortBinString: make_text(PickleKind::text, 1); return true;
      case kBinUnicode8: make_text(PickleKind::text, 8); return true;
      case kBinBytes: make_text(PickleKind::bytes, 4); return true;
      case kShortBinBytes: make_text(PickleKind::bytes, 1); return true;
      case kBinBytes8:
      case kByteArray8: make_text(PickleKind::bytes, 8); return true;
      default: return false;
    }
  }

  bool container(std::uint8_t op) {
    switch (op) {
      case kEmptyList: make(PickleKind::list); return true;
      case kEmptyTuple: make(PickleKind::tuple); return true;
      case kEmptyDict: make(PickleKind::dict); return true;
      case kEmptySet: make(PickleKind::set); return true;
      case kList:
      case kTuple:
      case kFrozenSet:
      case kDict: {
        auto items = since_mark();
        if (op == kDict && items.size() % 2 != 0) in_.fail("a key without a value");
        make(op == kList    ? PickleKind::list
             : op == kTuple ? PickleKind::tuple
             : op == kDict  ? PickleKind::dict
                            : PickleKind::set)
            .items = std::move(items);
        return true;
      }
      case kTuple1:
      case kTuple2:
      case kTuple3: {
        std::vector<const Value*> items(op - kTuple1 + 1u);
        for (auto item = items.rbegin(); item != items.rend(); ++item) *item = pop();
        make(PickleKind::tuple).items = std::move(items);
        return true;
      }
      case kAppend: add({pop()}, 1); return true;
      case kAppends:
      case kAddItems: add(since_mark(), 1); return true;
      case kSetItem: {
        const auto* const value = pop();
        add({pop(), value}, 2);
        return true;
      }
      case kSetItems: add(since_mark(), 2); return true;
      default: return false;
    }
  }

  bool object(std::uint8_t op) {
    switch (op) {
      case kGlobal: {
        const auto module = in_.line();
        make(PickleKind::global).text = module + " " + in_.line();
        return true;
      }
      case kStackGlobal: {
        const auto *const name = pop(), *const module = pop();
        if (name->kind != PickleKind::text || module->kind != PickleKind::text)
          in_.fail("a class whose name is not a text");
        // A few bytes can name one text again and again.
        names_ += module->text.size() + name->text.size();
        if (names_ > kMostNameBytes)
          in_.fail("names of classes of more than {} bytes", kMostNameBytes);
        make(PickleKind::global).text = module->text + " " + name->text;
        return true;
      }
      case kReduce:
      case kNewObj:
      case kNewObjEx: {
        if (op == kNewObjEx) pop();  // keyword arguments
        const auto* const arguments = pop();
        call(pop(), arguments);
        return true;
      }
      case kBuild: {
        const auto* const state = pop();
        if (auto* const target = top(); target->kind == PickleKind::call) target->state = state;
        return true;
      }
      case kBinPersId: {
        const auto* const id = pop();
        make(PickleKind::persistent).items = {id};
        return true;
      }
      default: return false;
    }
  }

  void call(const Value* callee, const Value* arguments) {
    // Pairs passed to OrderedDict's constructor, as Python 2 wrote them.
    if (callee->is_global(kOrderedDict) && arguments->kind == PickleKind::tuple) {
      Value& dict = make(PickleKind::dict);
      // A list may be passed to many dicts, and many times to one, so every visit counts.
      for (const auto* pairs : arguments->items) {
        bound(++looks_);
        for (const auto* pair : pairs->items) {
          bound(++looks_);
          if (pair->items.size() == 2)
            dict.items.insert(dict.items.end(), pair->items.begin(), pair->items.end());
        }
      }
      return;
    }
    if (auto number = numpy_scalar(*callee, *arguments)) make(number->kind) = std::move(*number);
    else make(PickleKind::call).items = {callee, arguments};
  }

  void long_integer(std::uint64_t length) {
    auto bytes = in_.text(length);
    if (length > 8) {
      make(PickleKind::big_integer).text = std::move(bytes);
      return;
    }
    std::uint64_t n = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i)
      n |= std::uint64_t{static_cast<std::uint8_t>(bytes[i])} << (8 * i);
    // Extends the sign of a two's complement number of `length` bytes.
    if (length > 0 && length < 8 && n >> (8 * length - 1) & 1)
      n |= ~std::uint64_t{0} << (8 * length);
    make(PickleKind::integer).integer = static_cast<std::int64_t>(n);
  }

  void make_text(PickleKind kind, int length_bytes) {
    const auto length = in_.number(length_bytes);
    make(kind).text = in_.text(length);
  }

  // Adds the items, `width` values at a time, to the list, set, dict or object below.
  void add(const std::vector<const Value*>& items, std::size_t width) {
    Value* const target = top();
    const bool pairs = width == 2;
    const bool fits = target->kind == PickleKind::call ||
                      (pairs ? target->kind == PickleKind::dict
                             : target->kind == PickleKind::list || target->kind == PickleKind::set);
    if (!fits || items.size() % width != 0) in_.fail("elements of a value that is not a container");
    target->items.insert(target->items.end(), items.begin(), items.end());
  }

  void bound(std::size_t n) const {
    if (n >= kMostPickleValues) in_.fail("more than {} values", kMostPickleValues);
  }
  Value& make(PickleKind kind) {
    bound(pickle_.values_.size());
    Value& value = pickle_.values_.emplace_back();
    value.kind = kind;
    push(&value);
    return value;
  }
  void push(Value* value) {
    bound(stack_.size());
    stack_.push_back(value);
  }
  Value* top() const {
    if (stack_.empty() || (!marks_.empty() && marks_.back() == stack_.size()))
      in_.fail("an empty stack");
    return stack_.back();
  }
  Value* pop() {
    Value* const value = top();
    stack_.pop_back();
    return value;
  }
  std::vector<const Value*> since_mark() {
    if (marks_.empty()) in_.fail("no mark on the stack");
    const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<const Value*> items(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    marks_.pop_back();
    return items;
  }
  void put(std::uint64_t index) {
    bound(memo_.size());
    memo_[index] = top();
  }
  void get(std::uint64_t index) {
    const auto found = memo_.find(index);
    if (found == memo_.end()) in_.fail("{} is not in its memo", index);
    push(found->second);
  }

  Cursor in_;
  Pickle pickle_;
  std::vector<Value*> stack_;
  std::vector<std::size_t> marks_;
  std::size_t looks_ = 0;  // visits of elements passed to an OrderedDict
  std::size_t names_ = 0;  // bytes of class names
  std::unordered_map<std::uint64_t, Value*> memo_;
};

Pickle unpickle(const core::RandomSource& source, std::uint64_t begin, std::uint64_t end) {
  return Unpickler(source, begin, end).run();
}

}  // namespace model
