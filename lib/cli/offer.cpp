#include "cli/offer.h"

namespace cli {
namespace {

std::string* g_kept = nullptr;

using Value = std::variant<bool, std::int64_t, double, std::string, std::vector<std::string>,
    std::vector<std::int64_t>, std::vector<double>>;

// JSON has no infinity.
core::Json to_json(double value) {
  return std::isfinite(value) ? core::Json(value) : core::Json(value > 0 ? "inf" : "-inf");
}
double to_double(const core::Json& json) {
  return json.is_string() ? std::stod(json.get<std::string>()) : json.get<double>();
}

core::Json to_json(const std::vector<double>& values) {
  return core::mapped(values, [](double value) { return to_json(value); });
}

core::Json to_json(const core::Field& field) {
  core::Json value;
  std::visit(
      [&]<class T>(T* target) {
        if constexpr (std::is_same_v<T, double> || std::is_same_v<T, std::vector<double>>)
          value = to_json(*target);
        else value = *target;
      },
      field.target);
  const core::Bounds& bounds = field.bounds;
  auto words = core::Json::array();
  for (const auto& word : field.words) words.push_back({{"text", word.text}, {"held", word.held}});
  return {{"name", field.name}, {"help", field.help}, {"type", field.target.index()},
      {"value", value}, {"choices", field.choices}, {"group", field.group},
      {"short", std::string(field.short_name ? 1 : 0, field.short_name)},
      {"positional", field.positional}, {"required", field.required}, {"greedy", field.greedy},
      {"least", to_json(bounds.least)}, {"most", to_json(bounds.most)},
      {"open_least", bounds.open_least}, {"open_most", bounds.open_most}, {"size", field.size},
      {"words", words}};
}

core::Json to_json(const Command& command) {
  auto fields = core::Json::array();
  for (const auto& field : command.fields.all()) fields.push_back(to_json(field));
  const Program& program = command.program;
  return {{"name", program.name}, {"summary", program.summary}, {"example", program.example},
      {"used_most", program.used_most}, {"output", program.output}, {"draws", program.draws},
      {"fields", fields}};
}

// Holds a field's value at a stable address.
template <std::size_t kType = 0>
core::Field::Target place(std::size_t type, const core::Json& json, std::deque<Value>& values) {
  using T = std::variant_alternative_t<kType, Value>;
  if (type != kType) {
    if constexpr (kType + 1 < std::variant_size_v<Value>)
      return place<kType + 1>(type, json, values);
    else throw std::logic_error("no such type of a field");
  }
  T value{};
  if constexpr (std::is_same_v<T, double>) value = to_double(json);
  else if constexpr (std::is_same_v<T, std::vector<double>>)
    for (const auto& one : json) value.push_back(to_double(one));
  else value = json.get<T>();
  return &std::get<T>(values.emplace_back(std::move(value)));
}

void read_field(const core::Json& json, core::FieldList& fields, std::deque<Value>& values) {
  const auto group = fields.group(json.at("group"));
  core::Field& field =
      fields(json.at("name").get<std::string>(), place(json.at("type"), json.at("value"), values),
          json.at("help"), json.at("choices").get<std::vector<std::string>>());
  const std::string name = json.at("short");
  field.short_name = name.empty() ? char{0} : name[0];
  field.positional = json.at("positional"), field.required = json.at("required");
  field.greedy = json.at("greedy");
  field.bounds = {to_double(json.at("least")), to_double(json.at("most")), json.at("open_least"),
      json.at("open_most")};
  field.size = json.at("size");
  for (const auto& word : json.at("words"))
    field.words.push_back({word.at("text"), word.at("held")});
}

Command read_command(const core::Json& json, std::deque<Value>& values, const Body& body) {
  Command command{{json.at("name"), json.at("summary"), json.at("example"), {},
                      json.at("used_most").get<std::vector<std::string>>(), json.at("output"), {},
                      json.at("draws")},
      {}, body};
  for (const auto& field : json.at("fields")) read_field(field, command.fields, values);
  return command;
}

}  // namespace

std::string offer_of(int (*main)(int, char**)) {
  std::string text;
  g_kept = &text;
  main(0, nullptr);
  g_kept = nullptr;
  return text;
}

bool keep_offer(const Offer& offer) {
  if (!g_kept) return false;
  core::Json json = to_json(offer.whole);
  json["verbs"] = core::Json::array();
  for (const auto& verb : offer.verbs) json["verbs"].push_back(to_json(verb));
  *g_kept = core::dump(json);
  return true;
}

int front(int argc, char** argv, std::string_view offer, const std::function<int()>& work) {
  const auto json = core::Json::parse(offer);
  std::deque<Value> values;
  const Body hand_over = [&](const Context&) {
    close_filled_descriptors();
    return work();
  };
  const bool has_verbs = !json.at("verbs").empty();
  Offer read{read_command(json, values, has_verbs ? Body() : hand_over), {}, true};
  for (const auto& verb : json.at("verbs"))
    read.verbs.push_back(read_command(verb, values, hand_over));
  return run(argc, argv, read);
}

}  // namespace cli
