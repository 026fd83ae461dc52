#include "passages/array_pack.h"

#include "core/path_kind.h"
#include "shard/layout.h"

namespace passages {
namespace {

constexpr std::size_t kAlign = 64, kNameBytes = 8, kTailBytes = 16;
constexpr std::uint64_t kMostFacts = 256 << 20;

}  // namespace

PackWriter::PackWriter(core::ByteSink& out, const PackFormat& format) : out_(out), format_(format) {
  core::Bytes front;
  shard::layout::put_all(front, format.name, format.version);
  front.resize(kAlign);
  put(front);
}

void PackWriter::put(std::span<const std::byte> bytes) {
  out_.write(bytes);
  offset_ += bytes.size();
}

void PackWriter::begin(std::string name) {
  end();
  name_ = std::move(name);
  start_ = offset_;
}

void PackWriter::end() {
  if (!name_.empty())
    arrays_.push_back({{"name", name_}, {"offset", start_}, {"bytes", offset_ - start_},
        {"hash", hash_.digest().hex()}});
  hash_.reset();
  name_.clear();
  constexpr std::array<std::byte, kAlign> kZeros{};
  put(std::span(kZeros).first((kAlign - offset_ % kAlign) % kAlign));
}

void PackWriter::finish(core::OrderedJson facts) {
  end();
  facts["arrays"] = std::move(arrays_);
  const std::string json = core::dump(core::sealed(std::move(facts)));
  core::Bytes tail;
  shard::layout::put_all(tail, json, std::uint64_t{json.size()}, format_.name);
  put(tail);
}

PackReader::PackReader(std::span<const std::byte> bytes, const PackFormat& format, std::string name)
    : name_(std::move(name)) {
  const auto is_name = [&](std::size_t at) {
    return std::memcmp(bytes.data() + at, format.name.data(), kNameBytes) == 0;
  };
  if (bytes.size() < kAlign + kTailBytes || !is_name(0))
    core::bad_data("{}: not {}: it {}; give a file of {}", name_, format.what,
        core::what_path_is(name_), format.written);
  const auto version = shard::layout::get<std::uint32_t>(bytes, kNameBytes);
  if (version != format.version)
    core::bad_data("{}: format version {} is not supported; this program reads version {}", name_,
        version, format.version);
  const std::size_t tail = bytes.size() - kTailBytes;
  const auto json_bytes = shard::layout::get<std::uint64_t>(bytes, tail);
  if (!is_name(tail + 8) || json_bytes > std::min<std::uint64_t>(kMostFacts, tail - kAlign))
    core::bad_data("{}: cut short, or damaged at its end", name_);
  const std::size_t end = tail - json_bytes;  // end of the arrays
  facts_ =
      core::parse_json({reinterpret_cast<const char*>(bytes.data() + end), json_bytes}, name_, 4);
  if (!facts_.is_object() || !facts_.contains("arrays") || !facts_["arrays"].is_array())
    core::bad_data("{}: damaged: it has no \"arrays\"", name_);
  core::expect_sealed(facts_, name_);
  for (const auto& entry : facts_["arrays"]) {
    const auto array = core::get<std::string>(entry, "name", name_);
    const auto offset = core::get_at_most(entry, "offset", end, name_);
    const auto size = core::get_at_most(entry, "bytes", end - offset, name_);
    const auto own = bytes.subspan(offset, size);
    if (offset % kAlign != 0 ||
        core::hash128(own).hex() != core::get<std::string>(entry, "hash", name_))
      core::bad_data("{}: corrupt file: checksum mismatch of {}", name_, array);
    if (!arrays_.emplace(array, own).second)
      core::bad_data("{}: damaged: two arrays have the name {}", name_, array);
  }
}

std::span<const std::byte> PackReader::bytes_of(
    const std::string& name, std::size_t element) const {
  const auto found = arrays_.find(name);
  if (found == arrays_.end()) core::bad_data("{}: damaged: it has no {}", name_, name);
  if (found->second.size() % element != 0)
    core::bad_data("{}: damaged: {} ends within an element", name_, name);
  return found->second;
}

}  // namespace passages
