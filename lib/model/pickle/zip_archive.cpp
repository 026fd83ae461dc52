#include "model/pickle/zip_archive.h"

#include <algorithm>
#include <span>

#include "core/error.h"

namespace model {
namespace {

using core::Code;

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
  core::fail(Code::bad_data, "{}: a zip archive that is cut short or malformed: {}", source.name(),
             what);
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
    const Directory found = {end.number(at + 16, 4), end.number(at + 12, 4),
                             end.number(at + 10, 2)};
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
      core::fail(Code::bad_data, "{}: {} is compressed, which torch.save never does", source.name(),
                 name);
    const auto begin = data_begin(source, header);
    if (begin > source.size() || unpacked > source.size() - begin)
      malformed(source, name + " ends beyond the file");
    if (!entries_.emplace(name, Entry{begin, unpacked}).second)
      malformed(source, name + " occurs twice");
    at = extra_begin + static_cast<std::size_t>(extra + comment);
  }
}

}  // namespace model
