#include "model/safetensors.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "core/json.h"

namespace model {

std::int64_t TensorEntry::elements() const {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies());
}

const TensorEntry& TensorReader::entry(const std::string& tensor) const {
  return named_tensor(entries_, tensor, name());
}

std::int64_t TensorReader::elements() const {
  return core::sum_of(entries_, [](const auto& named) { return named.second.elements(); });
}

torch::Tensor TensorReader::read(const std::string& tensor) const {
  const TensorEntry& at = entry(tensor);
  auto out = torch::empty(at.shape, at.dtype);
  fill(tensor, 0, out);
  return out;
}

void TensorReader::read_into(const std::string& tensor, const torch::Tensor& out) const {
  const TensorEntry& at = entry(tensor);
  if (!out.is_contiguous() || !out.device().is_cpu() || out.scalar_type() != at.dtype ||
      out.sizes() != at.shape)
    core::bug("tensor {}: read into a tensor of another shape or type", tensor);
  fill(tensor, 0, out);
}

void TensorReader::read_rows_into(
    const std::string& tensor, std::int64_t first, const torch::Tensor& out) const {
  const TensorEntry& at = entry(tensor);
  auto shape = at.shape;
  if (shape.size() >= 2 && out.dim() >= 2) shape[0] = out.size(0);
  if (!out.is_contiguous() || !out.device().is_cpu() || out.scalar_type() != at.dtype ||
      shape.size() < 2 || out.sizes() != shape || first < 0 || first > at.shape[0] - shape[0])
    core::bug("tensor {}: read into rows of another shape or type", tensor);
  fill(tensor, first, out);
}

torch::Tensor map_tensor(const std::string& path, const TensorEntry& entry) {
  if (entry.begin == entry.end || entry.begin % c10::elementSize(entry.dtype) != 0) return {};
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::uint64_t first = entry.begin / page * page, size = entry.end - first;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) core::fail_errno(core::Code::no_input, path + ": cannot open", errno);
  void* const mapped = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE,
      fd, static_cast<off_t>(first));
  const int error = errno;
  ::close(fd);
  if (mapped == MAP_FAILED) core::fail_errno(core::Code::io, path + ": cannot map it", error);
  return torch::from_blob(
      static_cast<std::byte*>(mapped) + (entry.begin - first), entry.shape,
      [mapped, size](void*) { ::munmap(mapped, size); }, entry.dtype);
}

namespace {

static_assert(std::endian::native == std::endian::little, "tensors are written as they lie");

constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kBlockBytes = std::size_t{1} << 22;
constexpr const char* kMetadata = "__metadata__";
/// More than any file of today holds. The bound keeps products of dimensions within 64 bits.
constexpr std::uint64_t kMostElements = std::uint64_t{1} << 53;
constexpr std::uint64_t kMostBytes = 8 * kMostElements;
constexpr std::size_t kMostDimensions = 32;

struct DtypeName {
  torch::Dtype dtype;
  std::string_view name;
};
constexpr std::array kDtypes = {DtypeName{torch::kFloat32, "F32"},
    DtypeName{torch::kFloat64, "F64"}, DtypeName{torch::kFloat16, "F16"},
    DtypeName{torch::kBFloat16, "BF16"}, DtypeName{torch::kInt64, "I64"},
    DtypeName{torch::kInt32, "I32"}, DtypeName{torch::kInt16, "I16"}, DtypeName{torch::kInt8, "I8"},
    DtypeName{torch::kUInt8, "U8"}, DtypeName{torch::kUInt16, "U16"},
    DtypeName{torch::kUInt32, "U32"}, DtypeName{torch::kUInt64, "U64"},
    DtypeName{torch::kBool, "BOOL"}, DtypeName{torch::kFloat8_e4m3fn, "F8_E4M3"},
    DtypeName{torch::kFloat8_e5m2, "F8_E5M2"}};

std::string_view name_of(torch::Dtype dtype, const std::string& tensor) {
  const auto name = dtype_name(dtype);
  if (name.empty()) core::bug("tensor {}: safetensors has no name for its dtype", tensor);
  return name;
}

torch::Dtype dtype_of(std::string_view name, const std::string& origin, const std::string& tensor) {
  if (auto* const known = core::find_by(kDtypes, name, &DtypeName::name)) return known->dtype;
  core::bad_data("{}: tensor {}: unknown dtype \"{}\"", origin, tensor, name);
}

std::span<std::byte> bytes_of(const torch::Tensor& contiguous) {
  return {static_cast<std::byte*>(contiguous.data_ptr()), contiguous.nbytes()};
}

/// Returns the bytes that precede a tensor's data in the digest.
std::string digest_line(
    const std::string& name, std::string_view dtype, std::span<const std::int64_t> shape) {
  return fmt::format("{}\n{}\n[{}]\n", name, dtype, fmt::join(shape, ","));
}

std::string header_of(const NamedTensors& tensors, const Metadata& metadata) {
  auto header = core::OrderedJson::object();
  header[kMetadata] = metadata;
  std::uint64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    if (name.empty() || header.contains(name))
      core::bug("tensor \"{}\" written twice or without a name", name);
    header[name] = {{"dtype", name_of(tensor.scalar_type(), name)}, {"shape", tensor.sizes().vec()},
        {"data_offsets", {offset, offset + tensor.nbytes()}}};
    offset += tensor.nbytes();
  }
  std::string text = core::dump(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

std::uint64_t as_unsigned(
    const core::Json& value, const std::string& origin, const std::string& tensor) {
  if (!value.is_number_unsigned())
    core::bad_data("{}: tensor {}: a shape or offset is not an integer", origin, tensor);
  return value.get<std::uint64_t>();
}

SafetensorsReader::Entry parse_entry(
    const core::Json& json, const std::string& origin, const std::string& name) {
  if (!json.is_object() || json.size() != 3 || !json.contains("dtype") ||
      !json["dtype"].is_string() || !json.contains("shape") || !json["shape"].is_array() ||
      !json.contains("data_offsets") || !json["data_offsets"].is_array() ||
      json["data_offsets"].size() != 2)
    core::bad_data("{}: tensor {}: not described by dtype, shape and data_offsets", origin, name);
  SafetensorsReader::Entry entry;
  entry.dtype = dtype_of(json["dtype"].get_ref<const std::string&>(), origin, name);
  if (json["shape"].size() > kMostDimensions)
    core::bad_value(origin, fmt::format("the number of dimensions of tensor {}", name),
        json["shape"].size(), fmt::format("0 to {}", kMostDimensions));
  std::uint64_t extent = 1;  // dimensions of 0 count as 1, which bounds the strides too
  bool none = false;
  for (const auto& item : json["shape"]) {
    const std::uint64_t n = as_unsigned(item, origin, name);
    none = none || n == 0;
    if (n > kMostElements / extent)
      core::bad_data("{}: tensor {}: its shape is larger than any file", origin, name);
    extent *= std::max<std::uint64_t>(n, 1);
    entry.shape.push_back(static_cast<std::int64_t>(n));
  }
  entry.begin = as_unsigned(json["data_offsets"][0], origin, name);
  entry.end = as_unsigned(json["data_offsets"][1], origin, name);
  if (entry.begin > entry.end || entry.end > kMostBytes)
    core::bad_value(origin, fmt::format("the end of tensor {}", name), entry.end,
        fmt::format("its begin, {}, to {}", entry.begin, kMostBytes));
  const std::uint64_t expected = none ? 0 : extent * c10::elementSize(entry.dtype);
  if (entry.end - entry.begin != expected)
    core::bad_data("{}: tensor {}: its shape needs {} bytes, but its offsets span {}", origin, name,
        expected, entry.end - entry.begin);
  return entry;
}

/// Checks that the entries cover all bytes from `data_start` to `size` without overlap or gap.
void expect_tight(const std::map<std::string, SafetensorsReader::Entry>& entries,
    const std::string& origin, std::uint64_t data_start, std::uint64_t size) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> spans;
  for (const auto& [name, entry] : entries) spans.emplace_back(entry.begin, entry.end);
  std::sort(spans.begin(), spans.end());
  std::uint64_t at = 0;
  for (const auto& [begin, end] : spans) {
    if (begin != at)
      core::bad_data("{}: tensors {} at data byte {}", origin,
          begin < at ? "overlap" : "leave a hole", std::min(begin, at));
    at = end;
  }
  const std::uint64_t whole = data_start + at;
  if (size < whole) core::bad_data("{}: cut short: it ends at byte {} of {}", origin, size, whole);
  if (size > whole) core::bad_data("{}: {} bytes that belong to no tensor", origin, size - whole);
}

}  // namespace

std::string_view dtype_name(torch::Dtype dtype) {
  const auto* const known = core::find_by(kDtypes, dtype, &DtypeName::dtype);
  return known != nullptr ? known->name : "";
}

void hash_tensor(core::Hasher& hasher, const std::string& name, const torch::Tensor& tensor) {
  hasher.update(digest_line(name, name_of(tensor.scalar_type(), name), tensor.sizes()));
  hasher.update(bytes_of(tensor.detach().cpu().contiguous()));
}

void hash_rows(core::Hasher& hasher, const std::string& name, const torch::Tensor& tensor,
    const std::function<void(const torch::Tensor& rows)>& after) {
  const auto values = tensor.detach();
  hasher.update(digest_line(name, name_of(torch::kFloat32, name), values.sizes()));
  const auto row_bytes = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(values.nbytes()) / std::max<std::int64_t>(1, values.size(0)));
  const auto step = std::max<std::int64_t>(1, static_cast<std::int64_t>(kBlockBytes) / row_bytes);
  for (std::int64_t begin = 0; begin < values.size(0); begin += step) {
    const auto rows = values.slice(0, begin, begin + step);
    hasher.update(bytes_of(rows.to(torch::kFloat32)));
    after(rows);
  }
}

void hash_name(core::Hasher& hasher, const std::string& name, torch::IntArrayRef sizes) {
  hasher.update(digest_line(name, name_of(torch::kFloat32, name), sizes));
}

void hash_numbers(core::Hasher& hasher, const torch::Tensor& part) {
  hasher.update(bytes_of(part));
}

core::Digest tensors_digest(const NamedTensors& tensors) {
  std::map<std::string, torch::Tensor> sorted(tensors.begin(), tensors.end());
  core::Hasher hasher;
  for (const auto& [name, tensor] : sorted) hash_tensor(hasher, name, tensor);
  return hasher.digest();
}

core::Digest write_safetensors(
    core::ByteSink& sink, const NamedTensors& tensors, Metadata metadata) {
  // Wide elements come first, so that each tensor is aligned in a memory-mapped file.
  NamedTensors ordered = tensors;
  std::ranges::stable_sort(
      ordered, std::greater(), [](const auto& named) { return named.second.element_size(); });
  metadata["format"] = "pt";
  const core::Digest digest = tensors_digest(ordered);
  metadata[kDigestKey] = digest.hex();
  const std::string header = header_of(ordered, metadata);
  const std::uint64_t length = header.size();
  sink.write(std::as_bytes(std::span(&length, 1)));
  sink.write(header);
  for (const auto& [name, tensor] : ordered)
    sink.write(bytes_of(tensor.detach().cpu().contiguous()));
  return digest;
}

SafetensorsReader::SafetensorsReader(const std::string& path)
    : SafetensorsReader(std::make_unique<core::RandomFile>(path)) {
  path_ = path;
}

SafetensorsReader::SafetensorsReader(std::unique_ptr<core::RandomSource> source)
    : source_(std::move(source)) {
  parse();
}

void SafetensorsReader::parse() {
  const std::string& origin = name();
  const std::uint64_t size = source_->size();
  if (size < kLengthBytes) core::bad_data("{}: cut short, or not safetensors", origin);
  std::uint64_t length = 0;
  source_->read_at(0, std::as_writable_bytes(std::span(&length, 1)));
  if (std::string_view(reinterpret_cast<const char*>(&length), kLengthBytes) == "version ")
    core::bad_data(
        "{}: is a Git LFS pointer instead of the weights; download them: git lfs pull", origin);
  if (length > kHeaderLimit)
    core::bad_data("{}: a header of {} bytes: not safetensors", origin, length);
  if (length > size - kLengthBytes)
    core::bad_data(
        "{}: cut short: it ends at byte {} of a header of {}", origin, size, kLengthBytes + length);
  std::string text(length, '\0');
  source_->read_at(kLengthBytes, std::as_writable_bytes(std::span(text.data(), text.size())));
  if (text.empty() || text[0] != '{') core::bad_data("{}: no JSON header: not safetensors", origin);
  const core::Json header = core::parse_json(text, origin, 4);
  const std::uint64_t data_start = kLengthBytes + length;
  for (const auto& [name, json] : header.items()) {
    if (name != kMetadata) {
      entries_[name] = parse_entry(json, origin, name);
      continue;
    }
    if (!json.is_object()) core::bad_data("{}: {} is not an object", origin, kMetadata);
    for (const auto& [key, value] : json.items()) {
      if (!value.is_string())
        core::bad_data("{}: \"{}\" in {} is not a text", origin, key, kMetadata);
      metadata_[key] = value.get<std::string>();
    }
  }
  expect_tight(entries_, origin, data_start, size);
  for (auto& [name, entry] : entries_) {
    entry.begin += data_start;
    entry.end += data_start;
  }
}

std::string SafetensorsReader::type_of(const std::string& tensor) const {
  return std::string(dtype_name(entry(tensor).dtype));
}

torch::Tensor SafetensorsReader::map(const std::string& tensor) const {
  return path_.empty() ? torch::Tensor() : map_tensor(path_, entry(tensor));
}

void SafetensorsReader::fill(
    const std::string& tensor, std::int64_t first, const torch::Tensor& out) const {
  const Entry& at = entry(tensor);
  const auto row = first == 0 ? 0 : (at.end - at.begin) / static_cast<std::uint64_t>(at.shape[0]);
  source_->read_at(at.begin + static_cast<std::uint64_t>(first) * row, bytes_of(out));
}

void SafetensorsReader::read_range(
    const std::string& tensor, std::int64_t begin, const torch::Tensor& out) const {
  const auto& at = entry(tensor);
  if (!out.is_contiguous() || !out.device().is_cpu() || out.scalar_type() != at.dtype ||
      begin < 0 || begin > at.elements() - out.numel())
    core::bug("tensor {}: a range that does not fit it", tensor);
  const auto bytes = static_cast<std::uint64_t>(begin) * out.element_size();
  source_->read_at(at.begin + bytes, bytes_of(out));
}

void SafetensorsReader::verify() const {
  const auto expected = metadata_.find(kDigestKey);
  if (expected == metadata_.end()) return;
  core::Hasher hasher;
  core::Bytes block(kBlockBytes);
  for (const auto& [tensor, at] : entries_) {
    hasher.update(digest_line(tensor, name_of(at.dtype, tensor), at.shape));
    for (std::uint64_t offset = at.begin; offset < at.end; offset += block.size()) {
      const auto part =
          std::span(block).first(std::min<std::uint64_t>(block.size(), at.end - offset));
      source_->read_at(offset, part);
      hasher.update(part);
    }
  }
  if (hasher.digest().hex() != expected->second)
    core::bad_data("{}: corrupt file: checksum mismatch (XXH3 {}, expected {})", name(),
        hasher.digest().hex(), expected->second);
}

TensorMap read_safetensors(const std::string& path) {
  const SafetensorsReader reader(path);
  reader.verify();
  TensorMap tensors;
  for (const auto& [name, entry] : reader.entries()) tensors[name] = reader.read(name);
  return tensors;
}

}  // namespace model
