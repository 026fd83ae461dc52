#include "train/log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include "core/io.h"
#include "core/units.h"

namespace train {
namespace {

// Returns the number of bytes of the lines to keep.
std::size_t kept_bytes(std::string_view text, std::int64_t through, const std::string& path) {
  std::size_t at = 0;
  for (std::int64_t number = 1;; ++number) {
    const auto end = text.find('\n', at);
    if (end == text.npos) return at;
    const auto origin = fmt::format("{}:{}", path, number);
    const auto line = core::parse_json(text.substr(at, end - at), origin);
    if (core::get<std::int64_t>(line, "step", origin) > through) return at;
    at = end + 1;
  }
}

static_assert(std::endian::native == std::endian::little);

template <class Number> void put(std::string& out, Number number) {
  char bytes[sizeof number];
  std::memcpy(bytes, &number, sizeof number);
  out.append(bytes, sizeof number);
}

enum Wire : unsigned { kVarint = 0, kEight = 1, kLength = 2, kFour = 5 };

void put_varint(std::string& out, std::uint64_t number) {
  constexpr unsigned kBits = 7, kMore = 0x80;
  for (; number >= kMore; number >>= kBits) out += static_cast<char>(number | kMore);
  out += static_cast<char>(number);
}

void put_key(std::string& out, unsigned field, Wire wire) { put_varint(out, field << 3 | wire); }

void put_bytes(std::string& out, unsigned field, std::string_view bytes) {
  put_key(out, field, kLength);
  put_varint(out, bytes.size());
  out += bytes;
}

std::string event_at(double wall_time, std::int64_t step) {
  std::string event;
  put_key(event, 1, kEight);
  put(event, wall_time);
  put_key(event, 2, kVarint);
  put_varint(event, static_cast<std::uint64_t>(step));
  return event;
}

std::string record(std::string_view event) {
  std::string out;
  put(out, static_cast<std::uint64_t>(event.size()));
  put(out, masked_crc32c(out));
  out += event;
  put(out, masked_crc32c(event));
  return out;
}

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

Log::Log(const std::string& path, std::int64_t through) : path_(path) {
  core::refuse_input(path);
  constexpr int kOwn = O_NOFOLLOW | O_NONBLOCK;  // a link or a pipe is not the run's file
  fd_ =
      core::Descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | kOwn, 0666));
  if (!fd_) core::fail_errno(core::Code::cannot_create, path + ": cannot create", errno);
  struct stat info;
  if (::fstat(fd_.fd(), &info) != 0 || !S_ISREG(info.st_mode))
    core::fail(core::Code::cannot_create, "{}: already exists; move it away", path);
  const auto size = kept_bytes(core::read_text(path), through, path);
  if (::ftruncate(fd_.fd(), static_cast<off_t>(size)) != 0)
    core::fail(core::Code::io, "{}: cannot write: {}", path, core::error_text(errno));
}

void Log::write(const core::OrderedJson& line) {
  core::write_all(fd_.fd(), path_, core::dump(line) + "\n");
}

void Log::sync() {
  if (::fsync(fd_.fd()) != 0)
    core::fail(core::Code::io, "{}: cannot write: {}", path_, core::error_text(errno));
}

double rounded(double value) {
  if (!std::isfinite(value)) return value;
  return core::read_number<double>(fmt::format("{:.7g}", value)).value_or(value);
}

std::uint32_t masked_crc32c(std::string_view bytes) {
  constexpr std::uint32_t kReflected = 0x82F63B78, kOffset = 0xA282EAD8;
  std::uint32_t crc = ~std::uint32_t{0};
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? kReflected : 0);
  }
  return std::rotr(~crc, 15) + kOffset;
}

std::string scalars_record(const core::OrderedJson& line, double wall_time) {
  std::string summary;
  for (const auto& [name, number] : line.items()) {
    if (name == "step" || !number.is_number()) continue;
    std::string value;
    put_bytes(value, 1, name);
    put_key(value, 2, kFour);
    put(value, number.get<float>());
    put_bytes(summary, 1, value);
  }
  std::string event = event_at(wall_time, line.at("step").get<std::int64_t>());
  put_bytes(event, 5, summary);
  return record(event);
}

TensorBoardLog::TensorBoardLog(const std::string& folder) {
  const double started = now();
  const std::string name = fmt::format(
      "{}/events.out.tfevents.{}.{}", folder, static_cast<std::int64_t>(started), ::getpid());
  path_ = name;
  const auto open_new = [&] {
    fd_ = core::Descriptor(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    return static_cast<bool>(fd_);
  };
  // In a container a process may have the id of the previous run, and a clock may go back.
  for (int more = 1; !open_new() && errno == EEXIST; ++more)
    path_ = fmt::format("{}.{}", name, more);
  if (!fd_) core::fail_errno(core::Code::cannot_create, path_ + ": cannot create", errno);
  std::string event = event_at(started, 0);
  put_bytes(event, 3, "brain.Event:2");
  core::write_all(fd_.fd(), path_, record(event));
}

void TensorBoardLog::write(const core::OrderedJson& line) {
  core::write_all(fd_.fd(), path_, scalars_record(line, now()));
}

}  // namespace train
