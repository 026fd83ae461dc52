#include "shard/file.h"

#include <mutex>

#include "shard/layout.h"
#include "shard/reader.h"
#include "shard/zstd_frame.h"

namespace shard {
namespace {

using FramePointer = std::shared_ptr<const core::Bytes>;

// Caches the most recently read frames. Thread safe.
class Cache {
 public:
  explicit Cache(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  FramePointer find(std::size_t number) {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(number);
    if (found == entries_.end()) return nullptr;
    found->second.last_used = ++clock_;
    return found->second.frame;
  }

  void add(std::size_t number, const FramePointer& frame) {
    const std::lock_guard lock(mutex_);
    if (!entries_.emplace(number, Entry{frame, ++clock_}).second) return;
    bytes_ += frame->size();
    while (bytes_ > most_bytes_ && entries_.size() > 1) {
      const auto oldest = std::ranges::min_element(entries_,
          [](const auto& a, const auto& b) { return a.second.last_used < b.second.last_used; });
      bytes_ -= oldest->second.frame->size();
      entries_.erase(oldest);
    }
  }

 private:
  struct Entry {
    FramePointer frame;
    std::uint64_t last_used;
  };
  std::mutex mutex_;
  std::unordered_map<std::size_t, Entry> entries_;
  std::size_t most_bytes_, bytes_ = 0;
  std::uint64_t clock_ = 0;
};

}  // namespace

struct File::Impl {
  Impl(std::shared_ptr<const core::RandomSource> source, std::size_t cache_bytes)
      : bytes(std::move(source)), name(bytes->name()), cache(cache_bytes) {
    try {
      open();
    } catch (const core::Error& error) {
      if (error.code() == core::Code::bad_data) explain();
      throw;
    }
  }

  core::Bytes read_bytes(std::uint64_t offset, std::uint64_t n) const {
    if (offset > bytes->size() || n > bytes->size() - offset)
      layout::cut_short(name, bytes->size(), "a frame");
    core::Bytes out(static_cast<std::size_t>(n));
    bytes->read_at(offset, out);
    return out;
  }

  void open() {
    const std::uint64_t size = bytes->size();
    const auto start = read_bytes(0, std::min<std::uint64_t>(size, layout::kVersionEnd));
    const std::size_t header_bytes = layout::check_start(start, name);
    header = layout::decode_header(read_bytes(0, header_bytes), name);

    if (size < header_bytes + layout::kFrameHeadBytes + layout::kSeekFooterBytes)
      layout::cut_short(name, size, "the elements");
    const auto footer = read_bytes(size - layout::kSeekFooterBytes, layout::kSeekFooterBytes);
    const std::uint64_t table_bytes = layout::kFrameHeadBytes + layout::kSeekFooterBytes +
                                      std::uint64_t{layout::get<std::uint32_t>(footer, 0)} * 8;
    if (layout::get<std::uint32_t>(footer, 5) != layout::kSeekFooterMagic ||
        table_bytes > size - header_bytes)
      layout::cut_short(name, size, "the seek table");
    const std::uint64_t table_start = size - table_bytes;
    table = layout::decode_seek_table(read_bytes(table_start, table_bytes), table_start, name);

    // The table must describe the header, data frames and trailer, and end at its own start.
    const auto bad_table = [&] { layout::damaged(name, table_start, "the seek table"); };
    if (table.size() < 2 ||
        table.front() != layout::FrameSize{static_cast<std::uint32_t>(header_bytes), 0} ||
        table.back().raw != 0)
      bad_table();
    const std::uint64_t element_bytes = size_of(header.dtype);
    std::uint64_t offset = 0, raw = 0;
    starts.reserve(table.size());
    for (std::size_t i = 0; i < table.size(); ++i) {
      const bool data = i > 0 && i + 1 < table.size();
      if (data && (table[i].raw == 0 || table[i].raw > layout::kMaxRawBytes ||
                      table[i].raw % element_bytes != 0))
        bad_table();
      starts.push_back({offset, raw});
      offset += table[i].compressed;
      raw += table[i].raw;
    }
    if (offset != table_start) bad_table();

    const std::uint64_t trailer_start = starts.back().offset;
    const auto frame = read_bytes(trailer_start, table.back().compressed);
    if (frame.size() < layout::kFrameHeadBytes ||
        layout::get<std::uint32_t>(frame, 0) != layout::kTrailerMagic ||
        layout::get<std::uint32_t>(frame, 4) != frame.size() - layout::kFrameHeadBytes)
      layout::damaged(name, trailer_start, "the trailer");
    trailer = layout::decode_trailer(frame, header, trailer_start, name, content);
    if (trailer.elements * element_bytes != raw) bad_table();
  }

  // Reading from the front gives the best message for a file that cannot be opened.
  void explain() const {
    core::SequentialSource source(*bytes);
    verify(source);
  }

  FramePointer frame(std::size_t i) const {
    if (auto found = cache.find(i)) return found;
    thread_local const DecompressContext context = make_decompress_context();
    thread_local core::Bytes compressed;
    compressed.resize(table[i].compressed);
    bytes->read_at(starts[i].offset, compressed);
    const FrameView view = look_at_frame(compressed);
    if (view.state != FrameView::State::whole || view.compressed != table[i].compressed ||
        view.raw != table[i].raw)
      layout::damaged(name, starts[i].offset, "a data frame");
    const auto raw = std::make_shared<core::Bytes>(view.raw);
    decompress_frame(context.get(), compressed, *raw, header, starts[i].offset, name);
    cache.add(i, raw);
    return raw;
  }

  template <class T> void read(std::uint64_t offset, std::span<T> out) const {
    const std::uint64_t item_bytes = stored_bytes<T>(header.dtype);
    const std::uint64_t element_bytes = size_of(header.dtype);
    const std::uint64_t n_elements = out.size() * item_bytes / element_bytes;
    if (out.size() * item_bytes % element_bytes != 0)
      core::bug("{}: a part of an element was asked for", name);
    if (offset > trailer.elements || n_elements > trailer.elements - offset)
      core::bad_data("{}: elements {} to {} are out of range; it has {}", name, offset,
          offset + n_elements, trailer.elements);
    std::uint64_t at = offset * element_bytes;  // offset in the raw bytes
    const auto next = std::ranges::upper_bound(starts, at, {}, &Start::raw);
    // The last frame that starts at or before `at`; the trailer, of size 0, comes last of equals
    // only at the very end, where nothing is left to read.
    for (auto i = static_cast<std::size_t>(next - starts.begin()) - 1; !out.empty(); ++i) {
      const FramePointer raw = frame(i);
      const std::uint64_t skip = at - starts[i].raw;
      const std::size_t n = static_cast<std::size_t>(
          std::min<std::uint64_t>(out.size(), (raw->size() - skip) / item_bytes));
      decode_elements(header.dtype, raw->data() + skip, out.first(n), name);
      at += n * item_bytes;
      out = out.subspan(n);
    }
  }

  struct Start {
    std::uint64_t offset, raw;
  };
  std::shared_ptr<const core::RandomSource> bytes;
  std::string name;
  Header header;
  Trailer trailer;
  Content content;
  std::vector<layout::FrameSize> table;
  // Start of each frame: in the file, and in the raw bytes.
  std::vector<Start> starts;
  mutable Cache cache;
};

File::File(const std::string& path, std::size_t cache_bytes)
    : File(std::make_shared<core::RandomFile>(path), cache_bytes) {}
File::File(std::shared_ptr<const core::RandomSource> bytes, std::size_t cache_bytes)
    : impl_(std::make_unique<Impl>(std::move(bytes), cache_bytes)) {}
File::~File() = default;
File::File(File&&) noexcept = default;
File& File::operator=(File&&) noexcept = default;

const Header& File::header() const { return impl_->header; }
const Trailer& File::trailer() const { return impl_->trailer; }
Documents File::take_documents() { return std::exchange(impl_->trailer.documents, {}); }
const Content& File::content() const { return impl_->content; }
const std::string& File::name() const { return impl_->name; }
std::uint64_t File::size() const { return impl_->trailer.elements; }

void File::read(std::uint64_t offset, std::span<std::uint32_t> out) const {
  impl_->read(offset, out);
}
void File::read(std::uint64_t offset, std::span<std::uint64_t> out) const {
  impl_->read(offset, out);
}
void File::read(std::uint64_t offset, std::span<float> out) const { impl_->read(offset, out); }
void File::read(std::uint64_t offset, std::span<std::byte> out) const { impl_->read(offset, out); }

}  // namespace shard
