#include "model/imports/import_map.h"

#include <charconv>

#include "core/plain_text.h"

namespace model {
namespace {

constexpr std::size_t kKeysShown = 6, kKeyBytesShown = 40;
constexpr std::size_t kMostTensorNameBytes = std::size_t{1} << 10;  // bytes of a tensor's name
// Limits as multiples of the file's size. Taken bytes count twice for a shared matrix read under
// two names. Read bytes are more: a column-major matrix is read with its row stride.
constexpr std::uint64_t kMostTaken = 4, kMostRead = 16;
// Limit of computed bytes. Embedding vectors that go through a projection become as wide as the
// model, at most four times as wide in any trained model. A table of positions is smaller than its
// layers. The constant is for models of a few rows.
constexpr std::uint64_t kMostMade = 16, kAlwaysMade = std::uint64_t{1} << 24;
constexpr std::int64_t kRowsAtOnce = 1 << 10;
constexpr double kMostWords = 4e9, kMostSegment = 16e6;  // limits of a configuration
constexpr std::string_view kNamespace = "argparse Namespace";

constexpr const ImportMap* kMaps[] = {&nanogpt_map, &fairseq_map, &transformer_xl_map};

}  // namespace

StateDict::StateDict(
    const TorchFile& file, const PickleValue& dict, std::vector<std::string> prefixes)
    : file_(file) {
  if (dict.kind != PickleKind::dict) core::bad_data("{}: has no named tensors", origin());
  for (std::size_t i = 0; i + 1 < dict.items.size(); i += 2) {
    const auto &key = *dict.items[i], &value = *dict.items[i + 1];
    if (key.kind != PickleKind::text) continue;
    std::string name = key.text.substr(0, kMostTensorNameBytes * 2);  // one text may be many keys
    for (const auto& prefix : prefixes)
      if (name.starts_with(prefix)) name.erase(0, prefix.size());
    put(name, value);
  }
}

StateDict::StateDict(
    const TorchFile& file, const std::map<std::string, const PickleValue*>& weights)
    : file_(file) {
  for (const auto& [name, value] : weights) put(name, *value);
}

void StateDict::put(const std::string& name, const PickleValue& value) {
  if (name.size() > kMostTensorNameBytes)
    core::bad_data(
        "{}: the name of a tensor has more than {} bytes", origin(), kMostTensorNameBytes);
  if (TorchFile::is_tensor(value)) values_[name] = &value;
  else others_.insert(name);
}

bool StateDict::has_any(std::string_view start) const {
  const auto found = values_.lower_bound(std::string(start));
  return found != values_.end() && found->first.starts_with(start);
}

const PickleValue& StateDict::value(const std::string& name) const {
  const auto found = values_.find(name);
  if (others_.count(name) > 0)
    core::bad_data("{}: {} is not a dense tensor: it is sparse, quantised or none", origin(), name);
  if (found == values_.end()) core::bad_data("{}: has no tensor {}", origin(), name);
  return *found->second;
}

bool StateDict::same(const std::string& a, const std::string& b) const {
  return file_.place(value(a), a) == file_.place(value(b), b);
}

std::vector<std::int64_t> StateDict::shape(const std::string& name, std::size_t dimensions) const {
  const auto shape = file_.place(value(name), name).shape;
  if (shape.size() != dimensions)
    core::bad_data("{}: tensor {} has shape ({}), not {} dimensions", origin(), name,
        fmt::join(shape, ", "), dimensions);
  return shape;
}

torch::Tensor StateDict::take(const std::string& name, bool own_type) {
  const auto place = file_.place(value(name), name);
  const auto width = c10::elementSize(place.dtype);
  taken_ += static_cast<std::uint64_t>(place.elements()) * width;
  read_ += static_cast<std::uint64_t>(place.span()) * width;
  if (taken_ > kMostTaken * file_.size() || read_ > kMostRead * file_.size())
    core::bad_data("{}: its tensors up to {} overlap: they take {} bytes of a file of {}", origin(),
        name, std::max(taken_, read_), file_.size());
  const auto tensor = file_.read(value(name), name);
  if (!tensor.is_floating_point())
    core::bad_data("{}: tensor {} has type {}, which is not floating point", origin(), name,
        c10::toString(tensor.scalar_type()));
  done_.insert(name);
  return own_type ? tensor : tensor.to(torch::kFloat32);
}

void StateDict::expect_makes(std::int64_t rows, std::int64_t columns, const std::string& what) {
  const double bytes = 4.0 * static_cast<double>(rows) * static_cast<double>(columns),
               most = static_cast<double>(kMostMade * file_.size() + kAlwaysMade);
  if (bytes + static_cast<double>(made_) > most)
    core::bad_data("{}: {} would have shape ({}, {}), more than a file of {} bytes can contain",
        origin(), what, rows, columns, file_.size());
  made_ += static_cast<std::uint64_t>(bytes);
}

torch::Tensor StateDict::product(
    const torch::Tensor& rows, const torch::Tensor& projection, const std::string& what) {
  if (rows.dim() != 2 || projection.dim() != 2 || rows.size(1) != projection.size(1))
    core::bad_data("{}: {}: shape ({}) does not match a projection of ({})", origin(), what,
        fmt::join(rows.sizes().vec(), ", "), fmt::join(projection.sizes().vec(), ", "));
  expect_makes(rows.size(0), projection.size(0), what);
  const auto out = torch::empty({rows.size(0), projection.size(0)});
  const auto wide = projection.to(torch::kFloat64).t();
  for (std::int64_t at = 0; at < rows.size(0); at += kRowsAtOnce) {
    const auto part = rows.slice(0, at, at + kRowsAtOnce);
    out.slice(0, at, at + kRowsAtOnce).copy_(part.to(torch::kFloat64).mm(wide));
  }
  return out;
}

torch::Tensor StateDict::take_rows(const std::vector<std::string>& names) {
  std::vector<torch::Tensor> parts;
  for (const auto& name : names) {
    parts.push_back(take(name));
    const auto& part = parts.back();
    if (part.dim() == 0 || part.sizes().slice(1) != parts[0].sizes().slice(1))
      core::bad_data("{}: tensor {} does not fit below {}", origin(), name, names[0]);
  }
  return torch::cat(parts);
}

void StateDict::ignore(const std::vector<std::string_view>& ends) {
  for (const auto& entry : values_) {
    const auto& name = entry.first;
    if (std::any_of(ends.begin(), ends.end(), [&](auto end) { return name.ends_with(end); }))
      done_.insert(name);
  }
}

void StateDict::expect_none_left() const {
  if (const auto names = left(); !names.empty())
    core::bad_data("{}: tensor {} matches no part of the model", origin(), names[0]);
}

std::vector<std::string> StateDict::left() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : values_)
    if (done_.count(name) == 0) names.push_back(name);
  return names;
}

Settings::Settings(const std::string& origin, const PickleValue* value, const std::string& what)
    : origin_(origin), what_(what), dict_(value) {
  const bool object =
      value != nullptr && value->kind == PickleKind::call && value->items[0]->is_global(kNamespace);
  if (object) dict_ = value->state;
  if (dict_ == nullptr || dict_->kind != PickleKind::dict)
    core::bad_data("{}: \"{}\" is not a dict of settings", origin, what);
}

const PickleValue* Settings::find(const char* key) const {
  const auto* const found = dict_->find(key);
  return found == nullptr || found->kind == PickleKind::none ? nullptr : found;
}

bool Settings::has(const char* key) const { return find(key) != nullptr; }

void Settings::wrong(const char* key) const {
  core::bad_data("{}: \"{}\" of \"{}\" is missing or has the wrong type", origin_, key, what_);
}

void Settings::unsupported(const char* key, const std::string& value) const {
  core::bad_config("{}: \"{}\" of \"{}\": {} is not supported", origin_, key, what_,
      value.substr(0, kKeyBytesShown));
}

std::int64_t Settings::whole(const char* key) const {
  const auto* const value = find(key);
  if (value == nullptr || value->kind != PickleKind::integer) wrong(key);
  return value->integer;
}

std::int64_t Settings::whole(const char* key, std::int64_t otherwise) const {
  return has(key) ? whole(key) : otherwise;
}

double Settings::number(const char* key, double otherwise) const {
  const auto* const value = find(key);
  if (value == nullptr) return otherwise;
  if (value->kind == PickleKind::integer) return static_cast<double>(value->integer);
  if (value->kind != PickleKind::real) wrong(key);
  return value->real;
}

bool Settings::truth(const char* key, bool otherwise) const {
  const auto* const value = find(key);
  if (value == nullptr) return otherwise;
  if (value->kind != PickleKind::boolean && value->kind != PickleKind::integer) wrong(key);
  return value->integer != 0;
}

std::string Settings::text(const char* key, const std::string& otherwise) const {
  const auto* const value = find(key);
  if (value == nullptr) return otherwise;
  if (value->kind != PickleKind::text) wrong(key);
  return value->text;
}

std::vector<std::int64_t> Settings::numbers(const char* key) const {
  const auto* const value = find(key);
  std::vector<std::int64_t> all;
  if (value == nullptr) return all;
  if (value->kind == PickleKind::list || value->kind == PickleKind::tuple) {
    for (const auto* item : value->items) {
      if (item->kind != PickleKind::integer) wrong(key);
      all.push_back(item->integer);
    }
    return all;
  }
  if (value->kind != PickleKind::text) wrong(key);
  const char *at = value->text.data(), *const end = at + value->text.size();
  while (at < end) {
    std::int64_t number = 0;
    const auto [next, error] = std::from_chars(at, end, number);
    if (error != std::errc() || (next < end && *next != ',')) wrong(key);
    all.push_back(number);
    at = next < end ? next + 1 : end;
  }
  return all;
}

void expect_possible(const ImportedModel& model, const std::string& origin) {
  auto options = model.options;
  auto vocabulary = model.vocabulary;
  auto segment =
      model.facts.is_object() ? model.facts.value("segment", std::int64_t{0}) : std::int64_t{0};
  core::FieldList known = core::list_fields(options);
  known("segment", segment, "").between(0, kMostSegment);
  known("vocabulary-size", vocabulary, "").between(0, kMostWords);
  try {
    core::expect_within_bounds(known);
  } catch (const core::Error& error) { core::bad_data("{}: {}", origin, error.what()); }
}

const ImportMap& import_map_of(const TorchFile& file) {
  std::vector<std::string_view> programs;
  for (const auto* map : kMaps) {
    if (map->takes(file.root())) return *map;
    programs.push_back(map->program);
  }
  programs.emplace_back("RWKV-LM");  // rwkv_file.h
  std::vector<std::string> keys;
  const auto& items =
      file.root().kind == PickleKind::dict ? file.root().items : std::vector<const PickleValue*>();
  for (std::size_t i = 0; i + 1 < items.size() && keys.size() < kKeysShown; i += 2)
    if (items[i]->kind == PickleKind::text)
      keys.push_back(core::printable(items[i]->text.substr(0, kKeyBytesShown)));
  core::bad_data("{}: not a checkpoint of {}: it contains {}", file.name(),
      fmt::join(programs, ", "),
      keys.empty() ? "no dict of named tensors" : fmt::format("{}", fmt::join(keys, ", ")));
}

}  // namespace model
