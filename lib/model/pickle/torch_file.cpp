#include "model/pickle/torch_file.h"

namespace model {
namespace {

constexpr std::string_view kTensor = "torch._utils _rebuild_tensor_v2";
constexpr std::string_view kOldTensor = "torch._utils _rebuild_tensor";
constexpr std::string_view kParameter = "torch._utils _rebuild_parameter";
constexpr std::string_view kPickleName = "/data.pkl";
/// 0x1950a86a20f9469cfc6c
constexpr std::string_view kMagic("\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 10);
constexpr std::int64_t kStreamVersion = 1001;
constexpr std::size_t kMostDimensions = 32;
constexpr std::int64_t kMostElements = std::int64_t{1} << 53;
constexpr std::size_t kMostKeyBytes = 256;  // torch's are numbers; one may be copied many times

struct StorageType {
  std::string_view name;
  torch::Dtype dtype;
};
constexpr std::array kStorageTypes = {StorageType{"torch FloatStorage", torch::kFloat32},
    StorageType{"torch DoubleStorage", torch::kFloat64},
    StorageType{"torch HalfStorage", torch::kFloat16},
    StorageType{"torch BFloat16Storage", torch::kBFloat16},
    StorageType{"torch LongStorage", torch::kInt64}, StorageType{"torch IntStorage", torch::kInt32},
    StorageType{"torch ShortStorage", torch::kInt16},
    StorageType{"torch CharStorage", torch::kInt8}, StorageType{"torch ByteStorage", torch::kUInt8},
    StorageType{"torch BoolStorage", torch::kBool}};

// Returns an item of a tuple, or null if the tuple is shorter.
const PickleValue* item(const PickleValue& tuple, std::size_t i) {
  return tuple.kind == PickleKind::tuple && i < tuple.items.size() ? tuple.items[i] : nullptr;
}

bool is_whole(const PickleValue* value) {
  return value != nullptr && value->kind == PickleKind::integer;
}

// Returns the tensor of a parameter, or the value itself.
const PickleValue& without_parameter(const PickleValue& value) {
  const auto* const arguments = value.arguments_of(kParameter);
  const auto* const data = arguments == nullptr ? nullptr : item(*arguments, 0);
  return data == nullptr ? value : *data;
}

const PickleValue* tensor_arguments(const PickleValue& value) {
  const auto* const now = value.arguments_of(kTensor);
  return now == nullptr ? value.arguments_of(kOldTensor) : now;
}

// Returns ("storage", TYPE, KEY, DEVICE, ELEMENTS). In a stream a view follows: None, or (KEY,
// OFFSET, ELEMENTS).
const PickleValue* storage_id(const PickleValue* value) {
  if (value == nullptr || value->kind != PickleKind::persistent) return nullptr;
  const PickleValue& id = *value->items[0];
  const auto *const mark = item(id, 0), *const type = item(id, 1), *const key = item(id, 2);
  const bool fits = mark != nullptr && mark->text == "storage" && type != nullptr &&
                    type->kind == PickleKind::global && key != nullptr &&
                    key->kind == PickleKind::text && key->text.size() <= kMostKeyBytes &&
                    is_whole(item(id, 4));
  return fits ? &id : nullptr;
}

std::vector<std::int64_t> numbers(const PickleValue* tuple, const std::string& what) {
  if (tuple == nullptr || tuple->kind != PickleKind::tuple || tuple->items.size() > kMostDimensions)
    core::bad_data("{}: a tensor without a shape", what);
  std::vector<std::int64_t> all;
  for (const auto* number : tuple->items) {
    if (number->kind != PickleKind::integer || number->integer < 0 ||
        number->integer > kMostElements)
      core::bad_data("{}: the shape or stride of a tensor is not an integer", what);
    all.push_back(number->integer);
  }
  return all;
}

std::size_t bytes_of_type(std::string_view type) {
  const auto* const known = core::find_by(kStorageTypes, type, &StorageType::name);
  return known == nullptr ? 0 : c10::elementSize(known->dtype);
}

// All numbers are little-endian and follow a signature of four bytes.
constexpr std::uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50,
                        kEnd64 = 0x06064b50, kLocator64 = 0x07064b50;
constexpr std::size_t kLocalBytes = 30, kCentralBytes = 46, kEndBytes = 22, kEnd64Bytes = 56,
                      kLocator64Bytes = 20;
constexpr std::uint64_t kMostComment = 0xffff;
constexpr std::uint64_t kMostDirectoryBytes = std::uint64_t{1} << 28;
constexpr std::uint64_t kIn64 = 0xffffffff;  // the value is in a 64-bit field elsewhere
constexpr std::uint16_t kExtra64 = 1, kEncrypted = 1, kStored = 0;

// Bytes of the archive that are in memory.
struct Part {
  core::Bytes bytes;
  std::uint64_t number(std::size_t at, int width) const {
    std::uint64_t n = 0;
    for (int i = width; i-- > 0;)
      n = n << 8 | std::to_integer<std::uint64_t>(bytes[at + static_cast<std::size_t>(i)]);
    return n;
  }
};

[[noreturn]] void malformed(const core::RandomSource& source, std::string_view what) {
  core::bad_data("{}: a zip archive that is cut short or malformed: {}", source.name(), what);
}

Part read_part(const core::RandomSource& source, std::uint64_t begin, std::uint64_t size) {
  if (begin > source.size() || size > source.size() - begin) malformed(source, "beyond its end");
  Part part;
  part.bytes.resize(static_cast<std::size_t>(size));
  source.read_at(begin, part.bytes);
  return part;
}

struct Directory {
  std::uint64_t begin, size, entries;
};

Directory find_directory(const core::RandomSource& source) {
  const std::uint64_t total = source.size(),
                      tail = std::min<std::uint64_t>(total, kMostComment + kEndBytes);
  const Part end = read_part(source, total - tail, tail);
  for (std::size_t at = tail < kEndBytes ? 0 : tail - kEndBytes + 1; at-- > 0;) {
    if (end.number(at, 4) != kEnd || at + kEndBytes + end.number(at + 20, 2) != tail) continue;
    const Directory found = {
        end.number(at + 16, 4), end.number(at + 12, 4), end.number(at + 10, 2)};
    const std::uint64_t end_at = total - tail + at;
    if (end_at < kLocator64Bytes) return found;
    const Part locator = read_part(source, end_at - kLocator64Bytes, kLocator64Bytes);
    if (locator.number(0, 4) != kLocator64) return found;
    const Part wide = read_part(source, locator.number(8, 8), kEnd64Bytes);
    if (wide.number(0, 4) != kEnd64) malformed(source, "no 64-bit end where it should be");
    return {wide.number(48, 8), wide.number(40, 8), wide.number(32, 8)};
  }
  malformed(source, "no end of a directory");
}

// Reads the 64-bit values of fields that do not fit 32 bits, in this order.
void read_extra64(const core::RandomSource& source, const Part& directory, std::size_t at,
    std::size_t end, std::initializer_list<std::uint64_t*> fields) {
  while (end - at >= 4) {
    const auto id = directory.number(at, 2), size = directory.number(at + 2, 2);
    at += 4;
    if (size > end - at) malformed(source, "an extra field");
    if (id == kExtra64) {
      std::size_t next = at;
      for (auto* field : fields) {
        if (*field != kIn64) continue;
        if (next + 8 > at + size) malformed(source, "a 64-bit field");
        *field = directory.number(next, 8);
        next += 8;
      }
    }
    at += static_cast<std::size_t>(size);
  }
}

// Returns where the data of the file with this local header begins.
std::uint64_t data_begin(const core::RandomSource& source, std::uint64_t header) {
  const Part local = read_part(source, header, kLocalBytes);
  if (local.number(0, 4) != kLocal) malformed(source, "no file where one should be");
  return header + kLocalBytes + local.number(26, 2) + local.number(28, 2);
}

}  // namespace

std::int64_t TensorPlace::elements() const { return c10::multiply_integers(shape); }

std::int64_t TensorPlace::span() const {
  if (elements() == 0) return 0;
  std::int64_t last = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) last += strides[i] * (shape[i] - 1);
  return last + 1;
}

TorchFile::TorchFile(const std::string& path)
    : TorchFile(std::make_unique<core::RandomFile>(path)) {}

TorchFile::TorchFile(std::unique_ptr<core::RandomSource> source) : source_(std::move(source)) {
  if (ZipArchive::looks_like(*source_)) open_archive();
  else open_stream();
}

void TorchFile::open_archive() {
  const ZipArchive archive(*source_);
  const auto& entries = archive.entries();
  const auto pickle = std::find_if(entries.begin(), entries.end(),
      [](const auto& entry) { return entry.first.ends_with(kPickleName); });
  if (pickle == entries.end())
    core::bad_data("{}: not a file of torch.save: it has no data.pkl", name());
  const std::string folder = pickle->first.substr(0, pickle->first.size() - kPickleName.size() + 1);
  if (const auto order = entries.find(folder + "byteorder"); order != entries.end()) {
    std::string text(static_cast<std::size_t>(std::min<std::uint64_t>(order->second.size, 8)), ' ');
    source_->read_at(
        order->second.begin, std::as_writable_bytes(std::span(text.data(), text.size())));
    if (text != "little")
      core::bad_data("{}: its tensors have byte order \"{}\", not little", name(), text);
  }
  const auto [begin, size] = pickle->second;
  pickle_ = unpickle(*source_, begin, begin + size);
  const std::string data = folder + "data/";
  for (auto entry = entries.lower_bound(data);
       entry != entries.end() && entry->first.starts_with(data); ++entry)
    storages_[entry->first.substr(data.size())] = {entry->second.begin, entry->second.size};
}

void TorchFile::open_stream() {
  const std::uint64_t size = source_->size();
  Pickle magic;
  try {
    magic = unpickle(*source_, 0, size);
  } catch (const core::Error& error) {
    if (error.code() != core::Code::bad_data) throw;
    core::bad_data("{}: not a file of torch.save", name());
  }
  if (magic.root().kind != PickleKind::big_integer || magic.root().text != kMagic)
    core::bad_data("{}: a pickle, but not one of torch.save", name());
  const Pickle version = unpickle(*source_, magic.end(), size);
  if (version.root().kind != PickleKind::integer || version.root().integer != kStreamVersion)
    core::bad_data("{}: a stream of torch.save whose version is not {}", name(), kStreamVersion);
  const Pickle machine = unpickle(*source_, version.end(), size);
  const auto* const little = machine.root().find("little_endian");
  if (little == nullptr || little->kind != PickleKind::boolean || little->integer == 0)
    core::bad_data("{}: written on a big-endian machine, which is not supported", name());
  pickle_ = unpickle(*source_, machine.end(), size);
  const Pickle keys = unpickle(*source_, pickle_.end(), size);
  // Only the values that refer to a storage give the width of its elements.
  std::map<std::string, std::size_t, std::less<>> widths;
  pickle_.each([&](const PickleValue& value) {
    const auto* const id = storage_id(&value);
    if (id != nullptr) widths[id->items[2]->text] = bytes_of_type(id->items[1]->text);
  });
  std::uint64_t at = keys.end();
  for (const auto* key : keys.root().items) {
    const auto width = key->kind == PickleKind::text ? widths.find(key->text) : widths.end();
    if (width == widths.end() || width->second == 0)
      core::bad_data("{}: a storage that belongs to no tensor", name());
    std::uint64_t elements = 0;
    if (size - at < sizeof elements) core::bad_data("{}: cut short at a storage", name());
    source_->read_at(at, std::as_writable_bytes(std::span(&elements, 1)));
    at += sizeof elements;
    if (elements > (size - at) / width->second)
      core::bad_data("{}: cut short in storage {}", name(), key->text);
    storages_[key->text] = {at, elements * width->second};
    at += elements * width->second;
  }
}

bool TorchFile::is_tensor(const PickleValue& value) {
  return tensor_arguments(without_parameter(value)) != nullptr;
}

TensorPlace TorchFile::place(const PickleValue& value, const std::string& what) const {
  const std::string where = name() + ": " + what;
  const auto* const arguments = tensor_arguments(without_parameter(value));
  const auto* const id = arguments == nullptr ? nullptr : storage_id(item(*arguments, 0));
  if (id == nullptr || !is_whole(item(*arguments, 1))) core::bad_data("{}: not a tensor", where);
  TensorPlace place;
  place.storage = id->items[2]->text;
  const auto& type = id->items[1]->text;
  const auto known = std::ranges::find(kStorageTypes, type, &StorageType::name);
  if (known == kStorageTypes.end())
    core::bad_data("{}: a tensor of {}, which is not supported", where, type);
  place.dtype = known->dtype;
  place.offset = arguments->items[1]->integer;
  place.shape = numbers(item(*arguments, 2), where);
  place.strides = numbers(item(*arguments, 3), where);
  if (const auto* const view = item(*id, 5); view != nullptr && view->kind == PickleKind::tuple) {
    if (!is_whole(item(*view, 1))) core::bad_data("{}: not a tensor", where);
    place.offset += std::clamp(view->items[1]->integer, std::int64_t{-1}, kMostElements);
  }
  check_inside(place, where);
  return place;
}

void TorchFile::check_inside(const TensorPlace& place, const std::string& what) const {
  const auto storage = storages_.find(place.storage);
  if (storage == storages_.end())
    core::bad_data("{}: its storage {} is missing", what, place.storage);
  const auto there =
      static_cast<std::int64_t>(storage->second.size / c10::elementSize(place.dtype));
  if (place.shape.size() != place.strides.size())
    core::bad_value(what, "the number of strides", place.strides.size(),
        fmt::format("{}, that of dimensions", place.shape.size()));
  const auto outside = [&] {
    core::bad_data("{}: exceeds its storage of {} elements", what, there);
  };
  if (place.offset < 0 || place.offset > there) outside();
  // Dimensions of 0 count as 1, which bounds the product of the others too.
  std::int64_t extent = 1;
  bool empty = false;
  for (const auto n : place.shape) {
    if (std::max<std::int64_t>(n, 1) > kMostElements / extent) outside();
    extent *= std::max<std::int64_t>(n, 1);
    empty = empty || n == 0;
  }
  if (empty) return;
  std::int64_t last = place.offset;
  for (std::size_t i = 0; i < place.shape.size(); ++i) {
    const auto steps = place.shape[i] - 1, stride = place.strides[i];
    if (steps > 0 && stride > there / steps) outside();
    if (last += stride * steps; last >= there) outside();
  }
  if (last >= there || extent > there) outside();
}

torch::Tensor TorchFile::read(const PickleValue& value, const std::string& what) const {
  const auto place = this->place(value, what);
  if (place.elements() == 0) return torch::empty(place.shape, place.dtype);
  const auto flat = torch::empty({place.span()}, place.dtype);
  const std::size_t width = c10::elementSize(place.dtype);
  source_->read_at(
      storages_.at(place.storage).begin + static_cast<std::uint64_t>(place.offset) * width,
      {static_cast<std::byte*>(flat.data_ptr()), flat.nbytes()});
  return flat.as_strided(place.shape, place.strides).contiguous();
}

bool ZipArchive::looks_like(const core::RandomSource& source) {
  return source.size() >= 4 && read_part(source, 0, 4).number(0, 4) == kLocal;
}

ZipArchive::ZipArchive(const core::RandomSource& source) {
  const Directory where = find_directory(source);
  if (where.size > kMostDirectoryBytes) malformed(source, "its directory is larger than any");
  const Part directory = read_part(source, where.begin, where.size);
  const std::size_t size = directory.bytes.size();
  std::size_t at = 0;
  for (std::uint64_t i = 0; i < where.entries; ++i) {
    if (size - at < kCentralBytes || directory.number(at, 4) != kCentral)
      malformed(source, "its directory");
    const auto name_bytes = directory.number(at + 28, 2), extra = directory.number(at + 30, 2),
               comment = directory.number(at + 32, 2);
    if (name_bytes + extra + comment > size - at - kCentralBytes)
      malformed(source, "its directory");
    const std::string name(
        reinterpret_cast<const char*>(directory.bytes.data()) + at + kCentralBytes,
        static_cast<std::size_t>(name_bytes));
    std::uint64_t unpacked = directory.number(at + 24, 4), packed = directory.number(at + 20, 4),
                  header = directory.number(at + 42, 4);
    const auto extra_begin = at + kCentralBytes + static_cast<std::size_t>(name_bytes);
    read_extra64(source, directory, extra_begin, extra_begin + static_cast<std::size_t>(extra),
        {&unpacked, &packed, &header});
    if (directory.number(at + 8, 2) & kEncrypted || directory.number(at + 10, 2) != kStored ||
        packed != unpacked)
      core::bad_data("{}: {} is compressed, which torch.save never does", source.name(), name);
    const auto begin = data_begin(source, header);
    if (begin > source.size() || unpacked > source.size() - begin)
      malformed(source, name + " ends beyond the file");
    if (!entries_.emplace(name, Entry{begin, unpacked}).second)
      malformed(source, name + " occurs twice");
    at = extra_begin + static_cast<std::size_t>(extra + comment);
  }
}

}  // namespace model
