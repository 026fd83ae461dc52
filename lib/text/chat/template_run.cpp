#include "text/chat/template_run.h"

#include "text/python/python_text.h"

namespace text::chat {

using namespace python;

struct Scope {
  std::shared_ptr<Scope> parent;
  Names names = {};

  const Value* find(std::string_view name) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->parent.get())
      if (const auto found = scope->names.find(name); found != scope->names.end())
        return &found->second;
    return nullptr;
  }
  void set(const std::string& name, Value value) { names.insert_or_assign(name, std::move(value)); }
};

namespace {

using What = Expression::What;

constexpr int kDeepestCall = 700;  // nesting limit of expressions, blocks and macros

class Run {
 public:
  Run(const Dict& variables, Work work, std::time_t now)
      : work_(work), now_(now), scope_(std::make_shared<Scope>()) {
    for (const char* name : {"range", "namespace", "raise_exception", "strftime_now", "dict"})
      scope_->set(name, {std::make_shared<const Function>(Function{name, nullptr, nullptr, {}})});
    for (const auto& [name, value] : variables.members) scope_->set(*name.text(), value);
    scope_ = std::make_shared<Scope>(Scope{scope_});
  }
  ~Run() {
    // Break reference cycles of namespaces and macros.
    for (const auto& space : spaces_) space->members.clear();
    for (const auto& home : homes_) home->names.clear();
  }
  Run(Run&&) = delete;

  std::string run(const Block& block) {
    std::string out;
    out_ = &out;
    execute(block);
    return out;
  }
  int line() const { return line_; }

 private:
  enum class Flow : std::uint8_t { on, breaks, continues };

  core::ScopedValue<int> deeper() {
    if (depth_ == kDeepestCall) throw Fault("calls and expressions are too deep");
    return {depth_, depth_ + 1};
  }
  // Names that are set inside the scope disappear at its end.
  core::ScopedValue<std::shared_ptr<Scope>> inner_scope(std::shared_ptr<Scope> parent) {
    return {scope_, std::make_shared<Scope>(Scope{std::move(parent)})};
  }

  void print(const std::string& text) { work_.append(*out_, text); }
  template <class Body> std::string caught(const Body& body) {
    std::string text;
    const core::ScopedValue to_text(out_, &text);
    body();
    return text;
  }

  // ---- statements

  Flow execute(const Block& block) {
    for (const auto& statement : block) {
      const Flow flow = execute(*statement);
      if (flow != Flow::on) return flow;
    }
    return Flow::on;
  }

  Flow execute(const Statement& statement) {
    const auto guard = deeper();
    line_ = statement.line;
    work_.spend(1);
    switch (statement.what) {
      case Statement::What::text: print(statement.text); return Flow::on;
      case Statement::What::print: {
        const Value value = evaluate(*statement.value);
        line_ = statement.line;
        print(work_.print(value));
        return Flow::on;
      }
      case Statement::What::if_:
        for (const auto& [condition, body] : statement.branches)
          if (truth(evaluate(*condition))) return execute(body);
        return execute(statement.otherwise);
      case Statement::What::for_: return loop(statement);
      case Statement::What::set: set(statement); return Flow::on;
      case Statement::What::scope: {
        std::vector<std::pair<std::string, Value>> given;
        for (const auto& [name, value] : statement.with) given.emplace_back(name, evaluate(*value));
        const auto inner = inner_scope(scope_);
        for (auto& [name, value] : given) set_name(name, std::move(value));
        return execute(statement.body);
      }
      case Statement::What::macro:
        work_.spend(kStepsOfObject + statement.macro.name.size() / 16);
        scope_->set(statement.macro.name,
            {std::make_shared<const Function>(
                Function{statement.macro.name, nullptr, &statement.macro, scope_})});
        homes_.push_back(scope_);
        return Flow::on;
      case Statement::What::filter: {
        Flow flow = Flow::on;
        const std::string text = caught([&] {
          const auto inner = inner_scope(scope_);
          flow = execute(statement.body);
        });
        print(work_.print(filtered(*statement.value, text)));
        return flow;
      }
      case Statement::What::break_: return Flow::breaks;
      case Statement::What::continue_: return Flow::continues;
    }
    return Flow::on;
  }

  // Applies the filters of a block to its output.
  Value filtered(const Expression& filters, const std::string& text) {
    const core::ScopedValue to_filter(block_, work_.text(text));
    return evaluate(filters);
  }

  void set_name(const std::string& name, Value value) {
    work_.spend_bytes(name.size());
    scope_->set(name, std::move(value));
  }
  void assign(const Target& target, const Value& value) {
    if (!target.member.empty()) {
      work_.spend_bytes(target.names[0].size() + target.member.size());
      const Value* found = scope_->find(target.names[0]);
      const auto* space =
          found != nullptr ? std::get_if<std::shared_ptr<Space>>(&found->is) : nullptr;
      if (space == nullptr)
        throw Fault("{} is not a namespace, so {}.{} cannot be set", target.names[0],
            target.names[0], target.member);
      of_list({value});  // throws if it is nested too deeply
      (*space)->members.insert_or_assign(target.member, value);
      return;
    }
    if (!target.unpacks) return set_name(target.names[0], value);
    const auto parts = elements(work_, value);
    if (parts->items.size() != target.names.size())
      throw Fault("{} values for {} names", parts->items.size(), target.names.size());
    for (std::size_t i = 0; i < target.names.size(); ++i)
      set_name(target.names[i], parts->items[i]);
  }

  void set(const Statement& statement) {
    if (statement.value) {
      const Value value = evaluate(*statement.value);
      line_ = statement.line;
      return assign(statement.target, value);
    }
    const std::string text = caught([&] {
      const auto inner = inner_scope(scope_);
      execute(statement.body);
    });
    const Value value =
        statement.condition ? filtered(*statement.condition, text) : work_.text(text);
    assign(statement.target, value);
  }

  Flow loop(const Statement& statement) {
    const Value over = evaluate(*statement.value);
    line_ = statement.line;
    auto list = elements(work_, over);
    if (statement.condition) {
      std::vector<Value> kept;
      for (const auto& one : list->items) {
        work_.spend(3);
        const auto inner = inner_scope(scope_);
        assign(statement.target, one);
        if (truth(evaluate(*statement.condition))) kept.push_back(one);
      }
      const Value all = of_list(std::move(kept));
      list = std::get<std::shared_ptr<const List>>(all.is);
    }
    for (std::size_t at = 0; at < list->items.size(); ++at) {
      work_.spend(1);
      const auto inner = inner_scope(scope_);
      assign(statement.target, list->items[at]);
      scope_->set("loop", {std::make_shared<const Loop>(Loop{list, at})});
      if (execute(statement.body) == Flow::breaks) break;
    }
    if (!list->items.empty()) return Flow::on;
    const auto inner = inner_scope(scope_);
    return execute(statement.otherwise);
  }

  // ---- expressions

  Value evaluate(const Expression& expression) {
    const auto guard = deeper();
    line_ = expression.line;
    work_.spend_bytes(expression.text.size());
    switch (expression.what) {
      case What::constant: return expression.constant;
      case What::name: return named(expression.text);
      case What::list:
      case What::tuple:
        return work_.list(values(expression),
            expression.what == What::list ? List::Form::list : List::Form::tuple);
      case What::dict: return dict(expression);
      case What::attribute: return attribute(work_, part(expression, 0), expression.text);
      case What::item: {
        const Value of = part(expression, 0), key = part(expression, 1);
        return item(work_, of, key);
      }
      case What::slice: return sliced(expression);
      case What::call: return call(expression);
      case What::filter: {
        const Value value = expression.parts[0] ? evaluate(*expression.parts[0]) : block_;
        const auto given = arguments(expression);
        return apply_filter(work_, expression.text, value, given);
      }
      case What::test: {
        const Value value = evaluate(*expression.parts[0]);
        const auto given = arguments(expression);
        return of_bool(apply_test(work_, expression.text, value, given));
      }
      case What::unary: {
        const Value value = part(expression, 0);
        if (expression.text == "not") return of_bool(!truth(value));
        const Value down = negative(value);
        return expression.text == "-" ? down : negative(down);
      }
      case What::binary: return binary(expression);
      case What::compare: return comparison(expression);
      case What::choice:
        if (truth(evaluate(*expression.parts[1]))) return evaluate(*expression.parts[0]);
        return expression.parts[2]
                   ? evaluate(*expression.parts[2])
                   : undefined(
                         "the inline if-expression evaluated to false and no else section was "
                         "defined");
    }
    return {None{}};
  }

  // Evaluates a part, and goes on in the line of the whole.
  Value part(const Expression& expression, std::size_t i) {
    Value value = evaluate(*expression.parts[i]);
    line_ = expression.line;
    return value;
  }
  Value named(const std::string& name) {
    if (const Value* found = scope_->find(name)) return *found;
    work_.spend(kStepsOfObject);
    return undefined(fmt::format("'{}' is undefined", name.substr(0, 100)));
  }
  std::vector<Value> values(const Expression& expression) {
    return core::mapped(expression.parts, [&](const auto& part) { return evaluate(*part); });
  }
  Value dict(const Expression& expression) {
    std::vector<std::pair<Value, Value>> members;
    for (std::size_t i = 0; i < expression.parts.size(); i += 2) {
      Value key = evaluate(*expression.parts[i]);
      members.emplace_back(std::move(key), evaluate(*expression.parts[i + 1]));
    }
    line_ = expression.line;
    return made_dict(std::move(members));
  }
  // Pays for sorting the keys.
  Value made_dict(std::vector<std::pair<Value, Value>> members) {
    std::size_t sum = 0;
    for (const auto& [key, value] : members) sum += 4 + extent(key);
    work_.spend(sum * static_cast<std::size_t>(std::bit_width(members.size())));
    return of_dict(std::move(members));
  }
  Value sliced(const Expression& expression) {
    std::optional<Value> parts[4];
    for (std::size_t i = 0; i < 4; ++i)
      if (expression.parts[i]) parts[i] = evaluate(*expression.parts[i]);
    line_ = expression.line;
    const auto end = [&](std::size_t i) { return parts[i] ? &*parts[i] : nullptr; };
    return slice(work_, *parts[0], end(1), end(2), end(3));
  }
  Value binary(const Expression& expression) {
    const Value left = evaluate(*expression.parts[0]);
    if (expression.text == "and") return truth(left) ? evaluate(*expression.parts[1]) : left;
    if (expression.text == "or") return truth(left) ? left : evaluate(*expression.parts[1]);
    const Value right = part(expression, 1);
    return operate(work_, expression.text, left, right);
  }
  Value comparison(const Expression& expression) {
    Value left = evaluate(*expression.parts[0]);
    for (std::size_t i = 0; i < expression.operators.size(); ++i) {
      Value right = part(expression, i + 1);
      if (!compare(work_, expression.operators[i], left, right)) return of_bool(false);
      left = std::move(right);
    }
    return of_bool(true);
  }
  Arguments arguments(const Expression& expression) {
    Arguments given;
    for (const auto& [name, value] : expression.arguments) {
      work_.spend_bytes(name.size());
      if (name.empty()) given.plain.push_back(evaluate(*value));
      else given.named.emplace_back(name, evaluate(*value));
    }
    line_ = expression.line;
    return given;
  }

  Value call(const Expression& expression) {
    const Value callee = evaluate(*expression.parts[0]);
    const auto given = arguments(expression);
    expect_defined(callee);
    const auto* found = std::get_if<std::shared_ptr<const Function>>(&callee.is);
    if (found == nullptr) throw Fault("a value of type {} cannot be called", type_name(callee));
    const Function& function = **found;
    if (function.macro != nullptr) return call_macro(function, given);
    if (function.self) return call_method(work_, *function.self, function.name, given);
    if (function.name == "range") return range(work_, given);
    if (function.name == "raise_exception")
      throw Fault(
          given.plain.empty() ? "the template raised an exception" : work_.print(given.plain[0]));
    if (function.name == "strftime_now") return time_text(given);
    return members_of(function, given);
  }

  // namespace(...) and dict(...).
  Value members_of(const Function& function, const Arguments& given) {
    std::vector<std::pair<Value, Value>> members;
    for (const auto& first : given.plain) {
      if (first.dict() == nullptr) throw Fault("{}() takes a dict and names", function.name);
      work_.spend(4 * first.dict()->members.size());
      for (const auto& member : first.dict()->members) members.push_back(member);
    }
    for (const auto& [key, value] : given.named) members.emplace_back(work_.text(key), value);
    Value made = made_dict(std::move(members));
    if (function.name == "dict") return made;
    const auto space = std::make_shared<Space>();
    work_.spend(kStepsOfObject * (1 + made.dict()->members.size()));
    for (const auto& [key, value] : made.dict()->members)
      if (key.text() != nullptr) space->members.emplace(*key.text(), value);
    spaces_.push_back(space);
    return {space};
  }

  Value time_text(const Arguments& given) {
    if (given.plain.size() != 1 || given.plain[0].text() == nullptr)
      throw Fault("strftime_now() takes a format");
    work_.read(given.plain[0]);
    std::tm parts{};
    ::localtime_r(&now_, &parts);
    char text[1024];
    const std::string form = *given.plain[0].text() + ".";  // the dot makes every result non-empty
    const auto n = std::strftime(text, sizeof text, form.c_str(), &parts);
    if (n == 0) throw Fault("strftime_now(): the format gives too long a text");
    return of_text(std::string(text, n - 1));
  }

  Value call_macro(const Function& function, const Arguments& given) {
    const MacroNode& macro = *function.macro;
    if (given.plain.size() > macro.parameters.size())
      throw Fault(
          "macro '{}' takes not more than {} arguments", macro.name, macro.parameters.size());
    const auto inner = inner_scope(function.home);
    std::map<std::string_view, const Value*> by_name;
    for (const auto& [name, value] : given.named) by_name[name] = &value;
    std::size_t used = 0;
    for (std::size_t i = 0; i < macro.parameters.size(); ++i) {
      const auto& [name, otherwise] = macro.parameters[i];
      const auto found = by_name.find(name);
      const bool named = found != by_name.end(), in_order = i < given.plain.size();
      if (named && in_order) throw Fault("macro '{}' got two values for '{}'", macro.name, name);
      if (named) ++used;
      if (!named && !in_order && !otherwise) work_.spend(kStepsOfObject);
      set_name(name, in_order    ? given.plain[i]
                     : named     ? *found->second
                     : otherwise ? evaluate(*otherwise)
                                 : undefined(fmt::format("parameter '{}' was not provided", name)));
    }
    if (used < given.named.size())
      throw Fault("macro '{}' takes no argument '{}'", macro.name, given.named.back().first);
    return work_.text(caught([&] { execute(macro.body); }));
  }

  Work work_;
  std::time_t now_;
  std::shared_ptr<Scope> scope_;
  std::string* out_ = nullptr;
  Value block_ = {None{}};
  int line_ = 1, depth_ = 0;
  std::vector<std::shared_ptr<Space>> spaces_;
  std::vector<std::shared_ptr<Scope>> homes_;
};

}  // namespace

std::string run_template(const Block& block, const Dict& variables, Work work, std::time_t now,
    const std::string& origin) {
  Run run(variables, work, now);
  try {
    return run.run(block);
  } catch (const Fault& fault) {
    constexpr std::size_t kMost = 500;  // limit of untrusted text
    core::bad_data("{}:{}: {}", origin, run.line(),
        core::printable(std::string_view(fault.what()).substr(0, kMost)));
  }
}

}  // namespace text::chat
