#include "model/tensor_files.h"

#include "core/file_text.h"

namespace model {
namespace {

constexpr std::size_t kIndexBytes = std::size_t{1} << 26;
constexpr const char* kMap = "weight_map";

// Whether the name is a file in the folder itself and cannot lead out of it.
bool stays_inside(const std::string& name) {
  return !name.empty() && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos && name != "." && name != "..";
}

}  // namespace

std::map<std::string, std::string> parse_tensor_index(
    const core::Json& index, const std::string& origin) {
  if (!index.is_object() || !index.contains(kMap) || !index[kMap].is_object())
    core::bad_data("{}: not an index of tensors: it has no \"{}\"", origin, kMap);
  std::map<std::string, std::string> files;
  for (const auto& [tensor, file] : index[kMap].items()) {
    if (!file.is_string() || !stays_inside(file.get_ref<const std::string&>()))
      core::bad_data(
          "{}: tensor {}: {} is not a file of this folder", origin, tensor, core::dump(file));
    files[tensor] = file.get<std::string>();
  }
  return files;
}

TensorFiles::TensorFiles(std::unique_ptr<TensorReader> file) : name_(file->name()) {
  add(std::move(file));
}

TensorFiles::TensorFiles(const std::string& folder) : name_(folder + "/model.safetensors") {
  if (is_gguf(folder)) {
    name_ = folder;
    add(std::make_unique<GgufTensors>(folder));
    return;
  }
  if (core::exists(name_)) {
    add(std::make_unique<SafetensorsReader>(name_));
    return;
  }
  name_ += ".index.json";
  const auto expected = parse_tensor_index(core::read_json(name_, kIndexBytes), name_);
  std::set<std::string> files;
  for (const auto& [tensor, file] : expected) files.insert(file);
  for (const auto& file : files) add(std::make_unique<SafetensorsReader>(folder + "/" + file));
  for (const auto& [tensor, file] : expected) {
    const std::string path = folder + "/" + file;
    const auto found = where_.find(tensor);
    if (found == where_.end())
      core::bad_data("{}: has no tensor {}, although {} names it", path, tensor, name_);
    if (found->second->name() != path)
      core::bad_data(
          "{}: tensor {} is in {}, not in {}", name_, tensor, found->second->name(), path);
  }
  for (const auto& [tensor, file] : where_)
    if (expected.count(tensor) == 0)
      core::bad_data("{}: tensor {} is not in {}", file->name(), tensor, name_);
}

void TensorFiles::add(std::unique_ptr<TensorReader> file) {
  for (const auto& [tensor, entry] : file->entries()) {
    const auto [at, fresh] = where_.emplace(tensor, file.get());
    if (!fresh)
      core::bad_data("{}: tensor {} is also in {}", file->name(), tensor, at->second->name());
  }
  files_.push_back(std::move(file));
}

const TensorReader& TensorFiles::reader(const std::string& tensor) const {
  return *named_tensor(where_, tensor, name_);
}

std::vector<std::string> TensorFiles::tensors() const { return core::keys_of(where_); }

const TensorEntry& TensorFiles::entry(const std::string& tensor) const {
  return reader(tensor).entry(tensor);
}

const Metadata& TensorFiles::metadata() const {
  static const Metadata none;
  return files_.size() == 1 ? files_[0]->metadata() : none;
}

std::optional<GgufRows> TensorFiles::blocks(const std::string& tensor) const {
  const auto* const gguf = dynamic_cast<const GgufTensors*>(&reader(tensor));
  return gguf == nullptr ? std::nullopt : gguf->blocks(tensor);
}

void TensorFiles::verify() const {
  for (const auto& file : files_) file->verify();
}

GgufTensors::GgufTensors(const std::string& path) : GgufTensors(GgufFile(path)) {}

GgufTensors::GgufTensors(std::span<const std::byte> bytes, std::string name)
    : GgufTensors(GgufFile(bytes, std::move(name))) {}

GgufTensors::GgufTensors(GgufFile file)
    : file_(std::make_shared<const GgufFile>(std::move(file))), weights_(gguf_weights(*file_)) {
  for (const auto& [name, weight] : weights_) {
    const auto& tensor = *weight.tensor;
    entries_[name] = {torch::kFloat32, tensor.shape, tensor.begin, tensor.begin + tensor.bytes};
  }
}

std::string GgufTensors::type_of(const std::string& tensor) const {
  entry(tensor);
  return std::string(weights_.at(tensor).tensor->type->name);
}

std::optional<GgufRows> GgufTensors::blocks(const std::string& tensor) const {
  entry(tensor);
  const auto& weight = weights_.at(tensor);
  const auto& of = *weight.tensor;
  if (of.shape.size() != 2 || weight.one_more) return std::nullopt;
  return GgufRows{file_, of.type, file_->bytes_of(of), of.shape[0], weight.rotated_heads};
}

void GgufTensors::fill(
    const std::string& tensor, std::int64_t first, const torch::Tensor& out) const {
  gguf_read_rows(*file_, weights_.at(tensor), first, out.size(0), out.data_ptr<float>());
}

}  // namespace model
